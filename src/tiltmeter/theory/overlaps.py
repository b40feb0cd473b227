"""Overlaps: the student's order parameters and losses over a grid and over time, before they get labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.blocks import in_blocks
from tiltmeter.theory.modes import Modes
from tiltmeter.theory.parameters import Parameters


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
        """NaN at the grid points `where`."""
        for array in (self.M, self.R, self.Q, self.bias, self.loss):
            array[where] = np.nan


def evaluate_modes(
    par: Parameters, solved: Modes, times: np.ndarray, out: OverlapCurves | None = None, threads: int | None = None
) -> OverlapCurves:
    """Sum the exponentials at all times, for all grid points, in one compiled loop over all cores."""
    from tiltmeter.theory.compiled import evaluate

    curves = OverlapCurves.empty(par.size, len(times), len(par.groups)) if out is None else out
    reach = np.sqrt(par.D) * par.g

    def work(start: int, stop: int) -> None:
        evaluate(
            start, stop, times, solved.rates, solved.M, solved.R, solved.bias, solved.q, solved.Q0, solved.pairs,
            solved.sources, par.m, reach, par.D, curves.M, curves.R, curves.Q, curves.bias, curves.loss,
        )  # fmt: skip

    in_blocks(work, par.size, threads)
    return curves
