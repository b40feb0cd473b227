"""SGD on a fixed set as a function of time: solved once up to the last time, then interpolated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import xarray as xr

from tiltmeter.theory.dynamics.fixed_set.contour import Divided, Resolvents, flow_contour, resolvents_at
from tiltmeter.theory.dynamics.fixed_set.overlaps import full_batch_overlaps
from tiltmeter.theory.dynamics.fixed_set.spectrum import spectrum
from tiltmeter.theory.dynamics.fixed_set.training_curves import training_curves
from tiltmeter.theory.population.labelled_curves import OverlapCurves, losses
from tiltmeter.theory.problem.fixed import FixedParameters
from tiltmeter.theory.problem.geometry import factor

#: The share by which the fastest mode of the kernel decays per step of the fine grid.
RESOLUTION = 0.1
LEAST_STEPS, MOST_STEPS = 200, 12_000


@dataclass(frozen=True)
class BatchNoise:
    """On a uniform grid of times: the contribution of batches to Q (n), and mean squared residuals (n, G)."""

    times: np.ndarray
    length: np.ndarray
    residual: np.ndarray


def batch_noise(fixed: FixedParameters, flow_training_loss: np.ndarray, times: np.ndarray, n: int) -> BatchNoise:
    """Return the noise at grid point n; `flow_training_loss` (T, G) is that of gradient flow at the uniform `times`."""
    from tiltmeter.theory.dynamics.fixed_set.compiled_curves import flow_filters
    from tiltmeter.theory.dynamics.fixed_set.compiled_shuffled import convolve, solve_volterra

    par = fixed.par
    at = resolvents_at(fixed, flow_contour(fixed, spectrum(fixed), 2.0 * float(times[-1])), n)
    _, fall = flow_filters(at.z, par.lr[n] / fixed.alpha[n], times)
    strength = par.lr[n] ** 2 / par.batch[n]
    kernel = strength * np.moveaxis(residual_kernel(fixed, at, fall, n), -1, 0)
    along = (strength * par.p[n] * par.s[n] ** 2) * length_kernel(fixed, at, fall, n)
    fine_step = float(times[1] - times[0])

    def solved(every: int) -> tuple[np.ndarray, np.ndarray]:
        step = every * fine_step
        source = np.ascontiguousarray(2.0 * flow_training_loss[::every])
        residual = solve_volterra(source, np.ascontiguousarray(kernel[::every]), step)
        return residual, convolve(np.ascontiguousarray(along[::every]), residual, step)

    fine, coarse = solved(1), solved(2)
    kept = tuple((4.0 * one[::2] - two) / 3.0 for one, two in zip(fine, coarse, strict=True))
    return BatchNoise(times[::2], kept[1], kept[0])


def grid_of_times(fixed: FixedParameters, last: float, n: int) -> np.ndarray:
    """Return a uniform grid, with an even number of steps, that resolves the fastest decay."""
    fastest = 2.0 * fixed.par.lr[n] / fixed.alpha[n] * spectrum(fixed).top[n]
    count = max(LEAST_STEPS, int(np.ceil(last * fastest / RESOLUTION)))
    if count > MOST_STEPS:
        raise ValueError(
            f"The last time should be at most {MOST_STEPS * RESOLUTION / fastest:.4g} for SGD on this fixed set, whose "
            f"equations are solved in small steps. Found {last:g}. Use `simulate`, or Flow for small learning rates."
        )
    return np.linspace(0.0, last, 2 * (count // 2) + 1)


def residual_kernel(fixed: FixedParameters, at: Resolvents, fall: np.ndarray, n: int) -> np.ndarray:
    """K_gh over lr^2 / batch, of shape (G, G, T)."""
    par, alpha = fixed.par, fixed.alpha[n]
    p, s, D = par.p[n], par.s[n], par.D[n]
    rows = fall * at.weight
    divided = Divided(at.z, at.q, at.dq)
    number = len(p)
    out = np.empty((number, number, len(fall)))
    for g in range(number):
        for h in range(g, number):
            filters = rows * (at.u[:, g] * at.u[:, h])
            out[g, h] = out[h, g] = divided.form(filters, filters)
    own = D**2 * (rows @ (at.q[:, None] * at.u)).real ** 2
    for g in range(number):
        for h in range(number):
            out[g, h] *= D[h] * D[g] * s[h] ** 2 * p[h]
        out[g, g] += s[g] ** 2 / alpha * own[:, g]
    return out


def length_kernel(fixed: FixedParameters, at: Resolvents, fall: np.ndarray, n: int) -> np.ndarray:
    """J_g, of shape (T, G)."""
    return np.asarray(((fall * fall * at.weight) @ (at.q[:, None] * at.u)).real * fixed.par.D[n])


#: Fewest cells per epoch of the coarsest of three runs, and the largest part of the fastest relaxation per cell.
LEAST_CELLS, SHUFFLED_RESOLUTION = 10, 0.28
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
    return max(LEAST_CELLS, int(np.ceil(fixed.par.lr[n] * spectrum(fixed).top[n] / SHUFFLED_RESOLUTION)))


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
    from tiltmeter.theory.dynamics.fixed_set.compiled_shuffled import shuffled_run

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
