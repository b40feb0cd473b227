"""Data interventions: which points are trained on, and how often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import DataIntervention
from tiltmeter.interventions.shared.guessed_set import guessed_set
from tiltmeter.record.labelled import JSON


@dataclass(frozen=True)
class Downsampled(DataIntervention):
    """As many points of every group as the smallest has, times `ratio`, drawn without replacement.

    >>> import numpy as np, tiltmeter as tm
    >>> data = tm.GroupedData(np.zeros((130, 2)), np.zeros(130), ["a"] * 100 + ["b"] * 30)
    >>> Downsampled().data(data, None).sizes
    {'a': 30, 'b': 30}

    It throws data away: what the large group loses may be more than what the small one gains.

    Args:
        ratio: Points of every group, in parts of the smallest group.
        seed: Seed of the random draws.
    """

    title = "as many training points of every group"
    cannot = "use the points that it drops"

    ratio: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scout:
            raise ValueError(f"`scout` of Downsampled should be 0: it asks no model. Found scout = {self.scout}.")
        if isinstance(self.ratio, bool) or not 1.0 <= self.ratio < np.inf:
            raise ValueError(f"`ratio` should be at least 1. Found ratio = {self.ratio!r}.")

    def data(self, data: Any, snapshot: Any) -> Any:  # noqa: ARG002
        rng = np.random.default_rng(self.seed)
        most = int(self.ratio * min(data.sizes.values()))
        kept = [rng.permutation(data.of_group(group))[:most] for group in data.groups]
        return data.take(np.sort(np.concatenate(kept)))


@dataclass(frozen=True)
class JTT(DataIntervention):
    """Train, find the errors, train again from the start with each error `times` times: Liu et al. (2021).

    >>> JTT(times=20, scout=75).cost(groups=4)  # the steps of the scout are added to this
    1.0

    The length of the first training decides everything: too short, and the errors are random; too long, and the rare
    group is memorised and no longer among them. The run notes how much of every group is among the errors.

    It needs no group labels to train, but `scout` and `times` must be chosen by some rule, and published ones use
    validation groups for that.

    Args:
        times: How often each error stands in the new training data.
        scout: Steps of the first training, which finds the errors.
    """

    needs = "no groups"
    title = "points that a short first training gets wrong are repeated"
    cannot = "find a group that the first training gets right"

    times: int = 20
    scout: int = field(default=75, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.times, bool) or self.times != int(self.times) or self.times < 1:
            raise ValueError(f"`times` should be a positive whole number. Found times = {self.times!r}.")
        if not self.scout:
            raise ValueError("`scout` of JTT should be at least one step: without it there are no errors to repeat.")

    def data(self, data: Any, snapshot: Any) -> Any:
        return data.take(np.repeat(np.arange(len(data)), np.where(_errors(data, snapshot), self.times, 1)))

    def account(self, before: Any, after: Any, snapshot: Any) -> dict[str, JSON]:  # noqa: ARG002
        return guessed_set(before, _errors(before, snapshot))


def _errors(data: Any, snapshot: Any) -> np.ndarray:
    """The points that the scout gets wrong, in evaluation mode."""
    if snapshot.decision is None:
        raise ValueError("JTT needs a model that decides between labels. Found one without decisions.")
    return np.asarray(snapshot.decision != data.y)


@dataclass(frozen=True)
class Reweighed(DataIntervention):
    """The loss of a point of group g and label y counts p(g) p(y) / p(g, y) times: Kamiran and Calders (2012).

    >>> import tiltmeter as tm
    >>> group, y = ["a"] * 60 + ["b"] * 40, [1] * 45 + [0] * 15 + [1] * 10 + [0] * 30
    >>> weights = Reweighed().data(tm.GroupedData(np.zeros((100, 1)), y, group), None).weights
    >>> weights[[0, 45, 60, 70]].round(2).tolist()
    [0.73, 1.8, 2.2, 0.6]

    Groups keep their weight, and all get the base rate of all points together. The model does not need the group when
    it is used. A network that fits all its training points undoes it, and base rates of the world stay as they are.
    """

    title = "weights on pairs of group and label that make the label independent of the group"
    cannot = "make rates equal: it does not look at decisions"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scout:
            raise ValueError(f"`scout` of Reweighed should be 0: it asks no model. Found scout = {self.scout}.")

    def data(self, data: Any, snapshot: Any) -> Any:  # noqa: ARG002
        labels, places = np.unique(data.y, return_inverse=True)
        if len(labels) > len(data) / 10:
            raise ValueError(
                f"Reweighed needs labels that are classes. Found {len(labels)} values of {len(data)} points."
            )
        given = np.ones(len(data)) if data.weights is None else data.weights
        cells = np.zeros((len(data.groups), len(labels)))
        np.add.at(cells, (data.codes, places), given)
        independent = cells.sum(1, keepdims=True) * cells.sum(0, keepdims=True) / cells.sum()
        factors = np.divide(independent, cells, out=np.ones_like(cells), where=cells > 0)
        return data.with_weights(given * factors[data.codes, places])
