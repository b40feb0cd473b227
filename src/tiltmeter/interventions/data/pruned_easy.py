"""PrunedEasy: of the points with a low loss, only one of several is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import DataIntervention
from tiltmeter.interventions.shared.guessed_set import guessed_set
from tiltmeter.record.labelled import JSON


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
