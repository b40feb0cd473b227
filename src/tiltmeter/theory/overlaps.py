"""The sum of exponentials at all times, for all grid points, in one compiled loop."""

from __future__ import annotations

import numpy as np

from tiltmeter.blocks import in_blocks
from tiltmeter.observables.overlaps import OverlapCurves
from tiltmeter.parameters import Parameters
from tiltmeter.theory.modes import Modes


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
