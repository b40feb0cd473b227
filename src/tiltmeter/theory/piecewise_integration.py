"""Integration of training dynamics between the breaks of schedules, with detection of divergence."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.integrate import solve_ivp

from tiltmeter.problem.sgd import SGD
from tiltmeter.record.lazy_curves import LazyCurves

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
