"""The writer's lock of a run directory: a file that names the process that writes.

The content of the file says who holds the lock, not a held `flock`: workers forked from the writer inherit its
descriptors and would keep its lock alive, or drop it. `flock` only protects the moment of taking the lock.

It is not possible to ask whether a writer on another host is alive. So a writer touches the file at most once a minute
(its heartbeat). If it has not done so for longer than the `patience` in the file, it counts as dead.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tiltmeter.record.directory.atomic_files import read_file
from tiltmeter.record.labelled import JSON
from tiltmeter.shown_text import quoted, shortened


@dataclass(frozen=True)
class Process:
    """A pid, its host and, where the system tells (Linux), when it started."""

    pid: int
    host: str
    started: str | None
    #: Processes of another container on the same host have numbers of their own, which mean nothing here.
    namespace: str | None = None

    @classmethod
    def this(cls) -> Process:
        status = _status(os.getpid())
        return cls(os.getpid(), socket.gethostname(), None if status is None else status[1], _namespace())

    @property
    def elsewhere(self) -> bool:
        """Whether it runs on another host, or in another container, where it cannot be asked."""
        return self.host != socket.gethostname() or self.namespace not in (None, _namespace())

    def alive(self) -> bool:
        """Whether it still runs. One on another host cannot be asked and counts as alive."""
        if self.elsewhere:
            return True
        if not _exists(self.pid):
            return False
        status = _status(self.pid)
        if status is None:
            return True
        state, started = status
        # A zombie process has ended.
        return state not in "ZX" and self.started in (None, started)

    def __str__(self) -> str:
        if self.elsewhere:
            return f"process {self.pid} on {shortened(self.host, 60)}"
        return f"this very process (pid {self.pid})" if self.pid == os.getpid() else f"process {self.pid}"

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Process:
        pid, host, started = value["pid"], value["host"], value["started"]
        if not (isinstance(pid, int) and 0 < pid < 2**31 and isinstance(host, str)):
            raise ValueError(f"A process should have a pid and a host. Found {quoted(value)}.")
        return cls(pid, host, started, value.get("namespace"))


def _namespace() -> str | None:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def _status(pid: int) -> tuple[str, str] | None:
    """Return state letter and start of a process on Linux; None elsewhere. Boot and tick together are unique."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return fields[0].decode(), f"{boot}:{int(fields[19])}"
    except (OSError, ValueError, IndexError):
        return None


if sys.platform == "win32":

    def _exists(pid: int) -> bool:
        # `os.kill(pid, 0)` would interrupt the process there.
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(0x1000, False, pid)
        if handle:
            ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)

else:

    def _exists(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


#: The fewest seconds between two heartbeats.
BEAT = 60.0
#: Seconds without a heartbeat after which a writer on another host counts as dead.
PATIENCE = 3600.0
#: The same, as a multiple of its longest pause so far.
TIMES_LONGEST = 10.0


#: Fewer writers than this, one after another, has any run.
MOST_WRITERS = 10_000


class Lock:
    """Takes the lock when it is made: `BlockingIOError` if a live process holds it; that of a dead one is taken over.

    `patience` is the number of seconds without a heartbeat after which another host may count this writer as dead. The
    more often a writer beats, the smaller it can be.
    """

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self._path = path
        self._token = uuid.uuid4().hex  # distinguishes two writers within one process
        self._process = Process.this()
        self._patience = patience
        self._beaten = time.monotonic()
        #: Higher than that of the writer from which the lock was taken over.
        self.number = 0
        self.take()

    def take(self, known: str | None = None) -> None:
        """Take the lock, again after the file was deleted by hand; `BlockingIOError` if another writer came first."""
        with _guard(self._path, create=True) as descriptor:
            holder = live_writer(self._path, by_its_clock=True)
            if holder is not None and _read(self._path).get("token") != known:
                raise BlockingIOError(busy(self._path, holder))
            if known is None and writer(self._path) is not None:
                before = _read(self._path).get("number")
                if not isinstance(before, int) or not 0 <= before < MOST_WRITERS - 1:
                    before = 0  # nobody wrote this number
                self.number = max(self.number, before + 1)
            self._write(descriptor)

    def _write(self, descriptor: int) -> None:
        # Overwritten in place and padded, so that a reader without the guard sees either the old or the new owner.
        owner = {**self._process.to_json(), "token": self._token, "patience": self._patience, "number": self.number}
        self._written = json.dumps(owner).ljust(512).encode()
        os.write(descriptor, self._written)

    def at_least(self, number: int) -> None:
        """Have at least this number, and say so in the file; `BlockingIOError` if it names another owner."""
        if number >= MOST_WRITERS:
            raise ValueError(f"A run can be continued {MOST_WRITERS - 1:,} times. Found more in {self._path.parent}.")
        self.number = max(self.number, number)
        with self.kept() as descriptor:
            self._write(descriptor)

    @contextlib.contextmanager
    def kept(self) -> Iterator[int]:
        """Let nobody take the lock over meanwhile; `BlockingIOError` if somebody has."""
        with _guard(self._path, create=True) as descriptor:
            if _read(self._path).get("token") != self._token:
                raise BlockingIOError(busy(self._path, writer(self._path) or self._process))
            yield descriptor

    @property
    def mine(self) -> bool:
        """Whether this is the process that took the lock, and not one forked from it."""
        return os.getpid() == self._process.pid

    def held(self) -> bool:
        """Whether the file still names this lock, so that nobody else has written meanwhile."""
        return _bytes(self._path) == self._written or _read(self._path).get("token") == self._token

    def beat(self) -> None:
        """Show that the writer is alive. It may be called often: the file is touched at most once a minute."""
        now = time.monotonic()
        silence = now - self._beaten
        if silence < BEAT or not self.mine:
            return
        self._beaten = now
        with contextlib.suppress(OSError):
            if TIMES_LONGEST * silence > self._patience and self.held():
                self._patience = TIMES_LONGEST * silence
                self.take(self._token)
            os.utime(self._path)

    def release(self) -> None:
        """Release the lock; does nothing in a forked child, or if the file names another owner."""
        if not self.mine:
            return
        with contextlib.suppress(FileNotFoundError), _guard(self._path, create=False) as descriptor:
            if _read(self._path).get("token") == self._token:
                os.ftruncate(descriptor, 0)
                with contextlib.suppress(PermissionError):  # Windows keeps open files; an empty one is free
                    self._path.unlink()


def writer(path: Path) -> Process | None:
    """Return the owner in the lock file; None without a file, or if it is empty."""
    try:
        return Process.from_json(_read(path))
    except (ValueError, KeyError):
        return None


def live_writer(path: Path, by_its_clock: bool = False) -> Process | None:
    """Return the owner in the lock file if that process is still alive, as far as this host can tell.

    For another host, the time without a heartbeat is measured by the clock of the file system, if the caller may write
    there.
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
    """Return the time by the clock of the file system, which on a shared disk may differ from that of this host."""
    with tempfile.TemporaryFile(dir=path.parent) as probe:
        return os.fstat(probe.fileno()).st_mtime


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
