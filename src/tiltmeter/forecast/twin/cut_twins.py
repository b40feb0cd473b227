"""CutTwins: the twins of a network, cut once for all recipes that share them, and what is known before training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.laws import stackable
from tiltmeter.forecast.optimiser_kind import Kind
from tiltmeter.forecast.replica_seeds import replica_seeds
from tiltmeter.forecast.twin.asked_recipe import AskedRecipe
from tiltmeter.forecast.twin.places import by_place
from tiltmeter.forecast.twin.side_by_side import StackedTwins, chain
from tiltmeter.forecast.twin.stacked_rates import Rates
from tiltmeter.forecast.twin.twin_task import TwinTask
from tiltmeter.forecast.twin.twins import ScaledTwin, scaled, shifted
from tiltmeter.forecast.twin.untrained import Untrained, seen_places
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.recipe import Recipe


@dataclass(frozen=True, eq=False)
class CutTwins:
    """Twins with the seeds of their batches and the scores of the untrained network.

    `kind` is that of the optimiser, None where it does not matter. `rates` are those of twins that can be trained side
    by side; None: one after the other.
    """

    twins: Sequence[ScaledTwin]
    seeds: Sequence[int]
    wide: Untrained
    kind: Kind | None
    rates: Rates | None


def cut_twins(task: TwinTask, recipes: Sequence[AskedRecipe]) -> CutTwins:
    """The twins of recipes that share them."""
    recipe = recipes[0].lowered
    twins = _twins(task, recipe)
    # The network itself, on the batches of its run, takes any optimiser.
    kind = None if twins[0].whole and recipe.order is not None else twins[0].kind(recipe)
    if task.sure and not all(twin.whole for twin in twins):
        raise ValueError(
            "A twin adds the scores of two networks, which `model` should give before its sigmoid or softmax. Found "
            "that it answers with probabilities: route Coordinates takes it as it is."
        )
    # The order of the run if the recipe gives one; else every twin has its own order.
    known = recipe.order is not None
    seeds = [task.route.seed] * len(twins) if known else replica_seeds(task.route.seed, len(twins))
    # Laws may look at points that no batch shows.
    steered = bool(recipes[0].asked.interventions)
    seen = None if steered else seen_places(task.train, recipe, seeds)
    wide = Untrained(task.own, task.train, task.x, task.watch.read, seen, rough=not steered)
    return CutTwins(twins, seeds, wide, kind, shared_rates(task, twins, recipe, kind))


def shared_rates(task: TwinTask, twins: Sequence[ScaledTwin], recipe: Recipe, kind: Kind | None) -> Rates | None:
    """The rates of twins that can be trained side by side; None: one after the other."""
    alone = not stackable(recipe) or task.watch.read is not None or twins[0].whole
    if alone or kind is None or any(chain(twin.network) is None for twin in twins):
        return None
    found = Rates(twins[0], recipe, kind, recipe.total_steps(len(task.train)))
    return found if found.stackable else None


def stacked_twins(task: TwinTask, cut: CutTwins, recipe: Recipe) -> StackedTwins:
    """The same twins, made ready to be trained side by side."""
    assert cut.rates is not None
    shifts = [shifted(cut.wide, twin) for twin in cut.twins]
    own = by_place(task.train, task.look)
    with untouched(shifts[0]):
        keep = len(forecast_measures(task.watch)) > len(DEFAULTS)
        answers = Answers(shifts[0], own[1], recipe.loss, task.watch.decide, None, 256, keep)
    return StackedTwins(cut.twins, shifts, cut.rates, cut.seeds, answers)


def _twins(task: TwinTask, recipe: Recipe) -> list[ScaledTwin]:
    route = task.route
    seeds = range(route.seed, route.seed + route.count)
    found = [scaled(task.cut(route.share, seed), task.outputs) for seed in seeds]
    if found[0].whole:
        if route.share < 1.0:
            raise ValueError(
                f"A twin of share {route.share:g} needs dimensions of more than 8 units that can be cut. Found none in "
                f"{type(task.own).__name__}: routes Kernel and Coordinates take it as it is."
            )
        if recipe.order is not None:
            return found[:1]  # every twin would be the network itself, trained on the same batches
    return found
