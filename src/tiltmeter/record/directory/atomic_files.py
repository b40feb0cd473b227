"""Files that appear whole or not at all: written aside, then renamed into place.

The promise is against the death of the process at any instant (`kill -9`); nothing is forced through to the
platter, so a power cut may still cost the last seconds.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write a file that no reader ever sees half of."""
    aside = path.with_name(path.name + ".aside")
    try:
        aside.write_bytes(data)
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def explained(error: OSError, before: str, after: str = "") -> OSError:
    """An error of the system as part of a sentence, of the same kind and with the same number."""
    sentence = type(error)(f"{before}{error.strerror or error}.{after}")
    sentence.errno = error.errno
    return sentence


def write_json(path: Path, value: dict[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, allow_nan=False, indent=1) + "\n").encode())


def write_array(path: Path, values: np.ndarray) -> None:
    """A NumPy file. Built in memory first, since `np.save` to a full disk loses the reason why it failed."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_atomically(path, buffer.getbuffer())


def read_array(path: Path, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """The array that `write_array` wrote; a ValueError states in a few words what is wrong with the file."""
    place = f"{path.parent.name}/{path.name}"
    try:
        with path.open("rb") as file:
            if file.read(6) != b"\x93NUMPY":
                raise ValueError("it does not begin like a NumPy file")
            file.seek(0)
            values = np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError:
        raise ValueError(f"{place} is missing") from None
    except (ValueError, EOFError, OSError, MemoryError, SyntaxError) as error:
        raise ValueError(f"{place} cannot be read: {' '.join(str(error).split())}") from None
    if values.shape != shape or str(values.dtype) != dtype:
        found = f"{values.dtype} of shape {values.shape}"
        raise ValueError(f"{place} holds {found} where {dtype} of shape {shape} is expected")
    return values
