"""Files that appear complete or not at all: written under another name, synced to the disk, then renamed.

This protects against the death of the process at any instant (`kill -9`) and against a power cut: no name is given to
what is not on the disk, and the folder that holds the name is synced after it.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import stat
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from tiltmeter.record.directory.process import Process
from tiltmeter.shown_text import shortened

#: How the names of files and folders end that are being written.
ASIDE = ".aside"
#: What stands before it: who writes, and a number that no other process has.
_WRITTEN_ASIDE = re.compile(r"\.(?P<writer>[0-9a-f-]+)\.[0-9a-f]{12}\.aside")
#: What is said of a file whose checksum does not match.
CHANGED = "its checksum does not match: it was changed after it was written"
_TAIL = len(b',"crc":"00000000"}\n')
_LOOSE = re.compile(rb',\s*"crc":\s*"([0-9a-f]{8})"\s*\}\s*')


def sealed_line(text: bytes) -> bytes:
    """The text of an object as a line with its checksum.

    >>> sealed_line(b'{"a":1}')
    b'{"a":1,"crc":"a702fc6e"}\\n'
    """
    return text[:-1] + b',"crc":"%08x"}\n' % zlib.crc32(text[:-1])


def line_is_intact(line: bytes) -> bool:
    """Whether a line ends with the checksum of its text."""
    return line[-_TAIL:] == b',"crc":"%08x"}\n' % zlib.crc32(line[:-_TAIL])


def texts_if_intact(lines: list[bytes]) -> list[bytes] | None:
    """The texts of many lines without their checksums and closing braces, or None if any was changed."""
    texts = [line[:-_TAIL] for line in lines]
    # Joined into one text: formatting and comparing line by line takes longer than the checksums.
    expected = b',"crc":"%08x"}\n' * len(lines) % tuple(map(zlib.crc32, texts))
    return texts if expected == b"".join([line[-_TAIL:] for line in lines]) else None


def line_is_sealed(line: bytes) -> bool:
    """Whether a line ends with a checksum, right or wrong."""
    return line[-_TAIL:].startswith(b',"crc":"')


def sealed_file(text: bytes) -> bytes:
    """The text of an object, over several lines, with its checksum."""
    body = text.rstrip()[:-1].rstrip()
    return body + b',\n "crc": "%08x"\n}\n' % zlib.crc32(body)


def file_is_intact(text: bytes) -> bool | None:
    """Whether a file ends with the checksum of its text; None if it ends with none."""
    start = text.rfind(b",", 0, text.rfind(b'"crc"') + 1)
    found = _LOOSE.fullmatch(text, start) if start >= 0 else None
    return None if found is None else int(found[1], 16) == zlib.crc32(text[:start])


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; a ValueError for anything else under its name, as a pipe, which would block for good."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{path} is damaged: it should be a file. Found a folder, a pipe or a device.")
    return os.fdopen(descriptor, "rb")


def read_file(path: Path) -> bytes:
    """The whole content of a file; anything else under its name is refused."""
    with open_file(path) as file:
        return file.read()


def sync_file(descriptor: int) -> None:
    """Have the content of an open file on the disk, with its length; its dates may wait."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk: without this, a file may be there and its name not."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except PermissionError:  # Windows opens no folders
        return
    try:
        # Some network file systems refuse it for folders, and there is nothing else to ask.
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are not there, and have their names on the disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
    sync_folder(folder.parent)


def aside_of(path: Path) -> Path:
    """Another name in the same folder, which no other process has and which says who writes."""
    return path.with_name(f"{path.name}.{Process.this().short}.{uuid.uuid4().hex[:12]}{ASIDE}")


def remove_left_over(folder: Path) -> None:
    """Remove the files and folders that processes left aside which have ended on this machine."""
    for entry in list(os.scandir(folder)):
        found = _WRITTEN_ASIDE.search(entry.name)
        if found is not None and Process.short_has_ended(found["writer"]):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with suppress(OSError):
                    os.unlink(entry.path)


@contextmanager
def written_aside(path: Path) -> Iterator[int]:
    """Give an open file to write to; at the end it is synced and gets its name, or nothing stays.

    Its folder is synced afterwards.
    """
    aside = aside_of(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(aside, flags, 0o666)
    try:
        try:
            yield descriptor
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise
    sync_folder(path.parent)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write everything, however little the system takes at a time."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write a file so that no reader ever sees only a part of it, nor finds one after a power cut."""
    with written_aside(path) as descriptor:
        write_all(descriptor, data)


def explained(error: OSError, before: str, after: str = "") -> OSError:
    """Return an operating system error as part of a sentence, of the same kind and number."""
    sentence = type(error)(f"{before}{error.strerror or error}.{after}")
    sentence.errno = error.errno
    return sentence


def write_sealed_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON file with its checksum as the last entry."""
    write_atomically(path, sealed_file(_text(value)))


def read_sealed_json(path: Path, what: str, cure: str = "") -> dict[str, Any]:
    """Read what `write_sealed_json` wrote; a ValueError names the file and says what is wrong with it.

    Args:
        path: File to read.
        what: What it should hold, for the sentence.
        cure: What to do about a damaged file.
    """
    text = read_file(path)
    ending = f" {cure}" if cure else ""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {shortened(str(error))}.{ending}") from None
    if not isinstance(said, dict):
        raise ValueError(f"{path} is damaged: it should hold {what}.{ending}")
    if "crc" not in said:
        raise ValueError(f"{path} is damaged: its checksum is missing.{ending}")
    if not file_is_intact(text):
        raise ValueError(f"{path} is damaged: {CHANGED}.{ending}")
    return {key: value for key, value in said.items() if key != "crc"}


def _text(value: dict[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False, indent=1).encode()


def write_array(path: Path, values: np.ndarray) -> int:
    """Write a NumPy file and return its checksum. It is built in memory, because `np.save` hides a full disk."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_atomically(path, buffer.getbuffer())
    return zlib.crc32(buffer.getbuffer())


def read_array(path: Path, dtype: str, shape: tuple[int, ...], checksum: int | None = None) -> np.ndarray:
    """Return the array that `write_array` wrote; a ValueError says what is wrong with the file."""
    with _errors_told(path), open_file(path) as file:
        order = _checked_header(file, path, dtype, shape)
        here = file.tell()
        values = np.frombuffer(file.read(), dtype=dtype).reshape(shape, order=order)
        if checksum is not None:
            file.seek(0)
            if zlib.crc32(values.ravel(order="K").data, zlib.crc32(file.read(here))) != checksum:
                raise ValueError(CHANGED)
    return values


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
