"""Images: labelled images as published, before groups are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np


def read_pictures(folder: Path, files: Sequence[str], size: int = 64) -> np.ndarray:
    """The named files as bytes, points x 3 x size x size: the largest central square, scaled down.

    Needs Pillow (`pip install 'tiltmeter[images]'`). The names come from a file of the data set; a name that leads out
    of the folder is refused.
    """
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Reading image files needs Pillow: pip install 'tiltmeter[images]'") from None

    if size < 1:
        raise ValueError(f"`size` should be at least 1. Found size = {size}.")
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder of images at {folder}.")
    root = folder.resolve()
    found = np.empty((len(files), 3, size, size), np.uint8)
    for i, name in enumerate(files):
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise ValueError(f"Image files should lie in {folder}. Found {name!r}.")
        try:
            with Image.open(path) as picture:
                square = ImageOps.fit(picture.convert("RGB"), (size, size))
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no image {name} in {folder}: unpack the data set again.") from None
        except (UnidentifiedImageError, OSError):
            raise ValueError(f"{path} should be a complete image file: unpack the data set again.") from None
        found[i] = np.asarray(square).transpose(2, 0, 1)
    return found


Part = Literal["train", "test"]


@dataclass(frozen=True, eq=False)
class Images:
    """Images `x` in bytes (grey: points x rows x columns; colour: points x channels x rows x columns), and classes.

    >>> few = Images(np.zeros((2, 28, 28), np.uint8), np.array([1, 0]), ("cat", "dog"))
    >>> few.numbers(["dog", 0])
    (1, 0)

    Args:
        x: Images in bytes: (points, rows, columns), or (points, channels, rows, columns) in colour.
        y: Class of every image as a number.
        classes: Names of the classes, in the order of the numbers.
    """

    x: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)

    def numbers(self, classes: object) -> tuple[int, ...]:
        """Classes, by name or number, as numbers."""
        if isinstance(classes, (str, int, np.integer)):
            classes = (classes,)
        return tuple(self._number(one) for one in classes)  # type: ignore[attr-defined]

    def _number(self, one: object) -> int:
        if isinstance(one, str) and one in self.classes:
            return self.classes.index(one)
        if isinstance(one, (int, np.integer)) and 0 <= one < len(self.classes):
            return int(one)
        raise KeyError(f"No class {one!r}. There are: {', '.join(self.classes)}.")

    def floats(self) -> np.ndarray:
        """Images as numbers from 0 to 1."""
        return np.asarray(self.x, dtype=np.float32) / np.float32(255)

    def standard(self) -> np.ndarray:
        """Images scaled to mean 0 and standard deviation 1 over all pixels of all images."""
        return standardised(self.x)


def standardised(x: np.ndarray) -> np.ndarray:
    """Numbers scaled to mean 0 and standard deviation 1 over all entries, in single precision.

    >>> standardised(np.array([[0, 255]], np.uint8)).tolist()
    [[-1.0, 1.0]]

    Args:
        x: Numbers of any shape.
    """
    values = np.asarray(x)
    middle, width = float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64))
    scaled = values.astype(np.float32)
    scaled -= np.float32(middle)
    scaled /= np.float32(width or 1.0)
    return scaled
