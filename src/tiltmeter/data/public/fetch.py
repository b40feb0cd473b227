"""fetch: download a data set from its publishers, and verify it before it is put in place."""

from __future__ import annotations

import logging
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from tiltmeter.data.public.presence import checked, data_folder, folder_of, path_of
from tiltmeter.data.public.sources import Source, source_of

#: No published file is larger.
MOST_BYTES = 4 * 2**30
#: Seconds without an answer.
PATIENCE = 30


class Download:
    """What pooch calls to bring a file; `say` hears of another host before anything is taken from it."""

    def __init__(self, say: Callable[[str], None], most: int = MOST_BYTES) -> None:
        self._say, self._most = say, most

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:  # noqa: ARG002
        import requests

        with requests.get(url, stream=True, timeout=PATIENCE) as answer:
            answer.raise_for_status()
            asked, came = urlsplit(url).hostname, urlsplit(answer.url).hostname
            if came != asked:
                self._say(f"Redirected from {asked} to {came}")
            if urlsplit(url).scheme == "https" and urlsplit(answer.url).scheme != "https":
                raise OSError(f"redirected from https to {urlsplit(answer.url).scheme}, which is refused")
            taken = 0
            with open(output_file, "wb") as file:
                for part in answer.iter_content(2**20):
                    taken += len(part)
                    if taken > self._most:
                        raise OSError(f"the file there is larger than {self._most:,} bytes, which is refused")
                    file.write(part)


#: An archive may hold so many bytes, and so many times its own size; a small one always so many.
UNPACKED_MOST_BYTES, MOST_TIMES, LEAST_BYTES = 16 * 2**30, 200, 2**24


def unpack(archive: Path, to: Path, only: Collection[str] | None = None) -> None:
    """Extract the files of a tar archive into `to`, without its top folder; with `only`, just the files with these
    names.

    A link, a device, or a name that leads out of `to` raises an error before anything of that member is written.
    """
    left = min(UNPACKED_MOST_BYTES, max(LEAST_BYTES, MOST_TIMES * archive.stat().st_size))
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                left -= max(0, member.size)
                if left < 0:
                    raise ValueError(
                        f"{archive.name} should unpack to at most {MOST_TIMES} times its size and "
                        f"{UNPACKED_MOST_BYTES / 2**30:g} GiB. Found more, at {member.name!r}."
                    )
                inside = _inside(member, archive)
                if inside is None or (only is not None and inside.as_posix() not in only):
                    continue
                place = to / inside
                place.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                assert source is not None
                with source, place.open("wb") as out:
                    shutil.copyfileobj(source, out)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ValueError(f"{archive.name} should be a complete tar file. Found: {error}.") from None


def _inside(member: tarfile.TarInfo, archive: Path) -> PurePosixPath | None:
    """The name inside the top folder; None for a folder."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or ":" in member.name:
        raise ValueError(f"{archive.name} should unpack into its own folder. Found {member.name!r} in it.")
    if member.isdir():
        return None
    if not member.isfile():
        raise ValueError(
            f"{archive.name} should contain only files and folders. Found {member.name!r}, a link or device."
        )
    parts = path.parts[1:] if len(path.parts) > 1 else path.parts
    return PurePosixPath(*parts)


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
