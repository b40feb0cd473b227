"""Two searches for a fixed point x = F(x): accelerated iteration, and Newton's method for hard cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

#: x -> (F(x) - x, its size in the units that matter).
Turn: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, float]]
#: (from, to) -> a step towards `to` that is not too long.
Bound: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: How many earlier evaluations the acceleration uses.
MEMORY = 6


def anderson(
    turn: Turn, bounded: Bound, start: np.ndarray, tolerance: float, patience: int
) -> tuple[np.ndarray, float, int]:
    """Anderson's acceleration (1965): the best x, its residual, and the number of evaluations.

    >>> anderson(lambda x: (np.cos(x) - x, float(abs(np.cos(x) - x)[0])), lambda a, b: b, np.ones(1), 1e-12, 50)[0]
    array([0.73908513])
    """
    states: list[np.ndarray] = []
    moves: list[np.ndarray] = []
    state = best = start
    lowest = np.inf
    for count in range(1, patience + 1):
        move, residual = turn(state)
        if residual < lowest:
            best, lowest = state, residual
        if residual < tolerance or not np.isfinite(residual):
            return best, lowest, count
        states, moves = [*states[-MEMORY:], state], [*moves[-MEMORY:], move]
        new = state + move
        if len(states) > 1:
            dx, df = np.diff(np.stack(states), axis=0).T, np.diff(np.stack(moves), axis=0).T
            new = new - (dx + df) @ np.linalg.lstsq(df, move, rcond=1e-10)[0]
        state = bounded(state, new)
    return best, lowest, patience


def newton(
    turn: Turn, bounded: Bound, start: np.ndarray, tolerance: float, patience: int
) -> tuple[np.ndarray, float, int]:
    """Newton's method with finite differences and a line search; like `anderson`, but slower and more robust.

    >>> newton(lambda x: (np.cos(x) - x, float(abs(np.cos(x) - x)[0])), lambda a, b: b, np.ones(1), 1e-12, 50)[0]
    array([0.73908513])
    """
    state = start
    move, residual = turn(state)
    count = 1
    for _ in range(patience):
        if residual < tolerance or not np.isfinite(residual):
            break
        jacobian = np.empty((len(state), len(state)))
        for j, width in enumerate(1e-7 * np.maximum(1e-3, np.abs(state))):
            probe = state.copy()
            probe[j] += width
            jacobian[:, j] = (turn(probe)[0] - move) / width
        count += len(state)
        step = np.linalg.lstsq(jacobian, -move, rcond=1e-14)[0]
        for _ in range(12):
            new = bounded(state, state + step)
            moved, found = turn(new)
            count += 1
            if found < residual:
                break
            step = 0.4 * step
        else:
            break
        state, move, residual = new, moved, found
    return state, residual, count
