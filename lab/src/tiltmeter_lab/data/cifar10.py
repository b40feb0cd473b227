"""cifar10: small colour photographs of ten classes (Krizhevsky, 2009), in the binary version."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiltmeter.data.public.presence import contents
from tiltmeter_lab.data.images import Images, Part

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FILES = {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)}
#: One byte of label, then 3 channels of 32 x 32.
RECORD = 1 + 3 * 32 * 32


def cifar10(part: Part = "train") -> Images:
    """50,000 training or 10,000 test photographs, 3 x 32 x 32 bytes each, channels first.

    >>> from tiltmeter.data import is_present
    >>> if is_present("cifar10"):  # else `tiltmeter data get cifar10`
    ...     photographs = cifar10("test")
    ...     assert photographs.x.shape == (10000, 3, 32, 32)
    ...     assert photographs.classes[photographs.y[0]] == "cat"

    Args:
        part: "train" or "test": which of the published parts.
    """
    if part not in FILES:
        raise ValueError(f"`part` should be 'train' or 'test'. Found part = {part!r}.")
    records = np.concatenate([_records(file) for file in FILES[part]])
    y = records[:, 0].astype(np.int64)
    counts = np.bincount(y, minlength=len(CLASSES))
    if len(set(counts.tolist())) > 1 or len(counts) > len(CLASSES):
        raise ValueError(
            "cifar10 should have every one of its ten classes equally often. Found labels up to "
            f"{len(counts) - 1}, from {counts.min()} to {counts.max()} times each: delete the files and run "
            "`tiltmeter data get cifar10`."
        )
    return Images(records[:, 1:].reshape(-1, 3, 32, 32), y, CLASSES)


def _records(file: str) -> np.ndarray:
    values = np.frombuffer(contents("cifar10", file), np.uint8)
    if values.size % RECORD:
        raise ValueError(
            f"{file} should hold records of {RECORD} bytes. Found {values.size} bytes: delete it and run "
            "`tiltmeter data get cifar10`."
        )
    return values.reshape(-1, RECORD)


def whole() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return cifar10("train"), cifar10("test")
