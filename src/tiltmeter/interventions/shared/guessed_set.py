"""A guessed set: how well points that a scout picked out agree with the groups that are in the minority."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiltmeter.record.labelled import JSON, label_to_json


def guessed_set(data: Any, picked: np.ndarray) -> dict[str, JSON]:
    """Size of the set, and for every group how much of the set it makes up and how much of it is in the set.

    >>> import tiltmeter as tm
    >>> data = tm.GroupedData(np.zeros((4, 1)), [0, 1, 0, 1], ["a", "a", "a", "b"])
    >>> guessed_set(data, np.array([False, False, True, True]))
    {'picked': 2, 'precision': [['a', 0.5], ['b', 0.5]], 'recall': [['a', 0.333...], ['b', 1.0]]}

    Group labels are used for this account only.
    """
    inside, sizes = (np.bincount(data.codes[mask], minlength=len(data.groups)) for mask in (picked, slice(None)))
    count = int(picked.sum())
    names = [label_to_json(group) for group in data.groups]
    precision = inside / max(count, 1)
    recall = inside / np.maximum(sizes, 1)
    return {
        "picked": count,
        "precision": [[name, float(value)] for name, value in zip(names, precision, strict=True)],
        "recall": [[name, float(value)] for name, value in zip(names, recall, strict=True)],
    }
