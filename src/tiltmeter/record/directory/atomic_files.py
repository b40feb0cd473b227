"""Files that appear complete or not at all: written under another name, then renamed.

This protects against the death of the process at any instant (`kill -9`). Nothing is synced to the disk, so a power cut
may still lose the last seconds.
"""

from __future__ import annotations

import io
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from tiltmeter.record.directory.seal import sealed_file
from tiltmeter.record.quoted import shortened


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write a file so that no reader ever sees only a part of it."""
    aside = path.with_name(path.name + ".aside")
    try:
        aside.write_bytes(data)
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def explained(error: OSError, before: str, after: str = "") -> OSError:
    """Return an operating system error as part of a sentence, of the same kind and number."""
    sentence = type(error)(f"{before}{error.strerror or error}.{after}")
    sentence.errno = error.errno
    return sentence


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON file without a checksum."""
    write_atomically(path, _text(value))


def write_sealed_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON file of a run directory, with its checksum as the last entry."""
    write_atomically(path, sealed_file(_text(value)))


def _text(value: dict[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False, indent=1).encode()


def write_array(path: Path, values: np.ndarray) -> int:
    """Write a NumPy file and return its checksum. It is built in memory, because `np.save` hides a full disk."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_atomically(path, buffer.getbuffer())
    return zlib.crc32(buffer.getbuffer())


def write_array_rows(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], parts: Iterable[np.ndarray]) -> None:
    """Write a NumPy file from consecutive rows, for arrays that do not fit in memory; it appears when it is complete.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_array_rows(Path(folder) / "a.npy", (4, 2), np.dtype(float), (np.full((2, 2), i) for i in range(2)))
    ...     np.load(Path(folder) / "a.npy")[:, 0].tolist()
    [0.0, 0.0, 1.0, 1.0]

    Written by plain writes, so that a full disk is an error; through a memory map it would kill the process.
    """
    aside = path.with_name(path.name + ".aside")
    try:
        with aside.open("wb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for part in parts:
                file.write(np.ascontiguousarray(part, dtype=dtype).data)
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def read_array(path: Path, dtype: str, shape: tuple[int, ...], checksum: int | None = None) -> np.ndarray:
    """Return the array that `write_array` wrote; a ValueError says what is wrong with the file."""
    with _errors_told(path), path.open("rb") as file:
        order = _checked_header(file, path, dtype, shape)
        here = file.tell()
        values = np.frombuffer(file.read(), dtype=dtype).reshape(shape, order=order)
        if checksum is not None:
            file.seek(0)
            if zlib.crc32(values.ravel(order="K").data, zlib.crc32(file.read(here))) != checksum:
                raise ValueError("its checksum does not match: it was changed after it was written")
    return values


def map_array(path: Path, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array in a file, read only where it is used; checked like that of `read_array`, but for a checksum.

    It is a plain array, so that results of it are in memory.
    """
    with _errors_told(path), path.open("rb") as file:
        order = _checked_header(file, path, dtype, shape)
        return np.asarray(np.memmap(file, np.dtype(dtype), "r", file.tell(), shape, order))


@contextmanager
def _errors_told(path: Path) -> Iterator[None]:
    place = f"{path.parent.name}/{path.name}"
    try:
        yield
    except FileNotFoundError:
        raise ValueError(f"{place} is missing") from None
    except _Mismatch as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"{place} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, MemoryError, OverflowError) as error:
        raise ValueError(f"{place} cannot be read: {shortened(str(error))}") from None


def _checked_header(file: BinaryIO, path: Path, dtype: str, shape: tuple[int, ...]) -> Literal["C", "F"]:
    """Read up to the numbers, and return their order; a file with other numbers than these is refused."""
    found = _read_header(file)
    expected = f"{dtype} of shape {shape}"
    if found[:2] != (dtype, shape):
        held = shortened(f"{found[0]} of shape {found[1]}")
        raise _Mismatch(f"{path.parent.name}/{path.name} holds {held} where {shortened(expected)} is expected")
    # Compared before anything is allocated: a damaged header may ask for any amount of memory.
    length = math.prod(shape) * np.dtype(dtype).itemsize
    if os.fstat(file.fileno()).st_size - file.tell() != length:
        raise ValueError(f"it does not have the {length} bytes of {expected} after its header")
    return "F" if found[2] else "C"


class _Mismatch(ValueError):
    """An error whose text is already a sentence."""


def _read_header(file: BinaryIO) -> tuple[str, tuple[int, ...], bool]:
    """Return type, shape and order; errors of NumPy's parser become our own sentences."""
    if file.read(6) != b"\x93NUMPY":
        raise ValueError("it does not begin like a NumPy file")
    file.seek(0)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except Exception as error:  # the parser inside may raise many kinds of errors
        raise ValueError("its header is damaged") from error
    if dtype.hasobject:
        raise ValueError("it holds objects, and nothing is ever unpickled")
    return str(dtype), shape, fortran
