"""presence: which data sets are on this machine, and whether they are as published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tiltmeter.data.public.folder import data_folder, folder_of, path_of
from tiltmeter.data.public.sources import source_of


@dataclass(frozen=True)
class Presence:
    """The state of a data set, "present", "absent" or "wrong", with its folder and what to do."""

    name: str
    state: Literal["present", "absent", "wrong"]
    folder: str
    note: str

    def __str__(self) -> str:
        return f"{self.name}: {self.state}. {self.note}".strip()


def is_present(name: str) -> bool:
    """Whether all files needed for loading exist; the files are not read."""
    if name == "celeba":  # the attributes are useful without the images
        folder = folder_of(name)
        return (folder / "list_attr_celeba.txt").is_file() or (data_folder() / "celeba-attributes").is_dir()
    return all(path_of(name, file) is not None for file in source_of(name).files)


def check(name: str) -> Presence:
    """Load the whole data set and report the result.

    >>> import os, tempfile
    >>> before = os.environ.get("TILTMETER_DATA")
    >>> os.environ["TILTMETER_DATA"] = tempfile.gettempdir() + "/nothing here"
    >>> check("adult").state
    'absent'
    >>> _ = os.environ.pop("TILTMETER_DATA") if before is None else os.environ.update(TILTMETER_DATA=before)
    """
    folder = str(folder_of(name))
    try:
        sizes = [len(part) for part in _loaders()[name]()]
    except FileNotFoundError as error:
        return Presence(name, "absent", folder, str(error))
    except (ValueError, OSError) as error:
        return Presence(name, "wrong", folder, str(error))
    return Presence(name, "present", folder, f"{' + '.join(f'{size:,}' for size in sizes)} points.")


def _loaders() -> dict[str, Callable[[], tuple[Any, ...]]]:
    """How to load each data set completely, part by part, in the same way as its users do."""
    from tiltmeter.data.public.adult import adult_table
    from tiltmeter.data.public.celeba import celeba
    from tiltmeter.data.public.cifar10 import cifar10
    from tiltmeter.data.public.compas import compas_table
    from tiltmeter.data.public.fashion_mnist import fashion_mnist
    from tiltmeter.data.public.german import german_table
    from tiltmeter.data.public.mnist import mnist
    from tiltmeter.data.public.waterbirds import waterbirds

    return {
        "mnist": lambda: (mnist("train"), mnist("test")),
        "fashion-mnist": lambda: (fashion_mnist("train"), fashion_mnist("test")),
        "cifar10": lambda: (cifar10("train"), cifar10("test")),
        "adult": lambda: (adult_table("train"), adult_table("test")),
        "compas": lambda: (compas_table(filtered=False),),
        "german": lambda: (german_table(),),
        "celeba": lambda: (celeba("train"), celeba("valid"), celeba("test")),
        "waterbirds": lambda: (waterbirds("train"), waterbirds("valid"), waterbirds("test")),
    }
