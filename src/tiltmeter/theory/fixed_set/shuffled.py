"""Multi-pass SGD with a new shuffle every epoch, as data loaders do: equations in two times.

An example is used once per epoch, so two cells of one epoch never use the same example. This is the only difference
from drawing with replacement, and the first epoch is exactly online SGD. The equations are of first order in the width
of a cell; runs with three widths are extrapolated to zero width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.fixed_arrays import FixedParameters
from tiltmeter.problem.geometry import factor
from tiltmeter.theory.fixed_set.spectrum import spectrum

#: Fewest cells per epoch of the coarsest of three runs, and the largest part of the fastest relaxation per cell.
LEAST_CELLS, RESOLUTION = 10, 0.28
#: The most cells of the finest run: its cost grows with their cube, its memory with their square.
MOST_CELLS = 1600
#: If two extrapolations of Q differ by more than this, relative to Q, cells are halved.
AGREED = 3e-3


@dataclass(frozen=True)
class ShuffledRun:
    """At uniform `times` over whole epochs of `cells` intervals: M, R, residual (n, G) and Q (n)."""

    times: np.ndarray
    cells: int
    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    residual: np.ndarray

    def at(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        """M, R, Q and residual at any times within, by cubic splines within each epoch: slopes jump between epochs."""
        return tuple(self._smooth(values)(times) for values in (self.M, self.R, self.Q, self.residual))

    def _smooth(self, values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        from scipy.interpolate import CubicSpline

        def evaluate(times: np.ndarray) -> np.ndarray:
            out = np.empty((len(times), *values.shape[1:]))
            length = self.times[self.cells]
            last = len(self.times) // self.cells - 1
            epoch = np.clip((times / length).astype(int), 0, last)
            for one in np.unique(epoch):
                part = slice(one * self.cells, (one + 1) * self.cells + 1)
                out[epoch == one] = CubicSpline(self.times[part], values[part])(times[epoch == one])
            return out

        return evaluate


def coarse_cells(fixed: FixedParameters, n: int) -> int:
    """Cells per epoch of the coarsest run at grid point n."""
    return max(LEAST_CELLS, int(np.ceil(fixed.par.lr[n] * spectrum(fixed).top[n] / RESOLUTION)))


def shuffled(fixed: FixedParameters, last: float, n: int) -> ShuffledRun:
    """Return the solution at grid point n, over whole epochs up to the time `last` or later."""
    alpha, cells = float(fixed.alpha[n]), coarse_cells(fixed, n)
    epochs = max(1, int(np.ceil(last / alpha * (1.0 - 1e-12))))
    while 4 * cells * epochs <= MOST_CELLS:
        runs = tuple(two_times(fixed, n, cells * finer, epochs) for finer in (1, 2, 4))
        Q, Q_middle, Q_coarse = runs[2][2][::4], runs[1][2][::2], runs[0][2]
        apart = (8.0 * Q - 6.0 * Q_middle + Q_coarse) / 3.0 - (2.0 * Q - Q_middle)
        if np.abs(apart).max() <= AGREED * np.abs(Q).max():
            return _extrapolated(runs, alpha, cells, epochs)
        cells *= 2
    most = MOST_CELLS // (4 * cells)
    raise ValueError(
        f"The last time should be at most {most * alpha:.4g} ({most} epochs) for SGD with a shuffle every epoch at "
        f"lr = {fixed.par.lr[n]:g} here. Found {last:g}. Use Fixed(..., replace=True), Flow for small learning rates, "
        "or `simulate`."
    )


def _extrapolated(runs: tuple[tuple[np.ndarray, ...], ...], alpha: float, cells: int, epochs: int) -> ShuffledRun:
    """Extrapolate three widths of cells to zero: the finest run plus a smooth correction."""
    places = np.linspace(0.0, epochs * alpha, epochs * cells + 1)
    correction = ShuffledRun(
        places,
        cells,
        *((8.0 * c[::4] - 6.0 * b[::2] + a) / 3.0 - c[::4] for a, b, c in zip(*runs, strict=True)),
    )
    times = np.linspace(0.0, epochs * alpha, 4 * epochs * cells + 1)
    return ShuffledRun(times, 4 * cells, *(c + add for c, add in zip(runs[2], correction.at(times), strict=True)))


def two_times(
    fixed: FixedParameters, n: int, cells: int, epochs: int, labels: bool = True, replace: bool = False
) -> tuple[np.ndarray, ...]:
    """M, R, Q and residual at all cells of one run; without `labels`, of a disturbance of length one."""
    from tiltmeter.theory.fixed_set.compiled_shuffled import shuffled_run

    par, number = fixed.par, len(fixed.par.groups)
    gram = np.block([[par.K[n], par.C[n]], [par.C[n].T, par.T[n]]])
    place = factor(gram)
    means, teachers = np.ascontiguousarray(place[:number]), np.ascontiguousarray(place[number:])
    start = np.linalg.lstsq(place, np.concatenate([par.M0[n], par.R0[n]]), rcond=1e-9)[0]
    rest = max(0.0, float(par.Q0[n] - start @ start))
    on = 1.0 if labels else 0.0
    w, Q, residual = shuffled_run(
        cells, epochs * cells + 1, par.lr[n], fixed.alpha[n], par.decay[n], par.p[n], par.s[n], par.D[n], means,
        teachers, on * fixed.m[n], on * fixed.reach[n], on * start, rest if labels else 1.0, on, replace,
    )  # fmt: skip
    return w @ means.T, w @ teachers.T, Q, residual
