"""forecast_by_twins: the curves of a training, from narrow twins of the network trained in its place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.known_labels import check_labels_known
from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.inputs import checked_classes, checked_data, checked_model, say_held_out
from tiltmeter.forecast.laws import check_twin_laws, needs_points, stackable
from tiltmeter.forecast.optimiser_kind import Kind
from tiltmeter.forecast.replica_seeds import replica_seeds
from tiltmeter.forecast.replicas import told_by_replicas
from tiltmeter.forecast.route import Twin
from tiltmeter.forecast.twin.one_by_one import train_one_by_one
from tiltmeter.forecast.twin.places import by_place
from tiltmeter.forecast.twin.side_by_side import chain, train_side_by_side
from tiltmeter.forecast.twin.stacked_rates import Rates
from tiltmeter.forecast.twin.twins import ScaledTwin, scaled_twins, shifted, shifted_anywhere
from tiltmeter.forecast.twin.untrained import Untrained, seen_places
from tiltmeter.measures.answers import Answers, trial_scores
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.output_kind import gives_probabilities
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import bare, like_weights
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory
from tiltmeter.training.network_laws import check_needs


def forecast_by_twins(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData | None,
    recipe: Recipe,
    route: Twin,
    watch: Watch,
    progress: bool = True,
) -> Trajectory:
    """The curves of every twin, in a dimension `seed` where there are several; the model is not changed."""
    held_out = look is None
    train, look = checked_data(train, look)
    check_labels_known(train, look)
    if held_out:
        say_held_out()
    asked, recipe = recipe, lowered_recipe(recipe, train)
    check_twin_laws(recipe)
    check_needs(asked.interventions, train, None)
    own = deep_copy(bare(checked_model(model)))
    x = _points(own, train), _points(own, look)
    with untouched(own):
        trial = trial_scores(own, x[0][:8], watch.read)
        sure = gives_probabilities(own, x[0][:8], watch.read)
    outputs = trial.shape[1] if trial.ndim == 2 else 1
    for data in (train, look):
        checked_classes(data, outputs)
    twins = _twins(own, x[0], recipe, route, outputs, watch)
    # The network itself, on the batches of its run, takes any optimiser.
    kind = None if twins[0].whole and recipe.order is not None else twins[0].kind(recipe)
    if sure and not all(twin.whole for twin in twins):
        raise ValueError(
            "A twin adds the scores of two networks, which `model` should give before its sigmoid or softmax. Found "
            "that it answers with probabilities."
        )
    steps = recipe.total_steps(len(train))
    # The order of the run if the recipe gives one; else every twin has its own order.
    seeds = [route.seed] * len(twins) if recipe.order is not None else replica_seeds(route.seed, len(twins))
    rates = _rates(twins, recipe, kind, steps, watch)
    # Laws may look at points that no batch shows.
    seen = None if asked.interventions else seen_places(train, recipe, seeds)
    wide = Untrained(own, train, x, watch.read, seen, rough=not asked.interventions)
    if rates is None:
        recipes = [twin.recipe(asked, steps) for twin in twins]
        own_points = needs_points(asked)
        networks: list[Any] = [shifted_anywhere(wide, twin) if own_points else shifted(wide, twin) for twin in twins]
        places = (train, look) if own_points else by_place(train, look)
        found = train_one_by_one(networks, recipes, seeds, *places, watch, progress)
    else:
        shifts = [shifted(wide, twin) for twin in twins]
        measures = forecast_measures(watch)
        with untouched(shifts[0]):
            keep = len(measures) > len(DEFAULTS)
            answers = Answers(shifts[0], by_place(train, look)[1], recipe.loss, watch.decide, None, 256, keep)
        found = train_side_by_side(twins, shifts, recipe, rates, seeds, train, look, watch, measures, answers, asked)
    return told_by_replicas(found, own, train, look, asked, watch, route, _account(twins, recipe, rates is not None))


def _points(model: nn.Module, data: GroupedData) -> Tensor:
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    points: Tensor = data.tensors(like.dtype)[0]
    return like_weights(model, points)


def _twins(model: nn.Module, x: Tensor, recipe: Recipe, route: Twin, outputs: int, watch: Watch) -> list[ScaledTwin]:
    seeds = range(route.seed, route.seed + route.count)
    found = scaled_twins(model, x[:2], route.share, seeds, outputs, watch.read)
    if found[0].whole:
        if route.share < 1.0:
            raise ValueError(
                f"A twin of share {route.share:g} needs dimensions of more than 8 units that can be cut. Found none in "
                f"{type(model).__name__}: routes Kernel and Coordinates take it as it is."
            )
        if recipe.order is not None:
            return found[:1]  # every twin would be the network itself, trained on the same batches
    return found


def _rates(twins: list[ScaledTwin], recipe: Recipe, kind: Kind | None, steps: int, watch: Watch) -> Rates | None:
    """The rates of twins that can be trained side by side; None: one after the other."""
    alone = not stackable(recipe) or watch.read is not None or twins[0].whole
    if alone or kind is None or any(chain(twin.network) is None for twin in twins):
        return None
    found = Rates(twins[0], recipe, kind, steps)
    return found if found.stackable else None


def _account(twins: list[ScaledTwin], recipe: Recipe, together: bool) -> dict[str, Any]:
    """What was done, for the Origin."""
    cut = {name: list(counts) for name, counts in twins[0].cut.cut.items()}
    order = "the run's own" if recipe.order is not None else "one for every twin"
    return {
        "cut": cut,
        "whole": list(twins[0].cut.whole),
        "parameters": sum(p.numel() for p in twins[0].network.parameters()),
        "order": order,
        "trained": "side by side" if together else "one by one",
    }
