"""The writer's lock of a run directory: a file that names the process that writes.

The content of the file says who holds the lock, not a held `flock`: workers forked from the writer inherit its
descriptors and would keep its lock alive, or drop it. `flock` only protects the moment of taking the lock.

Whether a process on another host or in another container lives cannot be asked: its lock is never taken over. The
sentence that refuses names it and says how to remove its lock. A lock that was copied together with its folder binds
nobody.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from tiltmeter.record.directory.atomic_files import read_file
from tiltmeter.record.directory.process import Process


class Lock:
    """Takes the lock when it is made: `BlockingIOError` if a process holds it that lives, or that cannot be asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = uuid.uuid4().hex  # distinguishes two writers within one process
        self._process = Process.this()
        self.take()

    def take(self) -> None:
        """Take the lock, again after the file was deleted by hand; `BlockingIOError` if another writer came first."""
        with _guard(self._path, create=True) as descriptor:
            holder = live_writer(self._path)
            if holder is not None:
                raise BlockingIOError(busy(self._path, holder))
            place = [_digest(self._path), os.fstat(descriptor).st_ino]
            owner = {**self._process.to_json(), "token": self._token, "place": place}
            # Overwritten in place and padded, so that a reader without the guard sees either the old or the new owner.
            self._written = json.dumps(owner).ljust(512).encode()
            os.write(descriptor, self._written)

    @property
    def mine(self) -> bool:
        """Whether this is the process that took the lock, and not one forked from it."""
        return os.getpid() == self._process.pid

    def held(self) -> bool:
        """Whether the file still names this lock, so that nobody else has written meanwhile."""
        return _bytes(self._path) == self._written

    def release(self) -> None:
        """Release the lock; does nothing in a forked child, or if the file names another owner."""
        if not self.mine:
            return
        with contextlib.suppress(FileNotFoundError), _guard(self._path, create=False) as descriptor:
            if self.held():
                os.ftruncate(descriptor, 0)
                with contextlib.suppress(PermissionError):  # Windows keeps open files; an empty one is free
                    self._path.unlink()


def writer(path: Path) -> Process | None:
    """Return the owner in the lock file; None without a file, or if it is empty or a copy of another folder's lock."""
    said = _read(path)
    try:
        owner = Process.from_json(said)
    except (ValueError, KeyError):
        return None
    return None if _is_copy(path, said.get("place")) else owner


def _is_copy(path: Path, place: object) -> bool:
    """Whether a lock was taken under another name and is another file: a folder that was moved keeps its files."""
    if not (isinstance(place, list) and len(place) == 2):
        return False
    try:
        return bool(place[0] != _digest(path) and place[1] != os.stat(path).st_ino)
    except OSError:
        return False


def _digest(path: Path) -> str:
    """The name of a file, every link followed, in a few letters."""
    return hashlib.blake2b(os.fsencode(os.path.realpath(path)), digest_size=8).hexdigest()


def live_writer(path: Path) -> Process | None:
    """Return the owner in the lock file if that process is still alive, or cannot be asked."""
    holder = writer(path)
    return holder if holder is not None and holder.alive() else None


def busy(path: Path, holder: Process) -> str:
    """The sentence for a second writer."""
    return (
        f"{path.parent} is being recorded by {holder}. One run has one writer: close that recorder or choose another "
        f"directory. If that process is gone for certain, delete {path}."
    )


def _bytes(path: Path) -> bytes:
    """The content of the file; without Python's file objects, because this is asked at every evaluation."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return b""
    try:
        return os.read(descriptor, 1024)
    finally:
        os.close(descriptor)


def _read(path: Path) -> dict[str, object]:
    try:
        said = json.loads(read_file(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


@contextlib.contextmanager
def _guard(path: Path, *, create: bool) -> Iterator[int]:
    """Open the lock file while every other process that wants to take it waits."""
    while True:
        flags = os.O_RDWR | (os.O_CREAT if create else 0) | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o666)
        try:
            _flock(descriptor)
            try:
                # Between opening and locking, its last owner may have deleted the file: then try again.
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
        """Windows has no `flock`: two takeovers of one dead lock at the same instant are not detected."""

    def _unlock(descriptor: int) -> None:
        """Nothing to undo."""

else:
    import fcntl

    def _flock(descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            # Some cluster file systems have no locks; there the content of the file must be enough.
            if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                raise

    def _unlock(descriptor: int) -> None:
        # Explicitly, because a child forked meanwhile shares the descriptor and would keep holding it.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
