"""Amplified: the bias of the data made stronger, as a control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import DataIntervention


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
