"""weights_by_forecasts: group weights searched by forecasts of any route, one for every weighting that is tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.coordinates.forecast_by_coordinates import forecast_by_coordinates
from tiltmeter.forecast.recommended import BestWeights
from tiltmeter.forecast.route import Coordinates, Twin
from tiltmeter.forecast.twin.forecast_by_twins import forecast_by_twins
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
    for all weights.
    """
    groups = train.groups
    shares = np.asarray([train.sizes[group] for group in groups], dtype=float) / len(train)
    watch = Watch(points=False)
    known: dict[tuple[float, ...], Trajectory] = {}

    def told(logs: np.ndarray) -> Trajectory:
        key = tuple(np.atleast_1d(logs).tolist())
        if key not in known:
            weights = dict(zip(groups, weights_of(logs, shares).tolist(), strict=True))
            given = replace(recipe, weights=weights) if any(key) else recipe
            if isinstance(route, Twin):
                known[key] = forecast_by_twins(model, train, look, given, route, watch, False)
            else:
                known[key] = forecast_by_coordinates(model, train, look, given, route, watch)
        return known[key]

    def cost(logs: np.ndarray) -> float:
        found = told(logs)
        return float(np.asarray(criterion.of(found)).mean()) if found.diverged is None else np.inf

    logs = smallest(cost, len(groups) - 1, SPARING)
    plain = np.zeros(len(groups) - 1)
    weights = dict(zip(groups, weights_of(logs, shares).tolist(), strict=True))
    ends = {group: (_final(told(plain), group), _final(told(logs), group)) for group in groups}
    return BestWeights(weights, criterion, cost(plain), cost(logs), ends, at_bound(logs))


def _final(found: Trajectory, group: Any) -> float:
    return float(found["loss"].isel(time=-1).sel(group=group).mean())
