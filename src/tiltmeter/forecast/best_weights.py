"""best_weights: the group weights that a forecast recommends, from the kernels alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize, minimize_scalar

from tiltmeter.forecast.kernel.group_losses import group_losses
from tiltmeter.forecast.kernel.network_kernels import Tangent
from tiltmeter.forecast.kernel.question import Question
from tiltmeter.forecast.kernel.sample_correction import corrected_losses, half_samples
from tiltmeter.forecast.kernel.solvers.modes import responses
from tiltmeter.forecast.kernel.targets import targets
from tiltmeter.losses import Square
from tiltmeter.notebook_text import NotebookText
from tiltmeter.population.criteria import Criterion, WorstGroupLoss
from tiltmeter.recipe.lowered import group_law
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.record import log_spaced

#: The largest ratio of a weight to the first group's that is tried.
LARGEST_RATIO = 100.0
#: Weights tried before the search is refined.
TRIED = 9
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


def best_weights(tangent: Tangent, recipe: Recipe, criterion: Criterion = WorstGroupLoss()) -> BestWeights:
    """The group weights under which the forecast makes a criterion smallest, without training anything.

    >>> from torch import nn
    >>> from tiltmeter.data.grouped import GroupedData
    >>> from tiltmeter.forecast.kernel.network_kernels import tangent
    >>> rng = np.random.default_rng(0)
    >>> x, rare = rng.normal(size=(600, 4)), np.arange(600) % 10 == 0
    >>> data = GroupedData(x, np.sign(np.where(rare, x[:, 1], x[:, 0])), np.where(rare, "rare", "common"))
    >>> found = best_weights(tangent(nn.Linear(4, 1), *data.split(0.5)), Recipe(lr=0.05, steps=300, loss=Square()))
    >>> found.weights["rare"] > 3 and found.after < found.before
    True

    Weights have a mean of 1 over the training data, so that the overall learning rate stays the same. The criterion is
    evaluated on the held-out points: with few of them, the best value is partly luck. The weights are only as good as
    the forecast; see its horizon.
    """
    if not isinstance(tangent, Tangent):
        raise TypeError(f"`tangent` should be the result of `tm.tangent`. Found {type(tangent).__name__}.")
    if not isinstance(criterion, Criterion):
        raise TypeError(f"`criterion` should be one, as WorstGroupLoss(). Found {_kind(criterion)}.")
    if len(tangent.sample.groups) < 2:
        raise ValueError("Weights of groups need at least two groups. Found one.")
    if checked_recipe(recipe).weights is not None:
        raise ValueError("`best_weights` searches the weights itself: leave them out of the recipe.")
    law = group_law(recipe)
    if law is not None:
        name = type(law).__name__
        raise ValueError(f"`best_weights` searches what groups count: leave out {name}, or use `forecast`.")
    question = tangent.question(recipe)
    found, steps = question.loss, question.sgd.steps
    looks = np.asarray(sorted({*log_spaced(20).steps(steps), steps}))
    parts = half_samples(tangent)
    quick = [_quick(one, question, looks) for one in (tangent, *parts)]
    shares, groups = tangent.shares, tangent.sample.groups
    limit = np.log(LARGEST_RATIO)

    def weights(logs: np.ndarray) -> np.ndarray:
        raw = np.exp(np.clip(np.concatenate([[0.0], np.atleast_1d(logs)]), -limit, limit))
        return np.asarray(raw / (shares * raw).sum())

    def judged(losses: np.ndarray) -> float:
        curve = xr.DataArray(losses, dims=("time", "group"), coords={"time": looks})
        return float(criterion.of({"loss": curve}))

    def cost(logs: np.ndarray) -> float:
        value = judged(corrected_losses(tangent, (one(weights(logs)) for one in quick)))
        return value if np.isfinite(value) else np.inf

    logs = _search(cost, len(groups) - 1, limit)
    chosen = dict(zip(groups, weights(logs).tolist(), strict=True))
    # The reported values use the full kernels, not the features used in the search.
    goal = targets(tangent.look.y, tangent.columns, found, tangent.positive)

    def course(given: Mapping[Any, float] | None) -> np.ndarray:
        courses = (one.course(replace(question, weights=given), looks) for one in (tangent, *parts))
        losses = (group_losses(tangent.by_point(one.outputs), goal, tangent.look, found)[0] for one in courses)
        return corrected_losses(tangent, losses)

    plain, better = course(None), course(chosen)
    order = [tangent.look.groups.index(group) for group in groups]
    ends = {g: (float(plain[-1, i]), float(better[-1, i])) for g, i in zip(groups, order, strict=True)}
    before, after = (judged(one) for one in (plain, better))
    return BestWeights(chosen, criterion, before, after, ends, bool((np.abs(logs) > 0.99 * limit).any()))


def _kind(value: Any) -> str:
    return f"the class {value.__name__}: call it" if isinstance(value, type) else type(value).__name__


def _search(cost: Callable[[np.ndarray], float], count: int, limit: float) -> np.ndarray:
    """Return the logarithms of the other weights over the first: a coarse search, then a finer one."""
    if count == 1:
        grid = np.linspace(-limit, limit, TRIED)
        best = int(np.argmin([cost(np.asarray([u])) for u in grid]))
        bounds = grid[max(0, best - 1)], grid[min(TRIED - 1, best + 1)]
        done = minimize_scalar(
            lambda u: cost(np.asarray([u])), bounds=bounds, method="bounded", options={"xatol": 1e-2, "maxiter": 20}
        )
        near = {float(u): cost(np.asarray([u])) for u in (done.x, 0.0, *bounds)}
        return np.asarray([min(near, key=lambda u: near[u])])
    start = np.zeros(count)
    simplex = np.concatenate([start[None], np.eye(count)])
    options: Any = {"initial_simplex": simplex, "xatol": 1e-2, "fatol": 1e-6, "maxfev": 60 * count}
    ended = minimize(cost, start, method="Nelder-Mead", options=options)
    return np.asarray(np.clip(ended.x, -limit, limit) if ended.fun < cost(start) else start)


def _quick(tangent: Tangent, question: Question, looks: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a fast function from weights to losses (looks, groups), from a few hundred features."""
    groups, loss = tangent.sample.groups, question.loss
    goal = targets(tangent.look.y, tangent.columns, loss, tangent.positive)
    if not isinstance(loss, Square) or question.sgd.weight_decay:

        def whole(weights: np.ndarray) -> np.ndarray:
            given = dict(zip(groups, weights.tolist(), strict=True))
            outputs = tangent.course(replace(question, weights=given), looks).outputs
            return group_losses(tangent.by_point(outputs), goal, tangent.look, loss)[0]

        return whole
    features = tangent.features(loss)
    share = tangent.shared(question)[:, None]
    codes = np.repeat(tangent.sample.codes, len(share) // len(tangent.sample))
    aim = targets(tangent.sample.y, tangent.columns, loss, tangent.positive)
    distance = tangent.flat(tangent.start_sample - aim)
    parts = [(features.sample[codes == g], share[codes == g], distance[codes == g]) for g in range(len(groups))]
    bends = np.stack([rows.T @ (s * rows) for rows, s, _ in parts])
    pulls = np.stack([rows.T @ (s * off) for rows, s, off in parts])
    start = tangent.flat(tangent.start_look)

    def few(weights: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(np.tensordot(weights, bends, axes=1))
        pull = vectors.T @ np.tensordot(weights, pulls, axes=1)
        answers, _ = responses(np.maximum(values, 0.0), question.sgd, looks)
        moved = answers[:, :, None] * pull
        outputs = start + np.tensordot(moved, features.look @ vectors, axes=(1, 1)).transpose(0, 2, 1)
        return group_losses(tangent.by_point(outputs), goal, tangent.look, loss)[0]

    return few
