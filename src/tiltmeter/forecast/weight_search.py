"""Weight search: the logarithms of group weights at which a cost is smallest, from its values alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import minimize, minimize_scalar

#: The largest ratio of a weight to the first group's that is tried.
LARGEST_RATIO = 100.0

#: The costs of several weightings, given as logarithms of weights over the first one.
Costs: TypeAlias = Callable[[Sequence[np.ndarray]], Sequence[float]]


class Effort(NamedTuple):
    """How many weights are tried on a grid, how often the best of them is refined, and to which precision of logs."""

    grid: int
    refined: int
    precision: float


#: For costs that take milliseconds, and for those that take a training of twins.
THOROUGH, SPARING = Effort(9, 20, 1e-2), Effort(5, 5, 0.1)


def weights_of(logs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Weights with a mean of 1 over groups of these shares, from their logarithms relative to the first.

    >>> weights_of(np.log([3.0]), np.array([0.75, 0.25]))
    array([0.66666667, 2.        ])
    """
    limit = np.log(LARGEST_RATIO)
    raw = np.exp(np.clip(np.concatenate([[0.0], np.atleast_1d(logs)]), -limit, limit))
    return np.asarray(raw / (shares * raw).sum())


def one_by_one(cost: Callable[[np.ndarray], float]) -> Costs:
    """The costs of several weightings, from a function of one."""
    return lambda several: [cost(logs) for logs in several]


def smallest(costs: Costs, count: int, effort: Effort = THOROUGH) -> np.ndarray:
    """The logarithms of `count` weights over the first one: a coarse search, then a finer one.

    >>> smallest(one_by_one(lambda logs: float((logs[0] - 1.0) ** 2)), 1).round(2)
    array([1.])

    Those of the coarse search do not depend on each other and are asked for together.
    """
    limit = np.log(LARGEST_RATIO)
    known: dict[tuple[float, ...], float] = {}

    def ask(several: Any) -> None:
        keys = [tuple(np.atleast_1d(logs).tolist()) for logs in several]
        fresh = [key for key in dict.fromkeys(keys) if key not in known]
        values = costs([np.asarray(key) for key in fresh]) if fresh else []
        known.update({key: value if np.isfinite(value) else np.inf for key, value in zip(fresh, values, strict=True)})

    def asked(logs: Any) -> float:
        ask([logs])
        return known[tuple(np.atleast_1d(logs).tolist())]

    if count == 1:
        grid = np.linspace(-limit, limit, effort.grid)
        ask([*grid, 0.0])
        best = int(np.argmin([asked(u) for u in grid]))
        bounds = grid[max(0, best - 1)], grid[min(effort.grid - 1, best + 1)]
        options: Any = {"xatol": effort.precision, "maxiter": effort.refined}
        minimize_scalar(asked, bounds=bounds, method="bounded", options=options)
    else:
        start = np.zeros(count)
        simplex = np.concatenate([start[None], np.eye(count)])
        ask(simplex)
        most = 3 * effort.refined * count
        options = {"initial_simplex": simplex, "xatol": effort.precision, "fatol": 1e-6, "maxfev": most}
        minimize(asked, start, method="Nelder-Mead", options=options)
    return np.asarray(np.clip(min(known, key=lambda key: known[key]), -limit, limit))


def at_bound(logs: np.ndarray) -> bool:
    """Whether a weight is at the largest ratio tried."""
    return bool((np.abs(logs) > 0.99 * np.log(LARGEST_RATIO)).any())
