"""Image files: the image files of a folder as one array."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
