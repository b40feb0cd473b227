"""coloured: images whose colour predicts the label better than their shape does (Arjovsky et al., 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData


def coloured(
    images: Any, positive: Any, agreement: float = 0.9, label_noise: float = 0.25, seed: int = 0
) -> GroupedData:
    """Images in one of two colour channels; labels 0 and 1 are those of `positive`, with a share `label_noise` flipped.

    >>> images = np.ones((400, 8, 8))
    >>> data = coloured(images, np.arange(400) % 2)
    >>> data.x.shape, data.groups
    ((400, 2, 8, 8), ((0, 0), (0, 1), (1, 0), (1, 1)))

    The colour equals the (flipped) label with probability `agreement`. With the defaults, colour predicts the label
    better (0.9) than shape can (0.75); a data set with `agreement=0.1` shows which model relies on colour. Groups are
    the pairs (shape, colour) of 0 and 1; shape and colour agree if both are equal.

    Args:
        images: Grey images, one per row.
        positive: Which images have label 1 before labels are flipped.
        agreement: Probability that the colour equals the label.
        label_noise: Share of labels that is flipped.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    for name, value in (("agreement", agreement), ("label_noise", label_noise)):
        if not 0 <= value <= 1:
            raise ValueError(f"`{name}` should be a share from 0 to 1. Found {name} = {value}.")
    pictures, shape = np.asarray(images), np.asarray(positive).astype(np.int64)
    if pictures.ndim != 3 or len(pictures) != len(shape) or not np.isin(shape, (0, 1)).all():
        raise ValueError(
            "`images` should be (points, height, width) and `positive` one 0 or 1 for each. "
            f"Found shapes {pictures.shape} and {shape.shape}."
        )
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(len(shape)) < label_noise, 1 - shape, shape)
    colour = np.where(rng.random(len(shape)) < agreement, y, 1 - y)
    x = np.zeros((len(shape), 2, *pictures.shape[1:]), dtype=np.float32)
    x[np.arange(len(shape)), colour] = pictures
    return GroupedData(x, y, list(zip(shape.tolist(), colour.tolist(), strict=True)))
