"""Example weights: the factor by which the loss of every point is multiplied in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData


def example_weights(data: GroupedData, weights: Mapping[Any, float] | None) -> np.ndarray | None:
    """One weight per point from {group or (group, label): number}, times the data's own weights; None if all are 1.

    >>> data = GroupedData(np.zeros((90, 1)), [0, 1] * 45, ["a", "a", "b"] * 30)
    >>> example_weights(data, {"b": 2.0, ("a", 1): 3.0})[:6].tolist()
    [1.0, 3.0, 2.0, 3.0, 1.0, 2.0]
    """
    if weights is None:
        return data.weights
    if not isinstance(weights, Mapping):
        raise TypeError(f"`weights` should map groups to numbers. Found {type(weights).__name__}.")
    found = np.ones(len(data)) if data.weights is None else data.weights.copy()
    labels = data.labels.tolist()
    for key, given in dict[Any, Any](weights).items():
        value = np.nan if isinstance(given, str) else float(given)
        if not 0 <= value < np.inf:
            raise ValueError(f"`weights` should be finite and not negative. Found {given!r} for {key!r}.")
        if key in data.groups:
            found[data.of_group(key)] *= value
        elif isinstance(key, tuple) and len(key) == 2 and key[0] in data.groups and key[1] in labels:
            found[(data.codes == data.groups.index(key[0])) & (data.y == key[1])] *= value
        else:
            listed = ", ".join(map(repr, data.groups))
            raise KeyError(f"`weights` names {key!r}; it should name a group ({listed}) or (group, label).")
    if len(found) and not found.any():
        raise ValueError("`weights` should leave something to train on. Found 0 for every point.")
    return found
