"""USEFUL: points that are learned late are repeated, so that all features are learned at one pace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import DataIntervention
from tiltmeter.interventions.shared.guessed_set import guessed_set
from tiltmeter.record.labelled import JSON


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
