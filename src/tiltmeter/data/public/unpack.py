"""unpack: extract a tar file safely into one folder."""

from __future__ import annotations

import shutil
import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath

#: An archive may hold so many bytes, and so many times its own size; a small one always so many.
MOST_BYTES, MOST_TIMES, LEAST_BYTES = 16 * 2**30, 200, 2**24


def unpack(archive: Path, to: Path, only: Collection[str] | None = None) -> None:
    """Extract the files of a tar archive into `to`, without its top folder; with `only`, just the files with these
    names.

    A link, a device, or a name that leads out of `to` raises an error before anything of that member is written.
    """
    left = min(MOST_BYTES, max(LEAST_BYTES, MOST_TIMES * archive.stat().st_size))
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                left -= max(0, member.size)
                if left < 0:
                    raise ValueError(
                        f"{archive.name} should unpack to at most {MOST_TIMES} times its size and "
                        f"{MOST_BYTES / 2**30:g} GiB. Found more, at {member.name!r}."
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
