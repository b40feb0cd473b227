"""The writer's lock of a run directory: a file that names the process that writes.

Who holds the lock is a matter of what the file says, not of a held `flock`: workers forked from the writer inherit
its descriptors and would otherwise keep its lock alive, or drop it. `flock` only guards the instant of deciding.

A writer on another host cannot be asked whether it lives. It shows it by touching the file, at most once a minute; one
that has been silent for longer than the `patience` it wrote down counts as dead.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from tiltmeter.record.directory.process import Process

#: Seconds between two touches, at least.
BEAT = 60.0
#: Seconds of silence after which a writer on another host counts as dead.
PATIENCE = 3600.0
#: The same, as a multiple of its longest silence so far.
TIMES_LONGEST = 10.0


class Lock:
    """Taken on construction: `BlockingIOError` if a live process holds it; a dead one's is taken over.

    `patience` is how many seconds of silence another host should take for death: the more often a writer beats, the
    fewer are needed.
    """

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self._path = path
        self._token = uuid.uuid4().hex  # tells two writers within one process
        self._process = Process.this()
        self._patience = patience
        self._beaten = time.monotonic()
        self._take(None)

    def _take(self, known: str | None) -> None:
        with _guard(self._path, create=True) as descriptor:
            holder = live_writer(self._path, by_its_clock=True)
            if holder is not None and _read(self._path).get("token") != known:
                raise BlockingIOError(busy(self._path, holder))
            # Overwritten in place and padded: a reader without the guard sees the old owner or the new one.
            said = {**self._process.to_json(), "token": self._token, "patience": self._patience}
            os.write(descriptor, json.dumps(said).ljust(512).encode())

    @property
    def mine(self) -> bool:
        """Whether this is the process that took the lock, and not one forked from it."""
        return os.getpid() == self._process.pid

    def held(self) -> bool:
        """Whether the file still names this lock. None other may have written meanwhile."""
        return _read(self._path).get("token") == self._token

    def taken_by(self) -> Process | None:
        """Whom the file names instead; None if it names nobody."""
        return writer(self._path)

    def take_again(self) -> None:
        """After the file was deleted by hand: `BlockingIOError` if another writer came first."""
        self._take(None)

    def beat(self) -> None:
        """Show that the writer lives. Call it as often as you like: a minute must pass before the file is touched."""
        now = time.monotonic()
        silence = now - self._beaten
        if silence < BEAT or not self.mine:
            return
        self._beaten = now
        with contextlib.suppress(OSError):
            if TIMES_LONGEST * silence > self._patience and self.held():
                self._patience = TIMES_LONGEST * silence
                self._take(self._token)
            os.utime(self._path)

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


def live_writer(path: Path, by_its_clock: bool = False) -> Process | None:
    """Whom the lock file names, if that process still lives, as far as this host can tell.

    The silence of another host is measured by the clock that dates the lock file, if the caller may write beside it.
    """
    holder = writer(path)
    if holder is None or not holder.alive():
        return None
    patience = _read(path).get("patience")
    if holder.elsewhere and isinstance(patience, (int, float)):
        try:
            silence = (_clock_beside(path) if by_its_clock else time.time()) - os.stat(path).st_mtime
        except FileNotFoundError:
            return None  # released meanwhile
        if silence > patience:
            return None
    return holder


def busy(path: Path, holder: Process) -> str:
    """The sentence for a second writer."""
    return (
        f"{path.parent} is being recorded by {holder}. One run has one writer: close that recorder or choose another "
        f"directory. If that process is gone for certain, delete {path}."
    )


def _clock_beside(path: Path) -> float:
    """The time by the clock that dates the lock file, which on a shared disk need not be that of this host."""
    with tempfile.TemporaryFile(dir=path.parent) as probe:
        return os.fstat(probe.fileno()).st_mtime


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
        # Explicitly, since a child forked meanwhile shares the descriptor and would go on holding it.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
