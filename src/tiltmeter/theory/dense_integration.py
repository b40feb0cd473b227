"""Training dynamics integrated once and read off at any time, piece by piece between the breaks of schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tiltmeter.theory.piecewise_integration import HUGE


class DenseSolution:
    """The solution of dy/dt = velocity(t, y) from t = 0 on, continued as far as it is asked for."""

    def __init__(
        self,
        velocity: Callable[[float, np.ndarray], np.ndarray],
        state: np.ndarray,
        breaks: tuple[float, ...] = (),
        rtol: float = 1e-11,
        atol: float = 1e-13,
    ) -> None:
        self._velocity, self._rtol, self._atol = velocity, rtol, atol
        self._breaks = tuple(sorted(b for b in set(breaks) if b > 0))
        self._pieces: list[tuple[float, float, Any]] = []
        self._state, self._reached = np.asarray(state, dtype=float), 0.0
        self._first = self._state.copy()

    def __call__(self, times: np.ndarray) -> np.ndarray:
        """The states (times, size)."""
        self._extend(float(times[-1]))
        found = np.empty((len(times), self._first.size))
        found[times == 0.0] = self._first
        for low, high, solution in self._pieces:
            inside = (times > low) & (times <= high)
            if inside.any():
                found[inside] = solution(times[inside]).T
        return found

    def _extend(self, end: float) -> None:
        while self._reached < end:
            low = self._reached
            later = [b for b in self._breaks if b > low]
            high = min(end, later[0]) if later else end
            # A step function has its new value at the break itself: approach it from below.
            stop = np.nextafter(high, low) if high in self._breaks else high
            with np.errstate(over="ignore", invalid="ignore"):
                run = solve_ivp(
                    self._velocity, (low, stop), self._state, "DOP853", dense_output=True, events=_grown,
                    rtol=self._rtol, atol=self._atol,
                )  # fmt: skip
            if run.status != 0 or not np.isfinite(run.y).all():
                last = run.t[-1] if len(run.t) else low
                raise ValueError(
                    f"Training diverges: the student grows without bound after t = {last:.4g}. Lower the learning rate."
                )
            self._pieces.append((low, high, run.sol))
            self._state, self._reached = run.y[:, -1], high


def _grown(_: float, flat: np.ndarray) -> float:
    return float(HUGE - np.abs(flat).max())


_grown.terminal = True  # type: ignore[attr-defined]
