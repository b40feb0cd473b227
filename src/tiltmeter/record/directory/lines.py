"""Lines: an append-only file of strict JSON whose lines are complete, except possibly the last."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tiltmeter.record.directory.atomic_files import (
    line_is_intact,
    line_is_sealed,
    open_file,
    sealed_line,
    sync_file,
    texts_if_intact,
    write_all,
)

#: Lines are decoded this many bytes at a time: far faster than one by one, and few enough objects at once that the
#: garbage collector stays fast.
BLOCK_BYTES = 2**14

#: What the line of an evaluation holds if no curve is new and no points are kept.
PLAIN_LOOK = {"kind", "time", "values"}
#: What a line may hold to be written by the faster encoder; of points it holds only places and checksums.
QUICK = PLAIN_LOOK | {"points"}
_STRICT = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class Lines:
    """Writes lines. A line is one `os.write`: once `append` returns, the operating system has it."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._path = path
        self._descriptor = os.open(path, flags, 0o666)
        self._whole: int | None = None  # where to cut off the rest of a failed line, if that failed too

    @property
    def end(self) -> int:
        """The byte where the next line will start, asked of the file itself."""
        return os.fstat(self._descriptor).st_size if self._whole is None else self._whole

    def end_in_place(self) -> int | None:
        """The same; None if the file no longer exists under its name: lines written to a deleted file are lost."""
        try:
            now = os.fstat(self._descriptor)
            if not os.path.samestat(now, os.stat(self._path)):
                return None
        except (FileNotFoundError, NotADirectoryError):
            return None
        return now.st_size if self._whole is None else self._whole

    def deleted(self) -> bool:
        """Whether the file was deleted."""
        return os.fstat(self._descriptor).st_nlink == 0

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one line with its checksum; on any failure, cut off what was written of it."""
        line = sealed_line(_encoded(entry))
        if self._whole is not None:
            self.cut(self._whole)
        start = self.end
        try:
            # A full disk takes a part of the line; only writing the rest raises the error.
            write_all(self._descriptor, line)
        except BaseException:
            self._whole = start
            with contextlib.suppress(OSError):
                self.cut(start)
            raise

    def sync(self) -> None:
        """Have all lines on the disk."""
        sync_file(self._descriptor)

    def cut(self, end: int) -> None:
        """Drop everything from this byte on."""
        os.ftruncate(self._descriptor, end)
        self._whole = None

    def close(self) -> None:
        os.close(self._descriptor)


def _encoded(entry: Mapping[str, Any]) -> bytes:
    # Most lines hold numbers that are known to be finite: for those the faster encoder, which would write NaN as null.
    if entry.keys() <= QUICK:
        with contextlib.suppress(UnicodeEncodeError):  # half of a character pair in a name
            return msgspec.json.encode(entry)
    return _STRICT.encode(entry).encode()


class Block(NamedTuple):
    """Consecutive lines: the number of the first, the content of each without its checksum, and the byte where each
    ends.

    A ValueError in place of an entry says what is wrong with that line.
    """

    first: int
    entries: list[Any]
    ends: list[int]


def read_blocks(path: Path, first: int = 1, end: int = 0) -> Iterator[Block]:
    """Yield all complete lines from byte `end` on, where line `first` begins."""
    with open_file(path) as file:
        file.seek(end)
        while lines := file.readlines(BLOCK_BYTES):
            torn = not lines[-1].endswith(b"\n")
            if torn:
                lines.pop()  # or still being written
            if lines:
                ends = list(accumulate(map(len, lines), initial=end))[1:]
                yield Block(first, _decode(lines), ends)
                first, end = first + len(lines), ends[-1]
            if torn:
                return


def _decode(lines: list[bytes]) -> list[Any]:
    texts = texts_if_intact(lines)
    if texts is not None:
        try:
            entries: list[Any] = msgspec.json.decode(b"[" + b"},".join(texts) + b"}]")
            if len(entries) == len(lines):
                return entries
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass  # one by one, to find the bad one
    return [_decode_one(line) for line in lines]


def _decode_one(line: bytes) -> Any:
    intact = line_is_intact(line)
    if intact:
        line = line[: line.rindex(b",")] + b"}"
    try:
        entry = _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:
        return ValueError(f"this is not JSON: {error}")
    if intact:
        return entry
    return ValueError(
        "its checksum does not match: the line was changed after it was written"
        if line_is_sealed(line)
        else "its checksum is missing"
    )


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
