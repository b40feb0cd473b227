"""best_weights: the group weights under which the linearised network makes a criterion smallest."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize, minimize_scalar

from tiltmeter.criteria import Criterion, WorstGroupLoss
from tiltmeter.forecast.kernel.question import Question, targets
from tiltmeter.forecast.kernel.sample_correction import corrected_losses, group_losses, half_samples
from tiltmeter.forecast.kernel.solvers.square import responses
from tiltmeter.forecast.kernel.tangent import Tangent
from tiltmeter.losses import Square
from tiltmeter.recipe.lowered import group_intervention
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.record import log_spaced
from tiltmeter.shown_text import NotebookText


def best_weights(kernels: Tangent, recipe: Recipe, criterion: Criterion = WorstGroupLoss()) -> BestWeights:
    """The group weights under which the linearised network makes a criterion smallest, without training the network.

    >>> import numpy as np
    >>> from torch import nn
    >>> from tiltmeter.data.grouped import GroupedData
    >>> from tiltmeter.forecast.kernel.network_kernels import tangent
    >>> from tiltmeter.losses import Square
    >>> rng = np.random.default_rng(0)
    >>> x, rare = rng.normal(size=(600, 4)), np.arange(600) % 10 == 0
    >>> data = GroupedData(x, np.sign(np.where(rare, x[:, 1], x[:, 0])), np.where(rare, "rare", "common"))
    >>> best = best_weights(tangent(nn.Linear(4, 1), *data.split(0.5)), Recipe(lr=0.05, steps=300, loss=Square()))
    >>> best.weights["rare"] > 3 and best.after < best.before
    True

    Weights have a mean of 1 over the training data, so that the overall learning rate stays the same. The criterion is
    evaluated on the held-out points: with few of them, the best value is partly luck. The weights are those for the
    linearised network, which learns no features: rehearse them (`tm.forecast` with `replace(recipe, weights=...)`)
    before relying on them.

    Args:
        kernels: Result of `tm.tangent`.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        criterion: What is to be small on the held-out points, one of `tm.fairness.criteria`.
    """
    if not isinstance(kernels, Tangent):
        raise TypeError(f"`kernels` should be the result of `tm.tangent`. Found {type(kernels).__name__}.")
    if not isinstance(criterion, Criterion):
        raise TypeError(f"`criterion` should be one, as WorstGroupLoss(). Found {_kind(criterion)}.")
    if checked_recipe(recipe).weights is not None:
        raise ValueError("`best_weights` searches the weights itself: leave them out of the recipe.")
    law = group_intervention(recipe)
    if law is not None:
        name = type(law).__name__
        raise ValueError(f"`best_weights` searches what groups count: leave out {name}, or use `forecast`.")
    if len(kernels.sample.groups) < 2:
        raise ValueError("Weights of groups need at least two groups. Found one.")
    return weights_by_kernel(kernels, recipe, criterion)


def _kind(value: Any) -> str:
    return f"the class {value.__name__}: call it" if isinstance(value, type) else type(value).__name__


#: The largest ratio of a weight to the first group's that is tried.
LARGEST_RATIO = 100.0

#: Weights on the grid of the search, how often the best of them is refined, and to which precision of logarithms.
GRID, REFINED, PRECISION = 9, 20, 1e-2


def weights_of(logs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Weights with a mean of 1 over groups of these shares, from their logarithms relative to the first.

    >>> weights_of(np.log([3.0]), np.array([0.75, 0.25]))
    array([0.66666667, 2.        ])
    """
    limit = np.log(LARGEST_RATIO)
    raw = np.exp(np.clip(np.concatenate([[0.0], np.atleast_1d(logs)]), -limit, limit))
    return np.asarray(raw / (shares * raw).sum())


def smallest(cost: Callable[[np.ndarray], float], count: int) -> np.ndarray:
    """The logarithms of `count` weights over the first one: a coarse search, then a finer one.

    >>> smallest(lambda logs: float((logs[0] - 1.0) ** 2), 1).round(2)
    array([1.])
    """
    limit = np.log(LARGEST_RATIO)
    known: dict[tuple[float, ...], float] = {}

    def tried(logs: Any) -> float:
        key = tuple(np.atleast_1d(logs).tolist())
        if key not in known:
            value = cost(np.asarray(key))
            known[key] = value if np.isfinite(value) else np.inf
        return known[key]

    tried(np.zeros(count))
    if count == 1:
        grid = np.linspace(-limit, limit, GRID)
        best = int(np.argmin([tried(u) for u in grid]))
        bounds = grid[max(0, best - 1)], grid[min(GRID - 1, best + 1)]
        options: Any = {"xatol": PRECISION, "maxiter": REFINED}
        minimize_scalar(tried, bounds=bounds, method="bounded", options=options)
    else:
        simplex = np.concatenate([np.zeros((1, count)), np.eye(count)])
        options = {"initial_simplex": simplex, "xatol": PRECISION, "fatol": 1e-6, "maxfev": 3 * REFINED * count}
        minimize(tried, simplex[0], method="Nelder-Mead", options=options)
    return np.asarray(np.clip(min(known, key=lambda key: known[key]), -limit, limit))


def at_bound(logs: np.ndarray) -> bool:
    """Whether a weight is at the largest ratio tried."""
    return bool((np.abs(logs) > 0.99 * np.log(LARGEST_RATIO)).any())


#: Relative changes below this are not reported.
NOTICEABLE = 1e-3


@dataclass(frozen=True)
class BestWeights(NotebookText):
    """Weights with a mean of 1 over the training data, and what they are forecast to do.

    `before` and `after` are the criterion without and with them; `losses` hold every group's final loss, both ways.
    `at_bound`: the search ended at the largest ratio it tries.
    """

    weights: dict[Hashable, float]
    criterion: Criterion
    before: float
    after: float
    losses: dict[Hashable, tuple[float, float]]
    at_bound: bool

    @property
    def levels_down(self) -> bool:
        """Whether a gap closes only because a group gets worse, while none gets better."""
        worse = [after > before * (1 + NOTICEABLE) for before, after in self.losses.values()]
        better = [after < before * (1 - NOTICEABLE) for before, after in self.losses.values()]
        return any(worse) and not any(better)

    def __str__(self) -> str:
        if self.after > self.before * (1 - NOTICEABLE):
            return f"No weights are forecast to improve {self.criterion.name}, which is {self.before:.4g}."
        said = ", ".join(f"{group} {weight:.3g}" for group, weight in self.weights.items())
        ends = "; ".join(f"{group} {before:.4g} to {after:.4g}" for group, (before, after) in self.losses.items())
        text = f"Weights {said} are forecast to bring {self.criterion.name} from {self.before:.4g} to {self.after:.4g}"
        text += f" (final losses: {ends})"
        if self.at_bound:
            text += ", at the largest ratio tried"
        if self.levels_down:
            return f"{text}. This is levelling down: the gap closes because a group loses and none gains."
        if self.criterion.levels:
            return f"{text}. A gap can also close by harm: compare the losses before using these weights."
        return text + "."


def weights_by_kernel(tangent: Tangent, recipe: Recipe, criterion: Criterion) -> BestWeights:
    """The weights under which the forecast of these kernels makes the criterion smallest.

    The search uses the leading features of the kernels; what is reported is of the kernels themselves. For the squared
    loss every forecast has a closed form. For other losses the forecast is followed step by step.
    """
    question = tangent.question(recipe)
    found, steps = question.loss, question.sgd.steps
    evaluations = np.asarray(sorted({*log_spaced(20).steps(steps), steps}))
    parts = half_samples(tangent)
    groups, shares = tangent.sample.groups, tangent.shares
    quick = [_quick(one, question, evaluations) for one in (tangent, *parts)]

    def cost(logs: np.ndarray) -> float:
        weights = weights_of(logs, shares)
        return _judged(criterion, evaluations, corrected_losses(tangent, (one(weights) for one in quick)))

    logs = smallest(cost, len(groups) - 1)
    chosen = dict(zip(groups, weights_of(logs, shares).tolist(), strict=True))
    goal = targets(tangent.held_out.y, tangent.columns, found, tangent.positive)

    def course(given: Mapping[Any, float] | None) -> np.ndarray:
        courses = (one.course(replace(question, weights=given), evaluations) for one in (tangent, *parts))
        losses = (group_losses(tangent.by_point(one.outputs), goal, tangent.held_out, found)[0] for one in courses)
        return corrected_losses(tangent, losses)

    plain, better = course(None), course(chosen)
    order = [tangent.held_out.groups.index(group) for group in groups]
    ends = {g: (float(plain[-1, i]), float(better[-1, i])) for g, i in zip(groups, order, strict=True)}
    before, after = (_judged(criterion, evaluations, one) for one in (plain, better))
    return BestWeights(chosen, criterion, before, after, ends, at_bound(logs))


def _judged(criterion: Criterion, evaluations: np.ndarray, losses: np.ndarray) -> float:
    curve = xr.DataArray(losses, dims=("time", "group"), coords={"time": evaluations})
    return float(criterion.of({"loss": curve}))


def _quick(tangent: Tangent, question: Question, evaluations: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a fast function from weights to losses (evaluations, groups), from a few hundred features."""
    groups, loss = tangent.sample.groups, question.loss
    goal = targets(tangent.held_out.y, tangent.columns, loss, tangent.positive)
    if not isinstance(loss, Square) or question.sgd.weight_decay:

        def whole(weights: np.ndarray) -> np.ndarray:
            given = dict(zip(groups, weights.tolist(), strict=True))
            outputs = tangent.course(replace(question, weights=given), evaluations).outputs
            return group_losses(tangent.by_point(outputs), goal, tangent.held_out, loss)[0]

        return whole
    features = tangent.features(loss)
    share = tangent.shared(question)[:, None]
    codes = np.repeat(tangent.sample.codes, len(share) // len(tangent.sample))
    aim = targets(tangent.sample.y, tangent.columns, loss, tangent.positive)
    distance = tangent.flat(tangent.start_sample - aim)
    parts = [(features.sample[codes == g], share[codes == g], distance[codes == g]) for g in range(len(groups))]
    bends = np.stack([rows.T @ (s * rows) for rows, s, _ in parts])
    pulls = np.stack([rows.T @ (s * off) for rows, s, off in parts])
    start = tangent.flat(tangent.start_held_out)

    def few(weights: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(np.tensordot(weights, bends, axes=1))
        pull = vectors.T @ np.tensordot(weights, pulls, axes=1)
        answers, _ = responses(np.maximum(values, 0.0), question.sgd, evaluations)
        moved = answers[:, :, None] * pull
        outputs = start + np.tensordot(moved, features.held_out @ vectors, axes=(1, 1)).transpose(0, 2, 1)
        return group_losses(tangent.by_point(outputs), goal, tangent.held_out, loss)[0]

    return few
