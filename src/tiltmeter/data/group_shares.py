"""share_of: the share of each group, of the data or as asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData


def share_of(data: GroupedData, proportions: Mapping[Any, float] | None) -> np.ndarray:
    """The share of each group, in order: the given proportions (normalised), or those of the data."""
    if proportions is None:
        return np.asarray(list(data.sizes.values()), dtype=float) / len(data)
    if not isinstance(proportions, Mapping):
        raise TypeError(f"`proportions` should map groups to shares. Found {type(proportions).__name__}.")
    for group in proportions:
        if group not in data.groups:
            raise KeyError(f"`proportions`: no group {group!r}. There are: {', '.join(map(repr, data.groups))}.")
    shares = np.asarray([float(proportions.get(group, 0.0)) for group in data.groups])
    if not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
        raise ValueError(f"`proportions` should be shares, not negative and not all zero. Found {dict(proportions)}.")
    return np.asarray(shares / shares.sum())
