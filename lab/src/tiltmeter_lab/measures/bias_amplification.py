"""bias-amplification: how much decisions exaggerate the association of labels and groups in the data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.measure import two_labels

#: Positions of the attributes in a group's label, with their values.
Chosen = tuple[tuple[int, Hashable], ...]


@dataclass(frozen=True)
class BiasAmplification:
    """Directional amplification (Wang and Russakovsky, 2021) over attribute sets (Zhao, Andrews and Xiang, 2023).

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> x, y = [[1.0]] * 60 + [[-1.0]] * 60, [1] * 40 + [0] * 60 + [1] * 20  # 2/3 and 1/3 of the groups are positive
    >>> data = tm.GroupedData(x, y, ["a"] * 60 + ["b"] * 60)  # decided: all of "a" and none of "b"
    >>> round(float(lab.measure(BiasAmplification(), torch.nn.Identity(), data)["amplification"]), 3)
    0.333

    An attribute a is a group or, if groups have tuples as labels, any combination of their attributes with more than
    `least` points. A task t is a label (of two labels, the positive one). With s the sign of P(a, t) - P(a) P(t) among
    the labels of `train` (default: the held-out points):

    - `amplification_pair` = s (P(decided t | a) - P(t | a)). `amplification`, its mean over pairs, is the direction A
      -> T: above 0 if decisions exaggerate the association in the data;
    - `amplification_variance` is its variance over pairs; `amplification_absolute` is the mean absolute value, which
      cannot cancel;
    - `amplification_t_to_a` is the direction T -> A, for models that also predict attributes: `guess` maps the scores
      to the group of each point;
    - `amplification_undirected` = mean of P(a | decided t) - P(a | t) over pairs in which the attribute is more common
      than 1 / (number of its alternatives).

    Each null value is that of random decisions with the same frequencies. A pair that is independent in the data has no
    direction, and is NaN in the signed curves. Standard errors need several runs.

    What it does not mean: 0 is not fair. A model that reproduces the association in the data exactly has amplification
    0, whatever that association is. Signed values of different pairs may cancel.

    Args:
        train: Points whose labels say which way each association goes; None: the held-out points.
        guess: Maps scores to the group of each point, for models that predict attributes; None: they do not.
        least: Combinations of attributes with at most this many points are left out.
    """

    train: GroupedData | None = None
    guess: Callable[[np.ndarray], Any] | None = None
    least: int = 0

    title: ClassVar[str] = "How much decisions exaggerate the association of labels with groups and sets of attributes"
    takes: ClassVar[str] = "a model that decides between labels; for T -> A also a prediction of the group"
    exact: ClassVar[str] = "always, for the held-out points"
    absent: ClassVar[str] = "a perfect predictor: 0; labels independent of groups: no pair has a direction"

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if snapshot.decision is None:
            raise ValueError("Bias amplification needs decisions between labels. Found a regression.")
        data, labels = snapshot.data, snapshot.task.labels
        tasks = np.asarray(labels[1:] if len(labels) == 2 else labels)
        sets = attribute_sets(self.train or data, self.least)
        base = self.train or data
        lean = _lean(sets.members(base), base.y[:, None] == tasks)
        member, task, decided = sets.members(data), data.y[:, None] == tasks, snapshot.decision[:, None] == tasks
        delta, blind = _change(member, task, decided)
        pairs = {"attribute": sets.names, "class": tasks}
        found = _both(snapshot, "amplification_pair", "amplification of a pair", lean * delta, lean * blind, pairs)
        for name, meaning, value, null in (
            ("amplification", "mean amplification of pairs", _nanmean(lean * delta), _nanmean(lean * blind)),
            ("amplification_variance", "variance over pairs", _nanvar(lean * delta), _nanvar(lean * blind)),
            ("amplification_absolute", "mean absolute value", _nanmean(np.abs(delta)), _nanmean(np.abs(blind))),
        ):
            found |= _both(snapshot, name, meaning, value, null, {})
        common = _share_of(member, task) > sets.chance[:, None]
        over = [np.where(common, v, np.nan) for v in _composition(member, task, decided)]
        text = "mean increase of over-represented attributes among the decisions"
        found |= _both(snapshot, "amplification_undirected", text, _nanmean(over[0]), _nanmean(over[1]), {})
        if self.guess is not None:
            found |= self._t_to_a(snapshot, sets, member, task, lean)
        return found

    def _t_to_a(
        self, snapshot: Snapshot, sets: AttributeSets, member: np.ndarray, task: np.ndarray, lean: np.ndarray
    ) -> dict[str, xr.DataArray]:
        assert self.guess is not None
        guessed = sets.members_of(list(np.asarray(self.guess(np.asarray(snapshot.score)), dtype=object)))
        if len(guessed) != len(snapshot.data):
            raise ValueError(f"`guess` should give one group per point. Found {len(guessed)}.")
        delta, blind = _change(task, member, guessed)
        text = "mean amplification of pairs, task to attribute"
        values = (_nanmean(lean.T * delta), _nanmean(lean.T * blind))
        return _both(snapshot, "amplification_t_to_a", text, *values, {})

    @classmethod
    def example(cls, seed: int = 0) -> tuple[Self, nn.Module, GroupedData]:
        """Digits with two labels, where most positives of one group are left out, so that there is an association to
        exaggerate.
        """
        model, data = two_labels(seed)
        away = (data.codes == 0) & (data.y == 1) & (np.arange(len(data)) % 4 > 0)
        return cls(), model, data.take(np.flatnonzero(~away))


def _lean(member: np.ndarray, task: np.ndarray) -> np.ndarray:
    """The sign of each association, NaN if there is none."""
    joint = member.T.astype(float) @ task / len(task)
    excess = joint - np.outer(member.mean(0), task.mean(0))
    # Products of shares of n points are multiples of 1/n^2: anything smaller is rounding error.
    sign = np.where(np.abs(excess) < 0.5 / len(task) ** 2, 0.0, np.sign(excess))
    return np.where(sign == 0, np.nan, sign)


def _change(given: np.ndarray, truth: np.ndarray, said: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(said | given) - P(truth | given) of every pair, (given, said); and the same for random decisions."""
    base = _share_of(truth, given).T
    return _share_of(said, given).T - base, said.mean(0)[None, :] - base


def _composition(member: np.ndarray, task: np.ndarray, decided: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    base = _share_of(member, task)
    return _share_of(member, decided) - base, member.mean(0)[:, None] - base


def _share_of(what: np.ndarray, among: np.ndarray) -> np.ndarray:
    """P(what | among), (what, among); NaN if there are no points among them."""
    count = among.sum(0)
    with np.errstate(all="ignore"):
        return np.where(count > 0, what.T.astype(float) @ among / count, np.nan)


def _nanmean(values: np.ndarray) -> np.ndarray:
    known = values[np.isfinite(values)]
    return np.asarray(known.mean() if len(known) else np.nan)


def _nanvar(values: np.ndarray) -> np.ndarray:
    known = values[np.isfinite(values)]
    return np.asarray(known.var() if len(known) else np.nan)


def _both(
    snapshot: Snapshot, name: str, meaning: str, value: np.ndarray, null: np.ndarray, coords: dict[str, np.ndarray]
) -> dict[str, xr.DataArray]:
    return {
        key: snapshot.reading(key, values, coords, long_name=text, better="neither")
        for key, values, text in ((name, value, meaning), (f"{name}_null", null, f"{meaning}, random decisions"))
    }


@dataclass(frozen=True)
class AttributeSets:
    """Sets of attributes in a fixed order. A group whose label is a tuple has one attribute for each entry of the
    tuple.
    """

    sets: tuple[Chosen, ...]
    width: int

    @property
    def names(self) -> np.ndarray:
        """As text, with * for an attribute that may have any value."""
        return np.array([self._name(one) for one in self.sets], dtype=object)

    @property
    def chance(self) -> np.ndarray:
        """One over the number of sets that fix the same attributes."""
        places = [tuple(place for place, _ in one) for one in self.sets]
        return np.array([1.0 / places.count(own) for own in places])

    def members(self, data: GroupedData) -> np.ndarray:
        """Which points have which set, (points, sets)."""
        table = self.members_of(data.groups)
        return np.asarray(table[data.codes])

    def members_of(self, groups: Sequence[Hashable]) -> np.ndarray:
        """Which of these groups have which set, (groups, sets)."""
        parts = [_parts(group, self.width) for group in groups]
        return np.array([[all(own[place] == value for place, value in one) for one in self.sets] for own in parts])

    def _name(self, one: Chosen) -> str:
        fixed = dict(one)
        return ", ".join(str(fixed.get(place, "*")) for place in range(self.width))


def attribute_sets(data: GroupedData, least: int = 0) -> AttributeSets:
    """All sets with more than `least` points.

    >>> data = GroupedData(np.zeros((120, 1)), np.zeros(120), [("F", "old"), ("F", "young"), ("M", "old")] * 40)
    >>> attribute_sets(data).names.tolist()
    ['F, *', 'M, *', '*, old', '*, young', 'F, old', 'F, young', 'M, old']
    """
    width = len(data.groups[0]) if isinstance(data.groups[0], tuple) else 1
    if any((len(group) if isinstance(group, tuple) else 1) != width for group in data.groups):
        raise ValueError("All groups should have the same number of attributes. Found labels of different lengths.")
    if width == 0:
        raise ValueError("Groups should have attributes. Found an empty tuple as label.")
    counts: dict[Chosen, int] = {}
    for size in range(1, width + 1):
        for places in combinations(range(width), size):
            for group, points in data.sizes.items():
                own = tuple((place, _parts(group, width)[place]) for place in places)
                counts[own] = counts.get(own, 0) + points
    kept = tuple(one for one, points in counts.items() if points > least)
    if not kept:
        raise ValueError(f"`least` should leave some set of attributes. Found none seen more than {least} times.")
    return AttributeSets(kept, width)


def _parts(group: Hashable, width: int) -> tuple[Hashable, ...]:
    return group if width > 1 and isinstance(group, tuple) else (group,)
