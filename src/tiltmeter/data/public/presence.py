"""presence: which data sets are on this machine, and whether they are as published."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from tiltmeter.data.public.sources import File, source_of


def data_folder() -> Path:
    """The folder of all data sets: `TILTMETER_DATA` if it is set, otherwise `data` in the user's cache folder.

    >>> isinstance(data_folder(), Path)
    True
    """
    place = os.environ.get("TILTMETER_DATA", "").strip()
    if place:
        return Path(place).expanduser()
    from platformdirs import user_cache_dir  # where pooch puts things, without importing all of it

    return Path(user_cache_dir("tiltmeter")) / "data"


def folder_of(name: str) -> Path:
    """The folder of one data set, whether it exists or not; the top folder of an unpacked archive is also accepted."""
    source = source_of(name)
    place = data_folder() / name
    return next((place / part for part in source.folders if (place / part).is_dir()), place)


def path_of(name: str, file: File) -> Path | None:
    """The path of this file, or None if it does not exist. A compressed file may have been unpacked."""
    folder = folder_of(name)
    packed, unpacked = folder / file.name, folder / file.name.removesuffix(".gz")
    return next((path for path in (packed, unpacked) if path.exists()), None)


def absent(name: str, file: str) -> FileNotFoundError:
    """An error for a missing file; it says what to do in one sentence."""
    by_hand = source_of(name).by_hand
    do = (
        by_hand
        or f"`tiltmeter data get {name}` downloads it, or set TILTMETER_DATA to the folder that contains {name}/"
    )
    return FileNotFoundError(f"Data set {name!r} needs {file} in {folder_of(name)}: {do}.")


def contents(name: str, file: str) -> bytes:
    """The content of this file of the data set, unpacked and verified."""
    expected = source_of(name).file(file)
    path = path_of(name, expected)
    if path is None:
        raise absent(name, file)
    return checked(name, path, expected)


def checked(name: str, path: Path, expected: File) -> bytes:
    """The bytes of the file at `path`, unpacked, if they are those of the published file."""
    data = bytes_of(path)
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise wrong(name, path, "a complete gzip file", "one that cannot be unpacked") from None
    md5 = expected.content_md5 if expected.name.endswith(".gz") else expected.md5
    if md5 is not None and (found := hashlib.md5(data, usedforsecurity=False).hexdigest()) != md5:
        raise wrong(name, path, f"the published content, with md5 {md5}", f"md5 {found} of {len(data):,} bytes")
    if expected.size is not None and len(data) != expected.size:
        raise wrong(name, path, f"{expected.size:,} bytes", f"{len(data):,}")
    if expected.rows is not None and (lines := _rows(data)) != expected.rows:
        raise wrong(name, path, f"{expected.rows:,} rows of a table", f"{lines:,}")
    return data


def bytes_of(path: Path) -> bytes:
    """The bytes of a file, or an error in one sentence if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise OSError(f"{path} should be a file that can be read. Found: {error.strerror or error}.") from None


def _rows(data: bytes) -> int:
    """Number of rows below the header of a CSV file."""
    return max(0, sum(1 for _ in csv.reader(io.StringIO(data.decode("utf-8", errors="replace"), newline=""))) - 1)


def wrong(name: str, path: Path, should: str, found: str) -> ValueError:
    """An error for a file that differs from the published one; it says what to do in one sentence."""
    by_hand = source_of(name).by_hand
    do = f"replace it: {by_hand}" if by_hand else f"delete it and run `tiltmeter data get {name}`"
    return ValueError(f"{path} should hold {should}. Found {found}: the file is incomplete or a different one; {do}.")


def table_of(name: str, path: Path, data: bytes, should: str, **how: Any) -> Any:
    """A text table as a DataFrame; if pandas cannot read it, the file differs from the published one."""
    import pandas as pd

    try:
        return pd.read_csv(io.BytesIO(data), **how)
    except (ValueError, OverflowError) as error:  # errors of pandas and of decoding
        raise wrong(name, path, should, " ".join(str(error).split())) from None


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
    """Whether all files needed for loading exist; the files are not read.

    >>> is_present("mnist") in (True, False)
    True

    Args:
        name: Name of a data set, such as "celeba" or "mnist".
    """
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
        sizes = [len(part) for part in _loader(name)()]
    except FileNotFoundError as error:
        return Presence(name, "absent", folder, str(error))
    except (ValueError, OSError) as error:
        return Presence(name, "wrong", folder, str(error))
    return Presence(name, "present", folder, f"{' + '.join(f'{size:,}' for size in sizes)} points.")


def _loader(name: str) -> Callable[[], tuple[Any, ...]]:
    module, _, function = source_of(name).load.partition(":")
    return getattr(import_module(module), function)  # type: ignore[no-any-return]
