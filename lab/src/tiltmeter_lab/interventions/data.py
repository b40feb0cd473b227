"""Data interventions: which points are trained on, and how often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import DataIntervention
from tiltmeter.interventions.shared.guessed_set import guessed_set
from tiltmeter.record.labelled import JSON


@dataclass(frozen=True)
class Amplified(DataIntervention):
    """Only the share `keep` of every group but the largest: a stress test, not a cure.

    >>> import numpy as np, tiltmeter as tm
    >>> data = tm.GroupedData(np.zeros((130, 2)), np.zeros(130), ["a"] * 100 + ["b"] * 30)
    >>> Amplified(keep=0.5).data(data, None).sizes
    {'a': 100, 'b': 15}

    A cure that works for the right reason should gain more where the bias is stronger, and the plain training should
    lose more.

    At least one point of every group stays.

    Args:
        keep: Share of the points of every group but the largest that stays.
        seed: Seed of the random draws.
    """

    title = "the bias of the data made stronger, as a control"
    cannot = "reduce a bias: it makes one worse on purpose"

    keep: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scout:
            raise ValueError(f"`scout` of Amplified should be 0: it asks no model. Found scout = {self.scout}.")
        if isinstance(self.keep, bool) or not 0.0 < self.keep <= 1.0:
            raise ValueError(f"`keep` should lie above 0 and be at most 1. Found keep = {self.keep!r}.")

    def data(self, data: Any, snapshot: Any) -> Any:  # noqa: ARG002
        rng = np.random.default_rng(self.seed)
        largest = max(data.sizes, key=data.sizes.__getitem__)
        kept = []
        for group in data.groups:
            points = rng.permutation(data.of_group(group))
            kept.append(points if group == largest else points[: max(1, round(self.keep * len(points)))])
        return data.take(np.sort(np.concatenate(kept)))


@dataclass(frozen=True)
class PrunedEasy(DataIntervention):
    """Of the points whose loss is below the mean, one of `keep_one_of` stays, drawn at random: after InfoBatch, Qin et
    al. (2024).

    >>> PrunedEasy(keep_one_of=2, scout=60).needs
    'no groups'

    With `rescale`, the easy points that stay are repeated `keep_one_of` times: on average over the draw, all points
    then count as before. Without, easy points count less, and so does the group that has most of them. The run notes
    how much of every group is dropped. InfoBatch draws anew in every epoch; here one draw, from the losses of an
    early model (`scout` steps), holds for the whole training.

    It saves steps only if training counts epochs. It does not look for groups.

    Args:
        keep_one_of: Of so many easy points, one stays.
        rescale: Whether easy points that stay are repeated, so that all count as before on average.
        seed: Seed of the random draws.
        scout: Steps of the first training, whose losses say which points are easy.
    """

    needs = "no groups"
    title = "of the points with a low loss, only one of several is kept"
    cannot = "tell an easy point from a group that is learned early"

    keep_one_of: int = 2
    rescale: bool = True
    seed: int = 0
    scout: int = field(default=60, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.keep_one_of, bool) or self.keep_one_of != int(self.keep_one_of) or self.keep_one_of < 1:
            raise ValueError(
                f"`keep_one_of` should be a positive whole number. Found keep_one_of = {self.keep_one_of!r}."
            )
        if not self.scout:
            raise ValueError("`scout` of PrunedEasy should be at least one step: it asks an early model.")

    def data(self, data: Any, snapshot: Any) -> Any:
        easy, dropped = self._easy(snapshot)
        times = np.where(easy, self.keep_one_of if self.rescale else 1, 1)
        return data.take(np.repeat(np.arange(len(data)), np.where(dropped, 0, times)))

    def account(self, before: Any, after: Any, snapshot: Any) -> dict[str, JSON]:  # noqa: ARG002
        return guessed_set(before, self._easy(snapshot)[1])

    def _easy(self, snapshot: Any) -> tuple[np.ndarray, np.ndarray]:
        """Which points are easy, and which of these are dropped."""
        if snapshot.loss is None:
            raise ValueError("PrunedEasy needs the loss of every point.")
        easy = snapshot.loss < snapshot.loss.mean()
        places = np.random.default_rng(self.seed).permutation(np.flatnonzero(easy))
        dropped = np.zeros(len(easy), dtype=bool)
        dropped[places[-(-len(places) // self.keep_one_of) :]] = True
        return easy, dropped


@dataclass(frozen=True)
class USEFUL(DataIntervention):
    """In every class the outputs of an early model are split into two clusters, and the one with the larger loss is
    repeated: Nguyen et al. (2024).

    >>> USEFUL(times=2, scout=60).needs
    'no groups'

    The run notes how much of every group they are.

    Late points are not a group: with many classes or much noise they are whatever is hard.

    Args:
        times: How often points of the late cluster stand in the new data.
        seed: Seed of the random draws.
        scout: Steps of the early training; 5 to 10 % of the whole in the paper.
    """

    needs = "no groups"
    title = "points that are learned late are repeated, so that all features are learned at one pace"
    cannot = "see a group whose outputs lie among those of the others"

    times: int = 2
    seed: int = 0
    scout: int = field(default=60, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.times, bool) or self.times != int(self.times) or self.times < 1:
            raise ValueError(f"`times` should be a positive whole number. Found times = {self.times!r}.")
        if not self.scout:
            raise ValueError("`scout` of USEFUL should be at least one step: it asks an early model.")

    def data(self, data: Any, snapshot: Any) -> Any:
        return data.take(np.repeat(np.arange(len(data)), np.where(self._late(data, snapshot), self.times, 1)))

    def account(self, before: Any, after: Any, snapshot: Any) -> dict[str, JSON]:  # noqa: ARG002
        return guessed_set(before, self._late(before, snapshot))

    def _late(self, data: Any, snapshot: Any) -> np.ndarray:
        from sklearn.cluster import KMeans

        if snapshot.loss is None or snapshot.score is None:
            raise ValueError("USEFUL needs the loss and the outputs of every point.")
        outputs = snapshot.score.reshape(len(data), -1)
        late = np.zeros(len(data), dtype=bool)
        for label in np.unique(data.y):
            own = np.flatnonzero(data.y == label)
            if len(np.unique(outputs[own], axis=0)) < 2:
                continue  # all alike: there is nothing to split
            side = KMeans(n_clusters=2, n_init=4, random_state=self.seed).fit_predict(outputs[own])
            losses = [snapshot.loss[own[side == cluster]].mean() for cluster in (0, 1)]
            late[own[side == int(np.argmax(losses))]] = True
        return late
