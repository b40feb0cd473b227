"""weights_by_forecasts: group weights searched by forecasts of any route, one for every weighting that is tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.forecasts import forecasts
from tiltmeter.forecast.recommended import BestWeights
from tiltmeter.forecast.route import Coordinates, Twin
from tiltmeter.forecast.weight_search import SPARING, at_bound, smallest, weights_of
from tiltmeter.population.criteria import Criterion
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory


def weights_by_forecasts(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData,
    recipe: Recipe,
    criterion: Criterion,
    route: Twin | Coordinates,
) -> BestWeights:
    """The best weights of a few that are tried; all forecasts share twins and batches, so that only weights differ.

    A criterion is averaged over replicas. Without an order in the recipe, replicas have batches of their own, the same
    for all weights. Twins of the weights of the coarse search train in one stack where they can.
    """
    groups = train.groups
    shares = np.asarray([train.sizes[group] for group in groups], dtype=float) / len(train)
    watch = Watch(points=False)
    known: dict[tuple[float, ...], Trajectory] = {}

    def weights_at(logs: np.ndarray) -> dict[Any, float]:
        return dict(zip(groups, weights_of(logs, shares).tolist(), strict=True))

    def ask(several: Sequence[np.ndarray]) -> None:
        recipes = {
            _key(logs): replace(recipe, weights=weights_at(logs)) if np.any(logs) else recipe
            for logs in several
            if _key(logs) not in known
        }
        if recipes:
            known.update(forecasts(model, train, look, recipes, watch=watch, route=route).all_of_them())

    def costs(several: Sequence[np.ndarray]) -> list[float]:
        ask(several)
        return [_cost(criterion, known[_key(logs)]) for logs in several]

    logs = smallest(costs, len(groups) - 1, SPARING)
    plain = np.zeros(len(groups) - 1)
    before, after = costs([plain, logs])
    runs = known[_key(plain)], known[_key(logs)]
    ends = {group: (_final(runs[0], group), _final(runs[1], group)) for group in groups}
    return BestWeights(weights_at(logs), criterion, before, after, ends, at_bound(logs))


def _key(logs: np.ndarray) -> tuple[float, ...]:
    return tuple(np.atleast_1d(logs).tolist())


def _cost(criterion: Criterion, found: Trajectory) -> float:
    return float(np.asarray(criterion.of(found)).mean()) if found.diverged is None else np.inf


def _final(found: Trajectory, group: Any) -> float:
    return float(found["loss"].isel(time=-1).sel(group=group).mean())
