"""GroupPulls: what groups count in the steps that come, seed by seed, and what was seen of them in those made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.simulation.setting import Setting


@dataclass(frozen=True)
class GroupPulls:
    """Arrays (seeds, groups) that compiled loops read (`factors`, `cumulative`) and add to (`losses`, `counts`).

    `cumulative` has one dimension more, (seeds, 1, groups): steps, of which there are many in a curriculum (`drawn`).

    A factor multiplies the loss of a group's points, beside the weights; `cumulative` are the shares by which groups
    are drawn, added up. Losses are sums over `counts` points, without any weight.
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
