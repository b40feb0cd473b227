"""The equations of motion integrated numerically: the route for schedules, and a third route for everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.integrate import solve_ivp

from tiltmeter.record.trajectory import LazyCurves
from tiltmeter.schedules import value_at
from tiltmeter.theory.population.labelled_curves import OverlapCurves, losses
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters, shares_at

#: An overlap of this size means divergence.
HUGE = 1e12


@dataclass(frozen=True)
class Solution:
    """The state of training as a function of time, from 0 to `end`."""

    start: np.ndarray
    breaks: frozenset[float]
    pieces: tuple[tuple[float, float, Any], ...]
    end: float

    def __call__(self, times: np.ndarray) -> np.ndarray:
        """One row for each of these times, none of them beyond `end`."""
        found = np.empty((len(times), self.start.size))
        found[times == 0.0] = self.start
        for low, high, piece in self.pieces:
            inside = (times > low) & (times <= high)
            if inside.any():
                found[inside] = piece(np.minimum(times[inside], _end(low, high, self.breaks))).T
        return found


class Diverged(ValueError):
    """The student has diverged: the time and the state, if known."""

    time: float = np.nan
    state: np.ndarray | None = None


def by_pieces(
    velocity: Callable[[float, np.ndarray], np.ndarray],
    state: np.ndarray,
    times: np.ndarray,
    sgd: SGD,
    method: Literal["DOP853", "RK23"],
    rtol: float,
    atol: float,
    keep: bool = False,
) -> tuple[np.ndarray, Solution | None]:
    """Return the state at each of `times` and, if it should be kept, as a function of time up to the last.

    The integration restarts at the breaks of the schedules of `sgd`; divergence raises an error.
    """
    first, pieces = state, []
    breaks = set(sgd.breaks)
    edges = [0.0, *sorted(b for b in breaks if 0 < b < times[-1]), float(times[-1])]
    found = np.empty((len(times), state.size))
    found[times == 0.0] = state
    for low, high in pairwise(edges):
        if high == low:
            continue
        inside = (times > low) & (times <= high)
        end = _end(low, high, breaks)
        asked = np.unique(np.append(np.minimum(times[inside], end), end))
        with np.errstate(over="ignore", invalid="ignore"):
            run = solve_ivp(velocity, (low, end), state, method, asked, keep, _grown, rtol=rtol, atol=atol)
        if run.status != 0 or not np.isfinite(run.y).all():
            last = run.t[-1] if len(run.t) else low
            lower = "Lower the learning rate of the schedule." if callable(sgd.lr) else "Lower the learning rate."
            raise Diverged(f"Training diverges: the student grows without bound after t = {last:.4g}. {lower}")
        found[inside] = run.y.T[np.searchsorted(run.t, np.minimum(times[inside], end))]
        state = run.y[:, -1]
        pieces.append((low, high, run.sol))
    return found, Solution(first, frozenset(breaks), tuple(pieces), edges[-1]) if keep else None


def with_resolution(curves: LazyCurves, resolution: float) -> LazyCurves:
    """The same curves with the attribute `resolution`: smaller differences may be errors of the integration."""
    return curves.changed(lambda _, curve: curve.assign_attrs(resolution=resolution))


def _end(low: float, high: float, breaks: Set[float]) -> float:
    """Return a time just below a break, because a step function has its new value at the break itself."""
    return float(np.nextafter(high, low)) if high in breaks else high


def _grown(_: float, flat: np.ndarray) -> float:
    """Zero if the student has diverged; this ends the integration."""
    return float(HUGE - np.abs(flat).max())


_grown.terminal = True  # type: ignore[attr-defined]


def velocity(
    par: Parameters,
    M: np.ndarray,
    R: np.ndarray,
    Q: np.ndarray,
    bias: np.ndarray,
    lr: np.ndarray,
    P: np.ndarray,
    N: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """dM/dt, dR/dt, dQ/dt, dbias/dt (see `modes` for the equations), for learning rate lr, pulls P and noise N now.

    P_g is the weight of the mean gradient of a group, N_g the mean square of the weights of its points: p s and p s^2 /
    batch for loss weights s.
    """
    eta = lr[:, None]
    D_bar = (P * par.D).sum(1)[:, None]
    score = M + bias[:, None]
    pull = P * np.sqrt(par.D) * par.g
    miss = P * (score - par.m)
    fade = D_bar + par.decay[:, None]
    dM = -eta * (fade * M + np.einsum("nhg,ng->nh", par.K, miss) - np.einsum("nhg,ng->nh", par.C, pull))
    dR = -eta * (fade * R + np.einsum("ngk,ng->nk", par.C, miss) - np.einsum("ngk,ng->nk", par.T, pull))
    toward = par.m * M + np.sqrt(par.D) * par.g * R  # E[y w.x], the part of E[y score] that changes in training
    squared = score**2 + par.D * Q[:, None] + 1.0 - 2.0 * (bias[:, None] * par.m + toward)
    noise = (lr**2)[:, None] * N * par.D
    drift = (P * (M * score + par.D * Q[:, None] - toward)).sum(1) + par.decay * Q
    dQ = -2.0 * lr * drift + (noise * squared).sum(1)
    dbias = -lr * miss.sum(1) if par.train_bias else np.zeros_like(Q)
    return dM, dR, dQ, dbias


#: Smaller differences between curves may be errors of the integration.
RESOLUTION = 1e-8


def plain_pulls(par: Parameters, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pulls and noise of loss weights s."""
    return par.p * s, par.p * s**2 / par.batch[:, None]


def integrate(
    problem: Mixture, sgd: SGD, times: np.ndarray, rtol: float = 1e-11, atol: float = 1e-13
) -> tuple[Parameters, OverlapCurves]:
    """Overlaps and losses at `times` by DOP853, all grid points in one system, restarted where schedules break."""
    par = parameters(problem, sgd)
    return par, overlaps_of(par, solve(par, sgd, times, rtol, atol)[0])


def solve(
    par: Parameters, sgd: SGD, times: np.ndarray, rtol: float = 1e-11, atol: float = 1e-13, keep: bool = False
) -> tuple[np.ndarray, Solution | None]:
    """Return the flat state of all grid points at `times`, and as a function of time if that should be kept."""
    points, number = par.m.shape

    def rhs(t: float, y: np.ndarray) -> np.ndarray:
        state = y.reshape(points, 2 * number + 2)
        M, R, Q, bias = state[:, :number], state[:, number : 2 * number], state[:, -2], state[:, -1]
        now = drawn_at(sgd, par, t)
        P, N = plain_pulls(now, weights_at(sgd, now, t))
        dM, dR, dQ, dbias = velocity(now, M, R, Q, bias, rate_at(sgd, now, t), P, N)
        return np.concatenate([dM, dR, dQ[:, None], dbias[:, None]], axis=1).ravel()

    state = np.concatenate([par.M0, par.R0, par.Q0[:, None], par.bias0[:, None]], axis=1).ravel()
    return by_pieces(rhs, state, times, sgd, "DOP853", rtol, atol, keep)


def overlaps_of(par: Parameters, states: np.ndarray) -> OverlapCurves:
    """Overlaps and losses from the states of all grid points, one row for each time."""
    points, number = par.m.shape
    values = states.reshape(len(states), points, 2 * number + 2).transpose(1, 0, 2)
    M, R, Q, bias = (
        np.ascontiguousarray(part)
        for part in (values[..., :number], values[..., number : 2 * number], values[..., -2], values[..., -1])
    )
    return OverlapCurves(M, R, Q, bias, losses(par, M, R, Q, bias))


def rate_at(sgd: SGD, par: Parameters, t: float) -> np.ndarray:
    """The learning rate at time t, at every grid point."""
    if not callable(sgd.lr):
        return par.lr
    return np.full(par.size, value_at(sgd.lr, t, "lr"))


def drawn_at(sgd: SGD, par: Parameters, t: float) -> Parameters:
    """Return the parameters with the proportions of time t."""
    if not sgd.curriculum:
        return par
    shares = shares_at(sgd.proportions, par.groups, t) or []
    fixed = [not callable((sgd.proportions or {})[group]) for group in par.groups]
    columns = [par.p[:, i] if fixed[i] else np.full(par.size, float(share)) for i, share in enumerate(shares)]
    return replace(par, p=np.stack(columns, axis=1))


def weights_at(sgd: SGD, par: Parameters, t: float) -> np.ndarray:
    """The loss weights at time t, at every grid point."""
    given: Mapping[Any, Any] = sgd.weights or {}
    if not any(callable(weight) for weight in given.values()):
        return par.s
    now = par.s.copy()
    for i, group in enumerate(par.groups):
        if callable(given.get(group)):
            now[:, i] = value_at(given[group], t, f"weights[{group!r}]")
    return now
