"""Points by class: the input of all clones and edits, and the replacement of points by new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from tiltmeter.data.grouped import GroupedData

#: Makes this number of points from the rows of one class.
Draw = Callable[[np.ndarray, int], np.ndarray]


class Clone(Protocol):
    """Makes new points in place of the data's, from the statistics of `fit` (by default, of the data themselves)."""

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData: ...


def flat(data: GroupedData) -> np.ndarray:
    """The points as rows of numbers; all channels and pixels of an image together."""
    x = np.asarray(data.x)
    if x.dtype.kind != "f":
        raise TypeError(f"Clones need points made of real numbers, not of tokens or counts. Found x of type {x.dtype}.")
    return x.reshape(len(x), -1).astype(np.float64)


def by_class(data: GroupedData) -> dict[float, np.ndarray]:
    """Label -> its points as rows; raises an error if the labels are not classes.

    >>> data = GroupedData(np.zeros((90, 2)), [0, 1, 1] * 30, [0] * 90)
    >>> {label: rows.shape for label, rows in by_class(data).items()}
    {0: (30, 2), 1: (60, 2)}
    """
    labels = data.labels
    if data.y.dtype.kind == "f" and not (labels == np.round(labels)).all():
        raise ValueError("Clones need classes. Found labels that are real numbers.")
    points = flat(data)
    return {label: points[data.y == label] for label in labels.tolist()}


def fitted_to(data: GroupedData, fit: GroupedData | None) -> dict[float, np.ndarray]:
    """The points by class to which a clone is fitted, checked: those of `fit`, otherwise the data's own."""
    if fit is None:
        return by_class(data)
    if np.shape(fit.x)[1:] != np.shape(data.x)[1:]:
        raise ValueError(
            f"`fit` should have points of the data's shape, {np.shape(data.x)[1:]}. Found {np.shape(fit.x)[1:]}."
        )
    sources = by_class(fit)
    for label in data.labels.tolist():
        if label not in sources:
            raise ValueError(f"`fit` should have points of every label of the data. Found none with y = {label:g}.")
    return sources


def redrawn(data: GroupedData, sources: dict[float, np.ndarray], draw: Draw) -> GroupedData:
    """New points for every label of the data, with the same labels, groups and weights in the same order.

    Because the order of labels is the same, runs on data and clone can be compared step by step: their batches have the
    same labels.
    """
    points = np.empty_like(flat(data))
    for label in data.labels.tolist():
        places = np.flatnonzero(data.y == label)
        points[places] = draw(sources[label], len(places))
    return replaced(data, points)


def replaced(data: GroupedData, points: np.ndarray, y: np.ndarray | None = None) -> GroupedData:
    """The same groups and weights with other points, and other labels if given."""
    shape, kind = np.shape(data.x), np.asarray(data.x).dtype
    part = data.take(np.arange(len(data)))
    labels = part.y if y is None else y.astype(data.y.dtype)
    part._set(points.reshape(shape).astype(kind), labels, part.codes, part.groups, part.weights)
    return part
