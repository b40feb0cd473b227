"""equilibrium_weights: the reweighting of the loss that minimises unfairness after training, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize, minimize_scalar
from scipy.special import ndtr

import tiltmeter as tm

Criterion = tm.fairness.criteria.Criterion
CRITERIA = tm.fairness.criteria.CRITERIA

#: The labels of a mixture.
LABELS = (1, -1)
#: The largest ratio of two weights that is tried.
LARGEST_RATIO = 100.0
#: A gain up to this is the error of the solutions.
ROUNDING = 1e-9
#: Smaller changes are not reported.
NOTICEABLE = 5e-4


@dataclass(frozen=True, eq=False)
class EquilibriumWeights:
    """The weights that minimise a criterion, and the student trained with and without them.

    `weights` keep the mean weight of an example at 1. `at_bound`: the search ended at the largest ratio it tries.
    """

    criterion: Criterion
    weights: dict[Hashable, float]
    plain: xr.Dataset
    reweighted: xr.Dataset
    at_bound: bool

    def table(self, criteria: tuple[Criterion, ...] = CRITERIA) -> xr.DataArray:
        """Every criterion, and the error of the population, without and with the weights."""
        rows = [[*(float(c.of(found)) for c in criteria), float(found["population_error"])] for found in self._both]
        names = [*(c.name for c in criteria), "population error"]
        return xr.DataArray(
            rows, dims=("training", "criterion"), coords={"training": ["plain", "reweighted"], "criterion": names}
        )

    def worsened(self, criteria: tuple[Criterion, ...] = CRITERIA) -> list[str]:
        """What the weights make worse by a noticeable amount."""
        before, after = self.table(criteria).values
        names = self.table(criteria).coords["criterion"].values
        return [str(name) for name, b, a in zip(names, before, after, strict=True) if a > b + NOTICEABLE]

    @property
    def _both(self) -> tuple[xr.Dataset, xr.Dataset]:
        return self.plain, self.reweighted

    def __str__(self) -> str:
        before, after = (float(self.criterion.of(found)) for found in self._both)
        said = ", ".join(f"{key} {weight:.3g}" for key, weight in self.weights.items())
        if after > before - NOTICEABLE:
            return f"No reweighting improves {self.criterion.name}, which is {before:.3f}."
        table = self.table()
        worse = [
            f"{name} ({table.sel(training='plain', criterion=name).item():.3f} to "
            f"{table.sel(training='reweighted', criterion=name).item():.3f})"
            for name in self.worsened()
        ]
        price = f"; it worsens {_listed(worse)}." if worse else "; nothing else gets worse."
        bound = " (the largest ratio tried)" if self.at_bound else ""
        return f"Weights {said}{bound} bring {self.criterion.name} from {before:.3f} to {after:.3f}{price}"


def equilibrium_weights(
    problem: tm.theory.Mixture,
    loss: tm.losses.Loss,
    samples: float,
    ridge: float,
    criterion: Criterion,
    by_label: bool = False,
    bias: bool = True,
) -> EquilibriumWeights:
    """Find the weights per group (or per group and label) that minimise a criterion at equilibrium.

    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> print(equilibrium_weights(problem, tm.Logistic(), 2.0, 0.3, tm.fairness.criteria.AccuracyParity()))
    Weights + ... bring accuracy parity from 0.089 to 0.000; it worsens population error (... to ...).

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        loss: Loss to minimise, such as `tm.Logistic()`.
        samples: Training examples per dimension, n / d.
        ridge: Strength of the penalty ridge / 2 times the squared weights.
        criterion: What is to be small, one of `tm.fairness.criteria`.
        by_label: Whether every (group, label) has its own weight.
        bias: Whether a bias is trained beside the weights.
    """
    if not isinstance(criterion, Criterion):
        raise TypeError(f"`criterion` should be a criterion, as AccuracyParity(). Found {type(criterion).__name__}.")
    plain = tm.equilibrium(problem, loss, samples, ridge, bias=bias)
    if plain["population_error"].dims:
        over = ", ".join(map(str, plain["population_error"].dims))
        raise ValueError(f"`equilibrium_weights` takes one problem. Found a grid over {over}.")
    search = _Search(problem, partial(tm.equilibrium, problem, loss, samples, ridge, bias=bias), criterion, by_label)
    size = len(search.keys) - 1
    if not size:
        raise ValueError("With one group and no labels there is nothing to reweight. Found one group.")
    best = _scalar(search) if size == 1 else _simplex(search, size)
    if search(best) > search(np.zeros(size)) - ROUNDING:
        best = np.zeros(size)
    weights = dict(zip(search.keys, search.weights(best).tolist(), strict=True))
    reweighted = tm.equilibrium(problem, loss, samples, ridge, weights, bias)
    at_bound = bool(np.abs(best).max() > 0.99 * np.log(LARGEST_RATIO))
    return EquilibriumWeights(criterion, weights, plain, reweighted, at_bound)


class _Search:
    """The criterion as a function of the log weights relative to the first."""

    def __init__(
        self,
        problem: tm.theory.Mixture,
        solve: Callable[..., xr.Dataset],
        criterion: Criterion,
        by_label: bool,
    ) -> None:
        groups = problem.groups
        self.solve, self.criterion = solve, criterion
        self.keys: list[Hashable] = [(g, label) for g in groups for label in LABELS] if by_label else list(groups)
        overlap = np.diagonal(problem.gram.values[: len(groups), len(groups) :])
        positive = ndtr((overlap + problem.label_bias.values) / np.sqrt(problem.variance.values))
        by_both = problem.weight.values[:, None] * np.stack([positive, 1.0 - positive], axis=1)
        self.shares = by_both.ravel() if by_label else problem.weight.values

    def weights(self, logs: np.ndarray) -> np.ndarray:
        """Weights with mean one over the population, one for each key (or rows of them for rows of logs)."""
        bounded = np.clip(logs, -np.log(LARGEST_RATIO), np.log(LARGEST_RATIO))
        free = np.exp(np.insert(bounded, 0, 0.0, axis=-1))
        return np.asarray(free / (free @ self.shares)[..., None])

    def __call__(self, logs: np.ndarray) -> float:
        return float(self.along(np.atleast_1d(logs)[None])[0])

    def along(self, path: np.ndarray) -> np.ndarray:
        """Return the criterion at every row of log weights; infinite where there is no solution."""
        given = {key: ("try", column) for key, column in zip(self.keys, self.weights(path).T, strict=True)}
        try:
            values = self.criterion.of(self.solve(given)).values
        except ValueError:
            return np.concatenate([self.along(row[None]) for row in path]) if len(path) > 1 else np.array([np.inf])
        return np.where(np.isfinite(values), values, np.inf)


def _scalar(search: _Search) -> np.ndarray:
    """Scan the only ratio, then search around the best point."""
    grid = np.linspace(-np.log(LARGEST_RATIO), np.log(LARGEST_RATIO), 17)
    values = search.along(grid[:, None])
    best = int(np.argmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda x: search(np.array([x])), bounds=(low, high), method="bounded", options={"xatol": 1e-4}
    )
    return np.array([found.x if found.fun <= values[best] else grid[best]])


def _simplex(search: _Search, size: int) -> np.ndarray:
    """Run Nelder and Mead's search from equal weights, and again from its result."""
    best = np.zeros(size)
    for spread in (1.0, 0.3):
        corners = np.vstack([best, best + spread * np.eye(size)])
        options: Any = {"initial_simplex": corners, "xatol": 1e-4, "fatol": 1e-6, "maxfev": 150 * size}
        best = np.asarray(minimize(search, best, method="Nelder-Mead", options=options).x)
    return best


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
