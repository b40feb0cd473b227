"""mnist: handwritten digits (LeCun, Cortes, Burges)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tiltmeter.data.public.presence import contents, folder_of, wrong
from tiltmeter_lab.data.images import Images, Part

PREFIX = {"train": "train", "test": "t10k"}


def read_idx(data: bytes) -> np.ndarray:
    """The array in IDX bytes: two zero bytes, type 8, the number of dimensions, sizes, values.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])).tolist()
    [7, 8, 9]
    """
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise ValueError(f"an IDX file of bytes starts with 0, 0, 8. Found {list(data[:3])}")
    start = 4 + 4 * data[3]
    if len(data) < start:
        raise ValueError(f"an IDX header of {data[3]} sizes takes {start} bytes. Found {len(data)}")
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    values = np.frombuffer(data, np.uint8, offset=start)
    if values.size != int(np.prod(shape, dtype=np.int64)):
        raise ValueError(f"{' x '.join(map(str, shape))} bytes after the header. Found {values.size}")
    return values.reshape(shape).copy()


def idx_images(name: str, part: Part, classes: tuple[str, ...]) -> Images:
    """The images and labels of one part of a data set in the layout of MNIST."""
    if part not in PREFIX:
        raise ValueError(f"`part` should be 'train' or 'test'. Found part = {part!r}.")
    arrays = []
    for file in (f"{PREFIX[part]}-images-idx3-ubyte.gz", f"{PREFIX[part]}-labels-idx1-ubyte.gz"):
        try:
            arrays.append(read_idx(contents(name, file)))
        except ValueError as error:
            if "tiltmeter data get" in str(error):
                raise
            should, _, found = str(error).partition(". Found ")
            raise wrong(name, folder_of(name) / file, should, found) from None
    x, y = arrays
    if len(x) != len(y) or x.ndim != 3 or y.ndim != 1 or (len(y) and y.max() >= len(classes)):
        raise ValueError(
            f"{name} should have one picture and one label below {len(classes)} for each point. "
            f"Found shapes {x.shape} and {y.shape}: run `tiltmeter data check {name}`."
        )
    return Images(x, y.astype(np.int64), classes)


CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag"),
    "Ankle boot",
)


def fashion_mnist(part: Part = "train") -> Images:
    """60,000 training or 10,000 test images, 28 x 28 bytes each.

    >>> from tiltmeter.data import is_present
    >>> if is_present("fashion-mnist"):  # else `tiltmeter data get fashion-mnist`
    ...     clothes = fashion_mnist("test")
    ...     assert clothes.x.shape == (10000, 28, 28)
    ...     assert clothes.classes[clothes.y[0]] == "Ankle boot"

    Args:
        part: "train" or "test": which of the published parts.
    """
    return idx_images("fashion-mnist", part, CLASSES)


MNIST_CLASSES = tuple("0123456789")


def mnist(part: Part = "train") -> Images:
    """60,000 training or 10,000 test images, 28 x 28 bytes each.

    >>> import os
    >>> if os.path.isdir(os.path.join(os.environ.get("TILTMETER_DATA", ""), "mnist")):
    ...     assert mnist("test").x.shape == (10000, 28, 28)

    Args:
        part: "train" or "test": which of the published parts.
    """
    return idx_images("mnist", part, MNIST_CLASSES)


def whole_mnist() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return mnist("train"), mnist("test")


def whole_fashion_mnist() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return fashion_mnist("train"), fashion_mnist("test")
