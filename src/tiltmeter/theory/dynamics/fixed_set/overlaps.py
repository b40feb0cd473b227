"""Overlaps of full-batch training on a fixed set, at all times and grid points, from one contour each."""

from __future__ import annotations

import numpy as np

from tiltmeter.theory.dynamics.fixed_set.contour import Contour, descent_contour, flow_contour
from tiltmeter.theory.dynamics.fixed_set.spectrum import spectrum
from tiltmeter.theory.population.labelled_curves import OverlapCurves, losses
from tiltmeter.theory.problem.fixed import FixedParameters
from tiltmeter.threads import in_blocks

#: With more nodes than this, the last time is too late to be evaluated.
MOST_NODES = 200_000


def contour_of(fixed: FixedParameters, times: np.ndarray, momentum: float | None) -> Contour:
    """The contour for flow at `times`, or with a momentum for descent after that many steps."""
    found, last = spectrum(fixed), float(times[-1])
    if momentum is None:
        chosen = flow_contour(fixed, found, last)
    else:
        chosen = descent_contour(fixed, found, int(last), momentum)
    if chosen.nodes.max() > MOST_NODES:
        raise ValueError(
            f"The last time {last:g} is too late for this number of samples: relaxation has no smallest rate there. "
            "Ask for an earlier one, or for the end of training by `equilibrium`."
        )
    return chosen


def full_batch_overlaps(
    fixed: FixedParameters, times: np.ndarray, momentum: float | None = None, threads: int | None = None
) -> OverlapCurves:
    """M, R, Q, bias and loss at `times` by gradient flow; with a momentum (maybe 0), after `times` steps of descent."""
    from tiltmeter.theory.dynamics.fixed_set.compiled_curves import fill_overlaps

    par = fixed.par
    chosen = contour_of(fixed, times, momentum)
    steps = np.empty(0, np.int64) if momentum is None else times.astype(np.int64)
    out = OverlapCurves.empty(fixed.size, len(times), len(par.groups))
    decay = fixed.alpha * par.decay

    def work(start: int, stop: int) -> None:
        fill_overlaps(
            start, stop, times, steps, momentum or 0.0, chosen.centre, chosen.radius, chosen.beta, chosen.nodes,
            par.lr, fixed.alpha, decay, par.p, par.s, par.D, par.K, par.C, par.T, fixed.m, fixed.reach, par.M0, par.R0,
            par.Q0, par.bias0, par.train_bias, fixed.started, out.M, out.R, out.Q, out.bias,
        )  # fmt: skip

    in_blocks(work, fixed.size, threads, least=1)
    out.loss[:] = losses(par, out.M, out.R, out.Q, out.bias)
    return out
