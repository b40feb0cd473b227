"""PointKeeper: keeps the loss and decision of every point, so that differences can be tested later."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.record.labelled import labelled_array, labels_array

#: Evaluations per decade of steps: at most 256 up to a billion steps.
PER_DECADE = 28
#: An ensemble keeps its points up to this many numbers (half a gigabyte), and none beyond.
MOST_NUMBERS = 2**27


def kept_evaluation(step: int, last: int | None) -> bool:
    """Whether the points of this evaluation are kept, given the `last` evaluation that was: kept evaluations are
    log-spaced.

    >>> kept, last = [], None
    >>> for step in range(0, 1001):
    ...     if kept_evaluation(step, last):
    ...         kept.append(last := step)
    >>> len(kept), kept[:4], kept[-3:]
    (67, [0, 1, 2, 3], [849, 922, 1000])
    """
    if last is None:
        return True
    return step > last and _mark(step) > _mark(last)


def _mark(step: int) -> int:
    # The small number corrects the logarithm of powers of ten, which may be rounded down.
    return -1 if step < 1 else math.floor(PER_DECADE * math.log10(step) + 1e-9)


class PointKeeper:
    """Turns snapshots into arrays of one number per point: `loss`, and `decided_positive` or `wrong` (several classes).

    Losses take four bytes per point, decisions one bit. Nothing is kept for weighted points, or for losses that are not
    known point by point, because they cannot be tested. `runs` names the dimensions of several runs that are looked at
    together; their values come one run after another. The look at step `end` is always kept. The last evaluation
    also keeps the `probability` of the positive label or, for several classes, the `confidence` of the decision, for
    the calibration of the trained model. With `entropy`, that of the prediction is kept too, for several classes. The
    first evaluation keeps the `row` of every point in the table that it was read from, if it is not all of it.
    """

    def __init__(
        self,
        data: GroupedData,
        runs: Mapping[str, np.ndarray] | None = None,
        end: int | None = None,
        entropy: bool = False,
    ) -> None:
        self._data, self._runs, self._end, self._entropy = data, dict(runs or {}), end, entropy
        self._told = False
        self._blanks: dict[str, xr.DataArray] = {}
        self.last: int | None = None

    def __call__(self, snapshot: Snapshot, step: int, last: bool = False) -> dict[str, xr.DataArray]:
        """Return the arrays of this evaluation; empty if it is not one to keep."""
        if self._data.weights is not None or (snapshot.loss is None and snapshot.group_loss is not None):
            return {}
        if not (last or step == self._end or kept_evaluation(step, self.last)):
            return {}
        self.last = step
        labels = {} if self._told else self._labels(snapshot)
        dims = ("point", *self._runs)
        kept = point_values(snapshot, self._entropy)
        found = {name: self._array(name, self._shaped(v), labels) for name, v in kept.items()}
        reading = None if self._told else self._data.reading
        rows = None if reading is None else reading.kept_rows
        if reading is not None and rows is not None and not np.array_equal(rows, np.arange(reading.rows)):
            found["row"] = xr.DataArray(rows.astype(np.int64), dims="point")
        self._told = True  # the first evaluation records which points these are
        if last or step == self._end:
            told = self._labels(snapshot)  # a first evaluation of their own
            for name, values in final_values(snapshot).items():
                found[name] = labelled_array(self._shaped(values), dims, told)
        return found

    def _array(self, name: str, values: np.ndarray, labels: dict[str, Any]) -> xr.DataArray:
        """Values with their dimensions; from the second evaluation on without labels, laid out once."""
        if labels:
            return labelled_array(values, ("point", *self._runs), labels)
        if name not in self._blanks:
            self._blanks[name] = xr.DataArray(values, dims=("point", *self._runs))
        blank = self._blanks[name]
        return blank._replace(blank.variable._replace(data=values))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        if not self._runs:
            return values
        sizes = [len(labels) for labels in self._runs.values()]
        return np.ascontiguousarray(values.reshape(-1, len(self._data)).T).reshape(-1, *sizes)

    def _labels(self, snapshot: Snapshot) -> dict[str, Any]:
        groups = labels_array(self._data.groups)[self._data.codes]
        found: dict[str, Any] = {"group": ("point", groups), **self._runs}
        if snapshot.task.binary:
            found["positive"] = ("point", self._data.y == snapshot.task.positive)
        elif snapshot.task.decides:
            found["label"] = ("point", self._data.y)
        return found


def point_values(snapshot: Snapshot, entropy: bool = False) -> dict[str, np.ndarray]:
    """Losses and decisions of all points, of a table of decisions the decisions alone; if asked for, entropies too."""
    found = {} if snapshot.loss is None else {"loss": snapshot.loss.astype(np.float32)}
    if snapshot.decision is not None and snapshot.task.binary:
        found["decided_positive"] = snapshot.decision == snapshot.task.positive
    elif snapshot.decision is not None:
        found["wrong"] = snapshot.decision != snapshot.data.y
    if entropy and snapshot.score is not None and snapshot.task.link == "softmax":
        found["entropy"] = softmax_entropy(snapshot.score).astype(np.float32)
    return found


def softmax_entropy(scores: np.ndarray) -> np.ndarray:
    """The entropy of softmax predictions, one for each row of scores.

    >>> softmax_entropy(np.array([[0.0, 0.0], [100.0, 0.0]])).round(3).tolist()
    [0.693, 0.0]
    """
    above = scores - scores.max(1, keepdims=True)
    weights = np.exp(above)
    total = weights.sum(1)
    return np.asarray(np.log(total) - (weights * above).sum(1) / total)


def final_values(snapshot: Snapshot) -> dict[str, np.ndarray]:
    """How sure the model is of each point: the probability of the positive label, or of its decision.

    Whatever rule decides, the probability is that of the model.
    """
    if snapshot.confidence is None or snapshot.margin is None:
        return {}
    if not snapshot.task.binary:
        return {"confidence": snapshot.confidence.astype(np.float32)}
    above = np.where(snapshot.data.y == snapshot.task.positive, snapshot.margin, -snapshot.margin) > 0
    return {"probability": np.where(above, snapshot.confidence, 1.0 - snapshot.confidence).astype(np.float32)}
