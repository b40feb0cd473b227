"""GroupPulls: how much groups count in the next steps, by seed, and the losses seen in the last ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.simulation.setting import Setting


@dataclass(frozen=True)
class GroupPulls:
    """Arrays (seeds, groups) that compiled loops read (`factors`, `cumulative`) and add to (`losses`, `counts`).

    A factor multiplies the loss of a group's points, in addition to the weights. `cumulative` holds the cumulative
    shares by which groups are drawn; it has an additional dimension of steps, (seeds, 1, groups), with more than one
    entry in a curriculum (`drawn`). Losses are unweighted sums over `counts` points.
    """

    factors: np.ndarray
    cumulative: np.ndarray
    losses: np.ndarray
    counts: np.ndarray

    @classmethod
    def plain(cls, setting: Setting, seeds: int) -> GroupPulls:
        shape = seeds, len(setting.shares)
        return cls(np.ones(shape), np.tile(setting.cumulative(0, 1), (seeds, 1, 1)), np.zeros(shape), np.zeros(shape))

    def drawn(self, setting: Setting, first: int, stop: int) -> np.ndarray:
        """Cumulative shares of the groups in the steps first..stop: (seeds or 1, steps or 1, groups)."""
        return setting.cumulative(first, stop)[None] if setting.sgd.curriculum else self.cumulative
