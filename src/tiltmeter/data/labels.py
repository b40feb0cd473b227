"""Labels: any hashable group labels, as a short list of groups and one integer code per point."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np


def plain_label(label: Any) -> Hashable:
    """A label as plain Python: NumPy scalars become numbers and text, lists become tuples."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, (list, tuple, np.ndarray)):
        return tuple(plain_label(part) for part in label)
    if not isinstance(label, Hashable):
        raise TypeError(
            f"A group label should be hashable, such as text, a number or a tuple. Found {type(label).__name__}."
        )
    if isinstance(label, str) and any("\ud800" <= sign <= "\udfff" for sign in label):
        raise ValueError(f"A group label should be text that can be written to a file. Found {label!r}.")
    if label is None or label != label:
        raise ValueError(f"Every point should belong to a group. Found the label {label}.")
    return label


def plain_labels(labels: Any) -> list[Hashable]:
    """Every label as plain Python; each different one is looked at once.

    >>> plain_labels([np.str_("a"), "b", "a"])
    ['a', 'b', 'a']
    """
    try:
        plain = {label: plain_label(label) for label in dict.fromkeys(labels)}
        return [plain[label] for label in labels]
    except TypeError:  # lists and arrays, which cannot be looked up
        return [plain_label(label) for label in labels]


def coded(labels: Any, groups: Sequence[Any] | None = None) -> tuple[tuple[Hashable, ...], np.ndarray]:
    """The groups, in order, and for every point the index of its group.

    >>> coded(["b", "a", "b"])
    (('a', 'b'), array([1, 0, 1]))

    The order is the given one; otherwise ascending; or, for labels that cannot be compared, that of first appearance.
    """
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iubUS":
        values, codes = np.unique(labels, return_inverse=True)
        found: list[Any] = [plain_label(value) for value in values.tolist()]
    else:
        every = plain_labels(labels.tolist() if isinstance(labels, np.ndarray) else labels)
        found = list(dict.fromkeys(every))
        with suppress(TypeError):
            found.sort()
        place = {label: i for i, label in enumerate(found)}
        codes = np.fromiter((place[label] for label in every), dtype=np.int64, count=len(every))
    if groups is None:
        return tuple(found), codes.astype(np.int64)
    wanted = tuple(plain_label(group) for group in groups)
    for label in wanted:
        if label not in found:
            raise ValueError(f"Every group should have points. Found none in group {label!r}.")
    for label in found:
        if label not in wanted:
            listed = ", ".join(map(repr, wanted))
            raise KeyError(f"`groups` should list every group. Found points of {label!r}, and groups {listed}.")
    return wanted, np.asarray([wanted.index(label) for label in found], dtype=np.int64)[codes]
