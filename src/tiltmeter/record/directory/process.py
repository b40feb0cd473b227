"""Process: who writes, known by pid, host, pid namespace and start, so that a dead writer is told from a live one."""

from __future__ import annotations

import os
import socket
import sys
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

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
        return _process(os.getpid())

    @property
    def short(self) -> str:
        """The same in a few letters, for names of files."""
        machine, started = (zlib.crc32(part.encode()) for part in (f"{self.host} {self.namespace}", str(self.started)))
        return f"{machine:08x}-{self.pid:x}-{started:08x}"

    @staticmethod
    def short_has_ended(short: str) -> bool:
        """Whether the process of this `short` ran on this machine and has ended."""
        this, parts = Process.this().short.split("-"), short.split("-")
        if len(parts) != 3 or parts[0] != this[0]:
            return False
        number = int(parts[1], 16)
        if not 0 < number < 2**31:
            return False
        status = _status(number) if _exists(number) else ("X", "")
        if status is None:
            return False
        return status[0] in "ZX" or f"{zlib.crc32(status[1].encode()):08x}" != parts[2]

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


@cache
def _process(pid: int) -> Process:
    """Found once for each process: a forked one has another pid, and asks again."""
    status = _status(pid)
    return Process(pid, socket.gethostname(), None if status is None else status[1], _namespace())


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
