"""new_directory: a directory that appears complete or not at all: written under another name, then renamed."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiltmeter.record.directory.atomic_files import explained


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Give a directory to write into, which gets its name at the end; what exists is never overwritten.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with new_directory(Path(folder) / "mine") as place:
    ...         _ = (place / "note.txt").write_text("whole")
    ...     (Path(folder) / "mine" / "note.txt").read_text()
    'whole'
    """
    if os.path.lexists(target):
        raise FileExistsError(f"{target} already exists and is never overwritten. Choose a new name.")
    aside = target.with_name(f".{target.name}-{uuid.uuid4().hex}.aside")
    try:
        aside.mkdir(parents=True)
        yield aside
        os.rename(aside, target)
    except OSError as error:
        raise explained(error, f"{target} could not be written: ", " Nothing was left there.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
