"""JTT: points that a short first training gets wrong are repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import DataIntervention
from tiltmeter.interventions.shared.guessed_set import guessed_set
from tiltmeter.record.labelled import JSON


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
