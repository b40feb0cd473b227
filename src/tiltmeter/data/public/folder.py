"""folder: where data sets are stored on this machine, one folder for each."""

from __future__ import annotations

import os
from pathlib import Path

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
