"""Lines: an append-only file of strict JSON in which a line is whole or absent, except a torn last one."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class Lines:
    """The writing end. A line is one `os.write`: once `append` returns it is with the operating system."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o666)
        self._whole: int | None = None  # where to cut off the rest of a failed line, if that failed too

    @property
    def end(self) -> int:
        """Where the next line will start. Asked of the file: an interrupt cannot put it out of date."""
        return os.fstat(self._descriptor).st_size if self._whole is None else self._whole

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one line; on any failure, cut off what was written of it."""
        data = memoryview(json.dumps(entry, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        if self._whole is not None:
            self.cut(self._whole)
        start = self.end
        try:
            # A full disk takes what fits; only writing the rest tells why.
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BaseException:
            self._whole = start
            with contextlib.suppress(OSError):
                self.cut(start)
            raise

    def cut(self, end: int) -> None:
        """Drop everything from this byte on."""
        os.ftruncate(self._descriptor, end)
        self._whole = None

    def close(self) -> None:
        os.close(self._descriptor)


def read_lines(path: Path) -> Iterator[tuple[int, int, Any]]:
    """Number, end in bytes and content of every whole line; a ValueError as content says what is wrong with it."""
    end = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return  # torn, or still being written: more may follow it by the time it is read
            end += len(line)
            try:
                yield number, end, _DECODER.decode(line.decode())
            except (ValueError, RecursionError) as error:
                yield number, end, ValueError(f"this is not JSON: {error}")


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
