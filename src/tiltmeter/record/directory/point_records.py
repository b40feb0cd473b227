"""Point records: the arrays of `points/`, one file for each name, one record of fixed length for each evaluation kept.

A record is the values in C order, little-endian; truth values are packed eight to a byte, the first in the highest bit.
It is written before the line that names it, so a record without a line may be overwritten by its own writer.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from tiltmeter.record.contents import PointColumn
from tiltmeter.record.directory.atomic_files import make_folder, open_file, sync_file, sync_folder, write_all
from tiltmeter.record.layout import Layout, Time
from tiltmeter.shown_text import quoted

POINTS = "points"


def record_bytes(layout: Layout) -> int:
    """How many bytes one record of this layout has.

    >>> record_bytes(Layout(("point",), (2000,), "bool"))
    250
    """
    kind = np.dtype(layout.dtype)
    return (layout.size + 7) // 8 if kind.kind == "b" else layout.size * kind.itemsize


def encode(values: np.ndarray) -> bytes:
    """One reading as a record."""
    if values.dtype.kind == "b":
        return np.packbits(values.ravel()).tobytes()
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


def decode(data: bytes | memoryview, layout: Layout, count: int) -> np.ndarray:
    """Return consecutive records as one read-only array."""
    kind, shape = np.dtype(layout.dtype), (count, *layout.shape)
    if kind.kind == "b":
        rows = np.frombuffer(data, np.uint8).reshape(count, record_bytes(layout))
        found = np.unpackbits(rows, axis=1, count=layout.size).view(bool).reshape(shape)
    else:
        found = np.frombuffer(data, kind.newbyteorder("<")).astype(kind, copy=False).reshape(shape)
    found.flags.writeable = False
    return found


class RecordWriter:
    """The writing end of one file of records."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor = os.open(path, flags, 0o666)
        sync_folder(path.parent)
        self._synced = True

    def write(self, record: int, data: bytes) -> int:
        """Write a record to its place, over what a failed evaluation may have left there; return its checksum."""
        self._synced = False
        os.lseek(self._descriptor, record * len(data), os.SEEK_SET)
        write_all(self._descriptor, data)
        return zlib.crc32(data)

    def sync(self) -> None:
        """Have all records on the disk."""
        if not self._synced:
            sync_file(self._descriptor)
            self._synced = True

    def deleted(self) -> bool:
        return os.fstat(self._descriptor).st_nlink == 0

    def close(self) -> None:
        os.close(self._descriptor)


def first_damaged(column: PointColumn, directory: Path) -> tuple[int, str] | None:
    """The line that names the first record which is not there as it was written, and what is wrong with it.

    Each record is read once: `column.verified` counts those known to be whole.
    """
    length, path = record_bytes(column.layout), directory / POINTS / column.file
    place = f"{POINTS}/{column.file}"
    todo = range(column.verified, len(column.records))
    try:
        with open_file(path) as file:
            for number in todo:
                file.seek(column.records[number] * length)
                if zlib.crc32(file.read(length)) != column.checksums[number]:
                    held = os.fstat(file.fileno()).st_size
                    short = (column.records[number] + 1) * length > held
                    fact = "fewer bytes than its records need" if short else "a record with another checksum"
                    return column.lines[number], f"{place} has {fact}"
                column.verified = number + 1
    except FileNotFoundError:
        return (column.lines[todo[0]], f"{place} is missing") if todo else None
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return (column.lines[todo[0]], f"{place} cannot be read: {said}") if todo else None
    return None


@dataclass(frozen=True, eq=False)
class StoredPoints:
    """The records of one name in a run directory, read when asked for."""

    name: str
    path: Path
    layout: Layout
    times: tuple[Time, ...]
    records: tuple[int, ...]
    checksums: tuple[int, ...]

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"time": len(self.times), **self.layout.sizes}

    def read(self) -> xr.DataArray:
        data = self._data()
        values = decode(data, self.layout, len(self.times))
        try:
            return self.layout.build(values, list(self.times)).rename(self.name)
        except (ValueError, TypeError) as error:
            raise ValueError(f"The points of {quoted(self.name)} do not fit their layout: {error}") from None

    def _data(self) -> bytes:
        length = record_bytes(self.layout)
        place = f"{self.path.parent.name}/{self.path.name}"
        try:
            with open_file(self.path) as file:
                held = os.fstat(file.fileno()).st_size
                if self.records and (max(self.records) + 1) * length > held:
                    raise ValueError(f"{place} is damaged: it has {held} bytes, fewer than its records need.")
                parts = []
                for record in self.records:
                    file.seek(record * length)
                    parts.append(file.read(length))
        except OSError as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            raise ValueError(
                f"The points of {quoted(self.name)} are read when asked for, but {place} {reason}."
            ) from None
        for time, part, checksum in zip(self.times, parts, self.checksums, strict=True):
            if zlib.crc32(part) != checksum:
                raise ValueError(
                    f"{place} is damaged: the values of {quoted(self.name)} at time {time} do not match their checksum."
                )
        return b"".join(parts)


def stored_points(column: PointColumn, directory: Path) -> StoredPoints:
    """The records of one name in this directory."""
    places = tuple(column.times), tuple(column.records), tuple(column.checksums)
    return StoredPoints(column.name, directory / POINTS / column.file, column.layout, *places)
