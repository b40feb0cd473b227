"""Snapshot: everything that a measure may use about a model at one moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.task import Task
from tiltmeter.names import described

if TYPE_CHECKING:
    from tiltmeter.measures.seen_model import SeenModel

#: The fields of xarray's two classes. Of classes with other fields, arrays are made by their constructors.
_FIELDS = {"_attrs", "_data", "_dims", "_encoding"}, {"_cache", "_close", "_coords", "_indexes", "_name", "_variable"}


def _fields(kind: type) -> set[str]:
    return set(chain.from_iterable(getattr(cls, "__slots__", ()) for cls in kind.__mro__)) - {"__weakref__"}


_KNOWN = (_fields(xr.Variable), _fields(xr.DataArray)) == _FIELDS
_set = object.__setattr__


def same_labels(blank: xr.DataArray, values: np.ndarray) -> xr.DataArray:
    """The array `blank` with these values, which have its shape. Labels are shared, not copied.

        >>> blank = xr.DataArray([1.0, 2.0], dims="group", coords={"group": ["a", "b"]})
        >>> same_labels(blank, np.array([3.0, 4.0])).sel(group="b").item()
        4.0

    A probe makes sixteen such arrays for every evaluation. xarray's constructors, even without checks, take twice as
    long as this.
    """
    if not _KNOWN:
        fresh = xr.Variable(blank.dims, values, blank.attrs, fastpath=True)
        return xr.DataArray(fresh, blank._coords, name=blank._name, indexes=blank._indexes, fastpath=True)
    before = blank._variable
    variable = object.__new__(xr.Variable)
    _set(variable, "_dims", before._dims)
    _set(variable, "_data", values)
    _set(variable, "_attrs", dict(before._attrs) if before._attrs else None)
    _set(variable, "_encoding", None)
    array = object.__new__(xr.DataArray)
    _set(array, "_variable", variable)
    _set(array, "_coords", blank._coords)
    _set(array, "_name", blank._name)
    _set(array, "_indexes", dict(blank._indexes))
    _set(array, "_close", None)
    return array


@dataclass(frozen=True)
class Snapshot:
    """The held-out points and the outputs of the model on them.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> def undecided(snapshot):  # a measure is a function of a Snapshot
    ...     return snapshot.share("undecided", abs(snapshot.margin) < 0.1)
    >>> data = tm.GroupedData(torch.eye(4).repeat(20, 1), [0, 1] * 40, ["a", "a", "b", "b"] * 20)
    >>> sorted(lab.measure(undecided, torch.nn.Linear(4, 1), data))
    ['undecided', 'undecided_se']

    Args:
        data: Held-out points with their groups.
        task: What is predicted: labels, outputs and how scores become decisions.
        definition: The loss in words.
        loss: Loss of every point; None if it is known only per group.
        group_loss: Mean loss of every group, where no loss per point is known.
        decision: Decision for every point; None if the task has none.
        margin: Margin of every point; None if the task has none.
        confidence: Probability of the decision for every point; None if the task has none.
        score: Outputs, (points,) or (points, outputs); None if only the default curves are recorded.
        seen: The model itself in evaluation mode; None if only the outputs are known, as in an ensemble.
        step: Number of updates so far; None: not known.
        blanks: Labels of curves that were made before, so that they are made only once.
    """

    data: GroupedData
    task: Task
    definition: str
    loss: np.ndarray | None = None
    group_loss: np.ndarray | None = None
    decision: np.ndarray | None = None
    margin: np.ndarray | None = None
    confidence: np.ndarray | None = None
    score: np.ndarray | None = None
    seen: SeenModel | None = None
    step: int | None = None
    blanks: dict[str, xr.DataArray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def model(self) -> SeenModel:
        """The model, or an error that explains why it is not available."""
        if self.seen is None:
            raise TypeError(
                "This measure needs the model itself: use it with Probe, train or measure and the whole evaluation "
                "set, not with ensemble or sharded=True."
            )
        return self.seen

    def by_group(self, name: str, values: np.ndarray, **attrs: Any) -> xr.DataArray:
        """One number per group as values of a curve, described by the glossary or by these attributes."""
        known = self.blanks.get(name)
        if known is not None:
            return same_labels(known, values)
        return self.reading(name, values, {"group": self.data.group_labels}, **attrs)

    def reading(self, name: str, values: np.ndarray, coords: Mapping[str, np.ndarray], **attrs: Any) -> xr.DataArray:
        """Numbers with these dimensions and labels as values of a curve; the labels are made once and then reused."""
        if name not in self.blanks:
            blank = xr.DataArray(values, dims=tuple(coords), coords=dict(coords), attrs=attrs)
            self.blanks[name] = blank if attrs else described(name, blank)
        return same_labels(self.blanks[name], values)

    def mean(self, name: str, values: np.ndarray, where: np.ndarray | None = None) -> dict[str, xr.DataArray]:
        """The mean of a number per point, with its standard error, in every group (NaN if it has no points)."""
        return self._pair(name, *group_mean(values, self.data, where))

    def share(self, name: str, holds: np.ndarray, where: np.ndarray | None = None) -> dict[str, xr.DataArray]:
        """The share of points for which a condition holds, with its standard error, in every group (NaN if it has no
        points).
        """
        return self._pair(name, *group_share(holds, self.data, where))

    def _pair(self, name: str, mean: np.ndarray, error: np.ndarray) -> dict[str, xr.DataArray]:
        return {name: self.by_group(name, mean), f"{name}_se": self.by_group(f"{name}_se", error)}


Measure: TypeAlias = Callable[[Snapshot], Mapping[str, xr.DataArray]]


def group_mean(values: np.ndarray, data: GroupedData, where: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error in every group; of the weighted mean if points have weights.

    >>> two = GroupedData(np.zeros((60, 1)), np.zeros(60), [0, 1] * 30)
    >>> mean, error = group_mean(np.arange(60.0), two)
    >>> mean.tolist(), error.round(2).tolist()
    ([29.0, 30.0], [3.21, 3.21])
    """
    count = len(data.groups)
    if data.weights is None and where is None:  # the same numbers in a third of the time
        codes = data.codes
        sizes = np.bincount(codes, minlength=count)
        with np.errstate(all="ignore"):
            mean = np.bincount(codes, values, count) / sizes
            away = values - mean.take(codes)
            away *= away
            # A group of one point has no error: 0 / 0.
            return mean, np.sqrt(np.bincount(codes, away, count) * sizes / (sizes - 1)) / sizes
    mass, mean = _mean(values, data, where)
    with np.errstate(all="ignore"):
        spread = (mass * (values - mean[data.codes])) ** 2
        total = np.bincount(data.codes, np.where(mass > 0, spread, 0.0), count)
        points = np.bincount(data.codes, mass > 0, count)
        error = np.sqrt(total * points / (points - 1)) / np.bincount(data.codes, mass, count)
    return mean, np.where(points > 1, error, np.nan)


def group_share(holds: np.ndarray, data: GroupedData, where: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Share and standard error in every group. The error is that of (k + 2) / (n + 4), so that 0 of n is not certain.

    >>> two = GroupedData(np.zeros((60, 1)), np.zeros(60), [0, 1] * 30)
    >>> share, error = group_share(np.zeros(60, dtype=bool), two)
    >>> share.tolist(), error.round(3).tolist()
    ([0.0, 0.0], [0.04, 0.04])
    """
    if data.weights is None:
        return _plain_shares(holds, where, data.codes, len(data.groups))
    mass = data.weights if where is None else data.weights * where
    return shares(holds, mass, data.codes, len(data.groups))


def _plain_shares(
    holds: np.ndarray, where: np.ndarray | None, codes: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of points that all count alike: the numbers of `shares` with masses of one or zero."""
    total = np.bincount(codes, where, count)
    with np.errstate(all="ignore"):
        share = np.bincount(codes, holds if where is None else holds & where, count) / total
        middle = (share * total + 2.0) / (total + 4.0)
        return share, np.sqrt(middle * (1.0 - middle) / (total + 4.0))


def shares(holds: np.ndarray, mass: np.ndarray, codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Share and standard error in each of `count` cells; `codes` gives the cell of each point."""
    with np.errstate(all="ignore"):
        total = np.bincount(codes, mass, count)
        share = np.bincount(codes, mass * holds, count) / total
        points = total**2 / np.bincount(codes, mass**2, count)
        middle = (share * points + 2.0) / (points + 4.0)
        error = np.sqrt(middle * (1.0 - middle) / (points + 4.0))
    return share, error


def _mean(values: np.ndarray, data: GroupedData, where: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    mass = np.ones(len(data)) if data.weights is None else data.weights
    if where is not None:
        mass = mass * where
    count = len(data.groups)
    with np.errstate(all="ignore"):
        weighed = np.where(mass > 0, mass * values, 0.0)
        return mass, np.bincount(data.codes, weighed, count) / np.bincount(data.codes, mass, count)
