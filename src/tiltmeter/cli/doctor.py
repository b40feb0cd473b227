"""`tiltmeter doctor`: versions, threads, memory, extras and data of this machine, and what is missing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from tiltmeter.cli.terminal import Json, print_json
from tiltmeter.version import __version__

CORE = (
    "numpy",
    "scipy",
    "numba",
    "xarray",
    "pandas",
    "scikit-learn",
    "altair",
    "vl-convert-python",
    "rich",
    "cyclopts",
)
#: Extra -> the packages it brings and what works with them.
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "torch": (("torch",), "training, probes, forecasts, measures"),
    "lightning": (("lightning",), "a probe in Lightning"),
    "hf": (("transformers", "accelerate"), "a probe in Hugging Face Trainer"),
    "ignite": (("pytorch-ignite",), "a probe in Ignite"),
    "skorch": (("skorch",), "a probe in skorch"),
    "datasets": (("datasets",), "Hugging Face data sets as tables"),
    "images": (("pillow",), "image files of CelebA and Waterbirds"),
    "export": (("pyarrow", "tensorboard"), "Parquet and Feather files, TensorBoard"),
}
MODULES = {"scikit-learn": "sklearn", "vl-convert-python": "vl_convert", "pytorch-ignite": "ignite", "pillow": "PIL"}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def doctor(*, json: Json = False) -> int:
    """Say what this machine has: versions, threads, memory, extras, data. Exit code 1 if a package is missing."""
    found = examined()
    if json:
        print_json(found)
    else:
        _print(found)
    return 1 if found["missing"] else 0


def examined() -> dict[str, Any]:
    """Collect everything that `doctor` reports, without importing the packages."""
    from tiltmeter.data.public.presence import data_folder, is_present
    from tiltmeter.data.public.sources import all_sources
    from tiltmeter.threads import available_memory

    core = _versions(CORE)
    extras = {extra: {"versions": _versions(names), "for": purpose} for extra, (names, purpose) in EXTRAS.items()}
    memory = available_memory()
    return {
        "tiltmeter": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": {name: os.environ.get(name) for name in THREADS},
        "free_memory_gib": None if memory is None else round(memory / 2**30, 1),
        "core": core,
        "extras": extras,
        "data_folder": str(data_folder()),
        "data": {name: is_present(name) for name in all_sources()},
        "encoding": getattr(sys.stdout, "encoding", None),
        "missing": [name for name, found in core.items() if found is None],
    }


def _versions(packages: Iterable[str]) -> dict[str, str | None]:
    return {name: _version(name) for name in packages}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return "installed" if find_spec(MODULES.get(package, package)) else None


def _print(found: dict[str, Any]) -> None:
    missing = found["missing"]
    absent = [extra for extra, about in found["extras"].items() if None in about["versions"].values()]
    print(
        f"Missing: {', '.join(missing)}. Install again with pip install tiltmeter."
        if missing
        else "Everything that tiltmeter needs is installed."
    )
    memory = found["free_memory_gib"]
    free = "an unknown amount of memory" if memory is None else f"{memory} GiB of memory free"
    print(
        f"tiltmeter {found['tiltmeter']}, Python {found['python']}, {found['system']}, {found['cores']} cores, {free}."
    )
    threads = [f"{name} = {value}" for name, value in found["threads"].items() if value is not None]
    print(f"Threads: {', '.join(threads) or 'not set, so libraries use all cores'}.")
    print("Core: " + ", ".join(f"{name} {number or 'missing'}" for name, number in found["core"].items()) + ".")
    for extra, about in found["extras"].items():
        if extra in absent:
            print(f"Without {extra}: no {about['for']}. pip install 'tiltmeter[{extra}]'")
        else:
            numbers = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
            print(f"With {extra} ({numbers}): {about['for']}.")
    here = [name for name, present in found["data"].items() if present]
    print(f"Data in {found['data_folder']}: {', '.join(here) or 'none'}; `tiltmeter data get NAME` downloads others.")
