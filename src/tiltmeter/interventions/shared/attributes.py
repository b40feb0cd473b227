"""The attribute of a point, told by its group."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np


def attribute_codes(attribute: Mapping[Hashable, Hashable] | None, groups: tuple[Any, ...]) -> np.ndarray:
    """For every group the number of its attribute; without a mapping the attribute is the group itself.

    >>> attribute_codes({"cat on grass": "grass", "dog on grass": "grass", "cat on sand": "sand"},
    ...                 ("cat on grass", "cat on sand", "dog on grass"))
    array([0, 1, 0])
    """
    if attribute is None:
        return np.arange(len(groups))
    if not isinstance(attribute, Mapping):
        raise TypeError(
            '`attribute` should say which one every group has, as {"cat on grass": "grass", ...}. Found '
            f"{attribute!r}."
        )
    missing = [group for group in groups if group not in attribute]
    if missing:
        raise ValueError(f"`attribute` should name every group. Missing: {', '.join(map(repr, missing))}.")
    values = list(dict.fromkeys(attribute[group] for group in groups))
    if len(values) < 2:
        raise ValueError(f"`attribute` should take at least two values. Found {values[0]!r} alone.")
    return np.array([values.index(attribute[group]) for group in groups])
