"""SGD on a fixed set as a function of time: solved once up to the last time, then interpolated."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import xarray as xr

from tiltmeter.population.overlap_curves import OverlapCurves, losses
from tiltmeter.problem.fixed_arrays import FixedParameters
from tiltmeter.theory.fixed_set.overlaps import full_batch_overlaps
from tiltmeter.theory.fixed_set.replacement import batch_noise, grid_of_times
from tiltmeter.theory.fixed_set.shuffled import ShuffledRun, shuffled
from tiltmeter.theory.fixed_set.training_curves import training_curves


class Replaced:
    """Batches drawn with replacement: M and R of gradient flow, Q and residuals by the Volterra equation."""

    def __init__(self, fixed: FixedParameters, last: float) -> None:
        from scipy.interpolate import CubicSpline

        self._fixed, self.last = fixed, last
        self._length, self._excess = [], []
        for n in range(fixed.size):
            alone = one_point(fixed, n)
            grid = grid_of_times(alone, last, 0)
            flow = training_curves(alone, grid, None)[0][0]
            found = batch_noise(alone, flow, grid, 0)
            self._length.append(CubicSpline(found.times, found.length))
            self._excess.append(CubicSpline(found.times, found.residual - 2.0 * flow[::2]))

    def overlaps(self, times: np.ndarray) -> OverlapCurves:
        fixed = self._fixed
        out = full_batch_overlaps(fixed, times)
        out.Q[:] += np.stack([spline(times) for spline in self._length])
        out.loss[:] = losses(fixed.par, out.M, out.R, out.Q, out.bias)
        return out

    def training_loss(self, times: np.ndarray) -> np.ndarray:
        """Half the mean squared residual of the training examples, (N, T, G)."""
        excess = np.stack([spline(times) for spline in self._excess])
        return training_curves(self._fixed, times, None)[0] + 0.5 * excess


class Shuffled:
    """A new shuffle every epoch: all curves from the equations in two times."""

    def __init__(self, fixed: FixedParameters, last: float) -> None:
        self._fixed, self.last = fixed, last
        self._runs: list[ShuffledRun] = [shuffled(one_point(fixed, n), last, 0) for n in range(fixed.size)]

    def overlaps(self, times: np.ndarray) -> OverlapCurves:
        M, R, Q, _ = self._at(times)
        bias = np.zeros_like(Q)
        return OverlapCurves(M, R, Q, bias, losses(self._fixed.par, M, R, Q, bias))

    def training_loss(self, times: np.ndarray) -> np.ndarray:
        """Half the mean squared residual of the training examples, (N, T, G)."""
        return 0.5 * self._at(times)[3]

    def _at(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(np.stack(values) for values in zip(*(run.at(times) for run in self._runs), strict=True))


def one_point(fixed: FixedParameters, n: int) -> FixedParameters:
    """The arrays of one grid point, as a grid of one."""
    here = slice(n, n + 1)
    cut = {
        field.name: getattr(fixed.par, field.name)[here]
        for field in fields(fixed.par)
        if isinstance(getattr(fixed.par, field.name), np.ndarray)
    }
    par = replace(fixed.par, grid=xr.Dataset(), **cut)
    return replace(fixed, par=par, alpha=fixed.alpha[here], f=fixed.f[here], m=fixed.m[here], reach=fixed.reach[here])
