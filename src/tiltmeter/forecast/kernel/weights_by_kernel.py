"""weights_by_kernel: group weights searched in the features of a tangent kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.forecast.kernel.corrected_control import CorrectedControl
from tiltmeter.forecast.kernel.group_losses import group_losses
from tiltmeter.forecast.kernel.question import Question
from tiltmeter.forecast.kernel.sample_correction import corrected_losses, half_samples
from tiltmeter.forecast.kernel.solvers.modes import responses
from tiltmeter.forecast.kernel.tangent import Tangent
from tiltmeter.forecast.kernel.targets import targets
from tiltmeter.forecast.recommended import BestWeights
from tiltmeter.forecast.weight_search import LARGEST_RATIO, at_bound, one_by_one, smallest, weights_of
from tiltmeter.losses import CrossEntropy, Logistic, Square
from tiltmeter.population.criteria import Criterion, FinalGap, GapArea, WorstGroupArea, WorstGroupLoss
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.record import log_spaced
from tiltmeter.theory.pull_search import PullSearch

#: Widths over which the kinks of the criterion are rounded, and rounds of the search by gradients for each.
WIDTHS, ROUNDS = (1e-2, 1e-3), 8


def weights_by_kernel(tangent: Tangent, recipe: Recipe, criterion: Criterion) -> BestWeights:
    """The weights under which the forecast of these kernels makes the criterion smallest.

    The search uses the leading features of the kernels; what is reported is of the kernels themselves. For the squared
    loss every forecast has a closed form. For other losses the forecast is followed step by step, and its exact
    gradients guide the search.
    """
    question = tangent.question(recipe)
    found, steps = question.loss, question.sgd.steps
    looks = np.asarray(sorted({*log_spaced(20).steps(steps), steps}))
    parts = half_samples(tangent)
    groups, shares = tangent.sample.groups, tangent.shares
    if isinstance(found, (Logistic, CrossEntropy)) and not question.sgd.weight_decay:
        logs = _by_gradients(tangent, parts, question, criterion, looks)
    else:
        quick = [_quick(one, question, looks) for one in (tangent, *parts)]

        def cost(logs: np.ndarray) -> float:
            weights = weights_of(logs, shares)
            return _judged(criterion, looks, corrected_losses(tangent, (one(weights) for one in quick)))

        logs = smallest(one_by_one(cost), len(groups) - 1)
    chosen = dict(zip(groups, weights_of(logs, shares).tolist(), strict=True))
    goal = targets(tangent.look.y, tangent.columns, found, tangent.positive)

    def course(given: Mapping[Any, float] | None) -> np.ndarray:
        courses = (one.course(replace(question, weights=given), looks) for one in (tangent, *parts))
        losses = (group_losses(tangent.by_point(one.outputs), goal, tangent.look, found)[0] for one in courses)
        return corrected_losses(tangent, losses)

    plain, better = course(None), course(chosen)
    order = [tangent.look.groups.index(group) for group in groups]
    ends = {g: (float(plain[-1, i]), float(better[-1, i])) for g, i in zip(groups, order, strict=True)}
    before, after = (_judged(criterion, looks, one) for one in (plain, better))
    return BestWeights(chosen, criterion, before, after, ends, at_bound(logs))


def _judged(criterion: Criterion, looks: np.ndarray, losses: np.ndarray) -> float:
    curve = xr.DataArray(losses, dims=("time", "group"), coords={"time": looks})
    return float(criterion.of({"loss": curve}))


def _by_gradients(
    tangent: Tangent, parts: Sequence[Tangent], question: Question, criterion: Criterion, looks: np.ndarray
) -> np.ndarray:
    """The logarithms of weights by gradients of the forecast.

    One weight, or those for a criterion without a gradient, are searched by values alone.
    """
    control = CorrectedControl.of(tangent, parts, question, looks)
    shares = np.maximum(tangent.shares, 1e-12)
    smooth = isinstance(criterion, (WorstGroupArea, GapArea, FinalGap)) or criterion == WorstGroupLoss()
    if smooth and len(shares) > 2:
        pulls = PullSearch(control, criterion, looks.astype(float), False, ROUNDS, WIDTHS).best(1)[0]
        weights = pulls / shares
        logs = np.log(np.maximum(weights / weights[0], 1e-12))[1:]
        limit = np.log(LARGEST_RATIO)
        return np.asarray(np.clip(logs, -limit, limit))

    def cost(logs: np.ndarray) -> float:
        weights = weights_of(logs, tangent.shares)
        return _judged(criterion, looks, control.losses((tangent.shares * weights)[None])[0])

    return smallest(one_by_one(cost), len(shares) - 1)


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
