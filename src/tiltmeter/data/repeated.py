"""The labels of grouped data several times over, for several models that answer the same points."""

from __future__ import annotations

import numpy as np

from tiltmeter.data.grouped import GroupedData


def repeated(data: GroupedData, times: int) -> GroupedData:
    """All points `times` times, in groups numbered 0, 1, 2, ...: first those of the first time, in order.

    The features are left out, as they would only be copies.

    >>> data = GroupedData(np.zeros((60, 3)), np.zeros(60), ["a", "b"] * 30)
    >>> twice = repeated(data, 2)
    >>> twice.sizes, twice.x.shape
    ({0: 30, 1: 30, 2: 30, 3: 30}, (120, 0))
    """
    count = len(data.groups)
    codes = (np.arange(times)[:, None] * count + data.codes).ravel()
    weights = None if data.weights is None else np.tile(data.weights, times)
    many = object.__new__(GroupedData)
    many._set(np.empty((times * len(data), 0)), np.tile(data.y, times), codes, tuple(range(times * count)), weights)
    return many
