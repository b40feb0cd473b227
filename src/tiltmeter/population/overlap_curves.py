"""Overlaps: the order parameters and losses of a linear student over items and time, before they are labelled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.sgd_arrays import Parameters


@dataclass(frozen=True)
class OverlapCurves:
    """M, R and loss have shape (N, T, G); Q and bias have shape (N, T)."""

    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    bias: np.ndarray
    loss: np.ndarray

    @classmethod
    def empty(cls, points: int, times: int, groups: int) -> OverlapCurves:
        per_group, single = (points, times, groups), (points, times)
        return cls(np.empty(per_group), np.empty(per_group), np.empty(single), np.empty(single), np.empty(per_group))

    def blank(self, where: np.ndarray) -> None:
        """Set the grid points `where` to NaN."""
        for array in (self.M, self.R, self.Q, self.bias, self.loss):
            array[where] = np.nan


def losses(par: Parameters, M: np.ndarray, R: np.ndarray, Q: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Half squared error per group from overlaps of shapes (N, T, G) and (N, T)."""
    score = M + bias[:, :, None]
    m, D, reach = (x[:, None, :] for x in (par.m, par.D, np.sqrt(par.D) * par.g))
    return np.asarray(0.5 * (score**2 + D * Q[:, :, None] + 1.0 - 2.0 * (m * score + reach * R)))
