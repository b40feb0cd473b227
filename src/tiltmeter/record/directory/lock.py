"""The writer's lock of a run directory: a file that names the process that writes.

Who holds the lock is a matter of what the file says, not of a held `flock`: workers forked from the writer inherit
its descriptors and would otherwise keep its lock alive, or drop it. `flock` only guards the instant of deciding.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from tiltmeter.record.directory.process import Process


class Lock:
    """Taken on construction: `BlockingIOError` if a live process holds it; a dead one's is taken over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = uuid.uuid4().hex  # tells two writers within one process
        self._process = Process.this()
        with _guard(path, create=True) as descriptor:
            holder = writer(path)
            if holder is not None and holder.alive():
                raise BlockingIOError(busy(path, holder))
            # Overwritten in place and padded: a reader without the guard sees the old owner or the new one.
            said = json.dumps({**self._process.to_json(), "token": self._token}).ljust(512)
            os.write(descriptor, said.encode())

    @property
    def mine(self) -> bool:
        """Whether this is the process that took the lock, and not one forked from it."""
        return os.getpid() == self._process.pid

    def release(self) -> None:
        """Give the lock up; does nothing in a forked child, or once the file names another."""
        if not self.mine:
            return
        with contextlib.suppress(FileNotFoundError), _guard(self._path, create=False) as descriptor:
            if _read(self._path).get("token") == self._token:
                os.ftruncate(descriptor, 0)
                with contextlib.suppress(PermissionError):  # Windows keeps open files; an empty one is free too
                    self._path.unlink()

    def __str__(self) -> str:
        return str(self._process)


def writer(path: Path) -> Process | None:
    """Whom the lock file names; None without a file, or with one that nobody filled."""
    try:
        return Process.from_json(_read(path))
    except (ValueError, KeyError):
        return None


def busy(path: Path, holder: Process) -> str:
    """The sentence for a second writer."""
    return (
        f"{path.parent} is being recorded by {holder}. One run has one writer: close that recorder or choose another "
        f"directory. If that process is gone for certain, delete {path}."
    )


def _read(path: Path) -> dict[str, object]:
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


@contextlib.contextmanager
def _guard(path: Path, *, create: bool) -> Iterator[int]:
    """The lock file, open, while every other process that decides about it waits."""
    while True:
        descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o666)
        try:
            _flock(descriptor)
            try:
                # Between opening and locking, its last owner may have deleted the file: then look again.
                current = os.path.samestat(os.fstat(descriptor), os.stat(path))
            except FileNotFoundError:
                current = False
            if current:
                yield descriptor
                return
        finally:
            _unlock(descriptor)
            os.close(descriptor)


if sys.platform == "win32":

    def _flock(descriptor: int) -> None:
        """Windows has no `flock`: two takeovers of one dead lock in the same instant are not told apart."""

    def _unlock(descriptor: int) -> None:
        """Nothing to undo."""

else:
    import fcntl

    def _flock(descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            # Some cluster file systems have no locks at all; there the file's content alone must do.
            if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                raise

    def _unlock(descriptor: int) -> None:
        # Said aloud, since a child forked meanwhile shares the descriptor and would go on holding it.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
