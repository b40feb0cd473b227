"""fetch: download a data set from its publishers, and verify it before it is put in place."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from tiltmeter.data.public.download import Download
from tiltmeter.data.public.folder import data_folder, folder_of, path_of
from tiltmeter.data.public.sources import Source, source_of
from tiltmeter.data.public.unpack import unpack
from tiltmeter.data.public.verified_files import checked


def fetch(name: str, say: Callable[[str], None] = lambda _: None) -> Path:
    """Download the missing files of a data set, and return its folder.

    Existing files are verified and kept. A wrong file is never overwritten: an error says what to do. New files are
    written to a temporary folder, compared with the published checksum (or size, if none is published), and only then
    moved into place. `say` is called with a line of text before every download.
    """
    source = source_of(name)
    folder = folder_of(name)
    missing = []
    for file in source.files:
        path = path_of(name, file)
        if path is None:
            missing.append(file)
        elif path.is_file():
            checked(name, path, file)
    if not missing:
        return folder
    if source.by_hand:
        raise FileNotFoundError(f"Data set {name!r} cannot be downloaded for you: {source.by_hand} ({folder}).")
    with _aside(name) as aside:
        new = Path(aside) / "new"
        new.mkdir()
        if source.archive is None:
            for file in missing:
                path = _download(file.urls, file.md5, file.name, new, say)
                checked(name, path, file)
        else:
            _download_archive(source, new, Path(aside), say)
            for file in missing:
                if not (new / file.name).is_file():
                    raise ValueError(f"The archive of {name} should hold {file.name}. Found none: report it.")
                checked(name, new / file.name, file)
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(new.rglob("*")):
            place = folder / path.relative_to(new)
            if path.is_dir():
                place.mkdir(exist_ok=True)
            elif not place.exists():
                os.replace(path, place)
    return folder


def _aside(name: str) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder on the same disk as the data, deleted afterwards."""
    try:
        data_folder().mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=f".{name}-", dir=data_folder())
    except OSError as error:
        raise OSError(
            f"The data folder {data_folder()} should be writable. Found: {error.strerror or error}; set "
            "TILTMETER_DATA to another folder."
        ) from None


def _download_archive(source: Source, new: Path, aside: Path, say: Callable[[str], None]) -> None:
    assert source.archive is not None
    packed = _download((source.archive.url,), source.archive.md5, "archive.tar.gz", aside, say)
    unpack(packed, new, None if source.archive.whole else [file.name for file in source.files])


def _download(urls: tuple[str, ...], md5: str | None, name: str, to: Path, say: Callable[[str], None]) -> Path:
    """Download the file from the first address that has it, complete and as published."""
    import pooch
    import requests

    pooch.get_logger().setLevel(
        logging.ERROR
    )  # pooch warns about files without a checksum, and prints the one it computes
    failed = []
    for url in urls:
        say(f"Downloading {url}")
        try:
            got = pooch.retrieve(
                url, None if md5 is None else f"md5:{md5}", fname=name, path=to, downloader=Download(say)
            )
        except requests.Timeout:
            failed.append(f"{url}: no answer before the timeout")
        except requests.ConnectionError:
            failed.append(f"{url}: no connection, or an interrupted one")
        except (requests.RequestException, OSError) as error:
            failed.append(f"{url}: {_first_line(error)}")
        except ValueError:  # raised by pooch for a different checksum
            failed.append(f"{url}: the file there is incomplete or has changed: its checksum is not {md5}")
        else:
            return Path(got)
    raise ConnectionError(f"Could not download {name} ({'; '.join(failed)}): try later, or put it in place by hand.")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
