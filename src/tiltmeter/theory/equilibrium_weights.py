"""equilibrium_weights: the reweighting of the loss that minimises unfairness after training, and its cost."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize, minimize_scalar
from scipy.special import ndtr

from tiltmeter.losses import Loss
from tiltmeter.population.criteria import CRITERIA, Criterion
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.objective import LABELS, Flattened, Objective, ProblemArrays, flatten
from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.equilibrium import ACCEPTED, check_minimiser, labelled_solutions, walk
from tiltmeter.theory.fixed_point import solve

#: The largest ratio of two weights that is tried.
LARGEST_RATIO = 100.0
#: Smaller changes are not reported.
NOTICEABLE = 5e-4


@dataclass(frozen=True, eq=False)
class EquilibriumWeights(NotebookText):
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
    problem: Mixture,
    loss: Loss,
    samples: float,
    ridge: float,
    criterion: Criterion,
    by_label: bool = False,
    bias: bool = True,
) -> EquilibriumWeights:
    """Find the weights per group (or per group and label) that minimise a criterion at equilibrium.

    >>> from tiltmeter import Logistic, teacher_mixture
    >>> from tiltmeter.population.criteria import AccuracyParity
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> print(equilibrium_weights(problem, Logistic(), 2.0, 0.3, AccuracyParity()))
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
    objective = Objective(loss, samples, ridge, None, bias)
    flat = flatten(problem, objective)
    if flat.shape:
        raise ValueError(
            f"`equilibrium_weights` takes one problem. Found a grid over {', '.join(map(str, flat.grid.sizes))}."
        )
    plain = labelled_solutions(problem, objective, flat, walk(loss, flat))
    point = flat.points[0]
    search = _Search(problem, objective, flat, criterion, by_label)
    size = search.count - 1
    if size == 0:
        raise ValueError("With one group and no labels there is nothing to reweight. Found one group.")
    best = _scalar(search) if size == 1 else _simplex(search, size)
    if search(best) > search(np.zeros(size)):
        best = np.zeros(size)
    s = search.weights(best)
    weights = _named(s, flat.groups, by_label)
    objective = replace(objective, weights=weights)
    check_minimiser(loss, replace(point, s=s))
    flat = flatten(problem, objective)
    reweighted = labelled_solutions(problem, objective, flat, [solve(loss, flat.points[0], search.state)])
    at_bound = bool(np.abs(best).max() > 0.99 * np.log(LARGEST_RATIO))
    return EquilibriumWeights(criterion, weights, plain, reweighted, at_bound)


class _Search:
    """The criterion as a function of the log weights relative to the first; each solution starts from the last."""

    def __init__(
        self, problem: Mixture, objective: Objective, flat: Flattened, criterion: Criterion, by_label: bool
    ) -> None:
        self.problem, self.objective, self.flat, self.criterion = problem, objective, flat, criterion
        self.point: ProblemArrays = flat.points[0]
        self.by_label, self.state = by_label, None
        self.count = self.point.groups * (2 if by_label else 1)

    state: np.ndarray | None

    def weights(self, logs: np.ndarray) -> np.ndarray:
        """Weights (G, 2) with mean one over the population."""
        free = np.exp(np.append(0.0, np.clip(logs, -np.log(LARGEST_RATIO), np.log(LARGEST_RATIO))))
        s = free.reshape(-1, 2) if self.by_label else np.repeat(free[:, None], 2, axis=1)
        share = self.point.p[:, None] * np.stack([ndtr(self.point.a), ndtr(-self.point.a)], axis=1)
        return np.asarray(s / (share * s).sum())

    def __call__(self, logs: np.ndarray) -> float:
        return float(self.along(np.atleast_1d(logs)[None])[0])

    def along(self, path: np.ndarray) -> np.ndarray:
        """Return the criterion at every row of log weights, each started from the previous; infinite if not found."""
        points = tuple(replace(self.point, s=self.weights(logs)) for logs in path)
        found = []
        for point in points:
            found.append(solve(self.objective.loss, point, self.state))
            if found[-1].residual < ACCEPTED:
                self.state = found[-1].state
        flat = replace(self.flat, points=points, grid=xr.Dataset(coords={"try": np.arange(len(path))}))
        values = self.criterion.of(labelled_solutions(self.problem, self.objective, flat, found)).values
        solved = [one.residual < ACCEPTED for one in found]
        return np.where(np.isfinite(values) & solved, values, np.inf)


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


def _named(s: np.ndarray, groups: tuple[Hashable, ...], by_label: bool) -> dict[Hashable, float]:
    if by_label:
        return {(g, label): float(s[i, j]) for i, g in enumerate(groups) for j, label in enumerate(LABELS)}
    return {group: float(s[i, 0]) for i, group in enumerate(groups)}


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
