"""Forecasts by twins: one recipe or several, whose twins train in one stack wherever they can share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic

from torch import nn

from tiltmeter.forecast.bands import Promise, calibrated, where
from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.methods import Twin
from tiltmeter.forecast.rehearsal import rehearsal_promise
from tiltmeter.forecast.result import as_forecast
from tiltmeter.forecast.task import ForecastTask, copy_seeds, modules_of
from tiltmeter.forecast.twin.joined_update import Rates
from tiltmeter.forecast.twin.light_training import train_one_by_one
from tiltmeter.forecast.twin.rule import Kind
from tiltmeter.forecast.twin.side_by_side import (
    AskedRecipe,
    Name,
    RecipeBlock,
    StackedTwins,
    chain,
    families,
    needs_points,
    recipe_block,
    stackable,
    train_side_by_side,
)
from tiltmeter.forecast.twin.twins import ScaledTwin, by_place, scaled, shifted, shifted_anywhere
from tiltmeter.forecast.twin.untrained import Untrained, seen_places
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.modules.tangent.gradient import check_statistics
from tiltmeter.modules.untouched import untouched
from tiltmeter.recipe.checks import refuse_run_as
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.record import Trajectory, When, at, every


@dataclass(frozen=True)
class FoundForecasts(Generic[Name]):
    """`runs` are the forecasts, `refused` the errors of recipes that the route cannot forecast."""

    runs: Mapping[Name, Trajectory]
    refused: Mapping[Name, Exception]

    def all_of_them(self) -> Mapping[Name, Trajectory]:
        """The forecasts of all recipes; the error of the first that has none is raised."""
        for error in self.refused.values():
            raise error
        return self.runs


class ForecastCollector(Generic[Name]):
    """Collects forecasts and refusals in any order; short-lived."""

    def __init__(self) -> None:
        self.runs: dict[Name, Trajectory] = {}
        self._refused: dict[Name, Exception] = {}

    @property
    def done(self) -> int:
        """How many recipes are dealt with."""
        return len(self.runs) + len(self._refused)

    @contextmanager
    def refusing(self, *names: Name) -> Iterator[None]:
        """An error in this block is the reason why these recipes, as far as they have none, have no forecast."""
        try:
            yield
        except (ValueError, TypeError) as error:
            self._refused |= {name: error for name in names if name not in self.runs and name not in self._refused}

    def found(self, names: Mapping[Name, object]) -> FoundForecasts[Name]:
        """All that was collected, in the order of these names."""
        runs, refused = ({name: kept[name] for name in names if name in kept} for kept in (self.runs, self._refused))
        return FoundForecasts(runs, refused)  # type: ignore[arg-type]


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


def cut_twins(task: ForecastTask, method: Twin, recipes: Sequence[AskedRecipe]) -> CutTwins:
    """The twins of recipes that share them."""
    recipe = recipes[0].lowered
    twins = _twins(task, method, recipe)
    # The network itself, on the batches of its run, takes any optimiser.
    kind = None if twins[0].whole and recipe.order is not None else twins[0].kind(recipe)
    if task.probabilities and not all(twin.whole for twin in twins):
        raise ValueError(
            "A twin adds the scores of two networks, which `model` should give before its sigmoid or softmax. Found "
            "that it answers with probabilities: Rehearsal takes it as it is."
        )
    # The order of the run if the recipe gives one; else every twin has its own order.
    known = recipe.order is not None
    seeds = [method.seed] * len(twins) if known else copy_seeds(method.seed, len(twins))
    # Interventions may look at points that no batch shows.
    steered = bool(recipes[0].asked.interventions)
    seen = None if steered else seen_places(task.train, recipe, seeds)
    wide = Untrained(task.precise, task.train, task.x, task.watch.read, seen, rough=not steered)
    return CutTwins(twins, seeds, wide, kind, shared_rates(task, twins, recipe, kind))


def shared_rates(task: ForecastTask, twins: Sequence[ScaledTwin], recipe: Recipe, kind: Kind | None) -> Rates | None:
    """The rates of twins that can be trained side by side; None: one after the other."""
    alone = not stackable(recipe) or task.watch.read is not None or twins[0].whole
    if alone or kind is None or any(chain(twin.network) is None for twin in twins):
        return None
    found = Rates(twins[0], recipe, kind, recipe.total_steps(len(task.train)))
    return found if found.stackable else None


def stacked_twins(task: ForecastTask, cut: CutTwins, recipe: Recipe) -> StackedTwins:
    """The same twins, made ready to be trained side by side."""
    assert cut.rates is not None
    shifts = [shifted(cut.wide, twin) for twin in cut.twins]
    own = by_place(task.train, task.held_out)
    with untouched(shifts[0]):
        keep = len(forecast_measures(task.watch)) > len(DEFAULTS)
        answers = Answers(shifts[0], own[1], recipe.loss, task.watch.decide, None, 256, keep)
    return StackedTwins(cut.twins, shifts, cut.rates, cut.seeds, answers)


def _twins(task: ForecastTask, method: Twin, recipe: Recipe) -> list[ScaledTwin]:
    seeds = range(method.seed, method.seed + method.count)
    found = [scaled(task.cut(method.share, seed), task.outputs) for seed in seeds]
    if found[0].whole:
        if method.share < 1.0:
            raise ValueError(
                f"A twin of share {method.share:g} needs dimensions of more than 8 units that can be cut. Found none "
                f"in {type(task.model).__name__}: Rehearsal takes it as it is."
            )
        if recipe.order is not None:
            return found[:1]  # every twin would be the network itself, trained on the same batches
    return found


#: Steps of the shortest training by which a twin is timed; how many more there are at least and at most; and the
#: seconds of the training itself that they stand for.
FEW, LEAST_MORE, MOST_MORE, SECONDS_MORE = 5, 20, 200, 0.5


def forecast_alone(
    task: ForecastTask, method: Twin, recipe: AskedRecipe, progress: bool
) -> tuple[Trajectory, dict[str, Any]]:
    """The curves of every twin of one recipe, in a dimension `seed` where there are several, and how they were made."""
    cut = cut_twins(task, method, [recipe])
    return _trained_alone(task, cut, recipe, progress), twin_account(cut, recipe, together=1)


def _trained_alone(task: ForecastTask, cut: CutTwins, recipe: AskedRecipe, progress: bool) -> Trajectory:
    if cut.rates is None:
        return _one_by_one(task, cut, recipe.asked, progress)
    shared = stacked_twins(task, cut, recipe.lowered)
    (runs,) = train_side_by_side(task, shared, [recipe_block(recipe, task.train, shared.shifts, shared.answers)])
    return runs


def twin_account(cut: CutTwins, recipe: AskedRecipe, together: int) -> dict[str, Any]:
    """How twins were trained; one stack trained those of `together` recipes."""
    return {
        "cut": {name: list(counts) for name, counts in cut.twins[0].cut.cut.items()},
        "whole": list(cut.twins[0].cut.whole),
        "parameters": sum(p.numel() for p in cut.twins[0].network.parameters()),
        "order": "the run's own" if recipe.lowered.order is not None else "one for every twin",
        "trained": "one by one" if cut.rates is None else "side by side",
        "recipes_together": together,
    }


def promised_twins(
    task: ForecastTask, method: Twin, progress: bool
) -> tuple[Trajectory, Promise | None, dict[str, Any]]:
    """The curves of the twins, what they promise, and how they were made."""
    if (refused := twin_refusal(task, method)) is not None:
        raise ValueError(refused)
    runs, account = forecast_alone(task, method, AskedRecipe.of(task.recipe, task.train), progress)
    return runs, twin_promise(task, method, whole=not account["cut"]), account


def twin_refusal(task: ForecastTask, method: Twin) -> str | None:
    """Why twins cannot foretell this training; None if they can."""
    try:
        refuse_run_as(task.recipe, "A twin")
        check_statistics(task.model)
        asked = AskedRecipe.of(task.recipe, task.train)
        if method.share < 1.0:
            narrow = task.cut.by_chance(method.share)
            if not narrow.cut:
                return (
                    f"A twin of share {method.share:g} needs dimensions of more than 8 units that can be cut. Found "
                    f"none in {type(task.model).__name__}: Rehearsal takes it as it is."
                )
            if task.probabilities:
                return (
                    "A twin adds the scores of two networks, which `model` should give before its sigmoid or softmax. "
                    "Found that it answers with probabilities: Rehearsal takes it as it is."
                )
        del asked
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def twin_promise(task: ForecastTask, method: Twin, whole: bool | None = None) -> Promise | None:
    """What twins promise: with the run's batches from a tenth of the training on, else its second half."""
    if whole if whole is not None else method.share == 1.0:
        return rehearsal_promise(task, 1 if task.order_known else method.count, task.order_known)
    if _family(task.model) in calibrated()["not promised"]:
        return None
    name, since = ("twin with order, from 10 %", 0.1) if task.order_known else ("twin without order, second half", 0.5)
    count = "one narrow copy" if method.count == 1 else f"{method.count} narrow copies"
    factor = float(calibrated()["factors"][name])
    return Promise("calibrated", since, f"Trained {count} of the network, 90 % band {where(since)}", factor)


def _family(model: nn.Module) -> str:
    """The kind of network for which a calibration is looked up."""
    if next(modules_of(model, nn.MultiheadAttention), None) is not None:
        return "attention"
    convolutions = next(modules_of(model, nn.modules.conv._ConvNd), None) is not None
    normalised = next(modules_of(model, nn.modules.batchnorm._BatchNorm), None) is not None
    return "convolutions with batch normalisation" if convolutions and normalised else "plain"


def twin_cost(task: ForecastTask, method: Twin) -> float:
    """Seconds of a forecast by twins, from short ones: what comes before the first step, each step, each evaluation.

    The twins are cut for the whole training, as the network is asked at all points that it shows; that is done once.
    """
    begin = task.clock()
    cut = cut_twins(task, method, [AskedRecipe.of(task.recipe, task.train)])
    few = min(FEW, task.steps)
    _timed(task, cut, few, at([0]))
    ready = task.clock() - begin
    wanted = int(SECONDS_MORE / max(task.price.step, 1e-9))
    more = min(task.steps, few + max(LEAST_MORE, min(MOST_MORE, wanted)))
    # The shorter of two: what else the process does may hit one of them.
    watched, short, longer = (
        min(_timed(task, cut, n, when) for _ in range(2))
        for n, when in ((few, every(1)), (few, at([0])), (more, at([0])))
    )
    step = max(0.0, longer - short) / max(1, more - few)
    look = max(0.0, watched - short) / max(1, few - 1)
    return ready + step * (task.steps - few) + look * max(0, len(task.evaluations) - 2)


def _timed(task: ForecastTask, cut: CutTwins, steps: int, when: When) -> float:
    """Seconds of so many steps of these twins; evaluations are at the first and last step, and at those chosen."""
    recipe = replace(task.recipe, steps=steps, epochs=None)
    brief = replace(task, recipe=recipe, watch=replace(task.watch, when=when))
    brief.__dict__.update({name: task.__dict__[name] for name in ("x", "cut", "precise") if name in task.__dict__})
    begin = task.clock()
    _trained_alone(brief, cut, AskedRecipe.of(recipe, task.train), progress=False)
    return task.clock() - begin


def _one_by_one(task: ForecastTask, cut: CutTwins, asked: Recipe, progress: bool) -> Trajectory:
    recipes = [twin.recipe(asked, asked.total_steps(len(task.train)), cut.kind) for twin in cut.twins]
    own_points = needs_points(asked)
    networks: list[nn.Module] = [
        shifted_anywhere(cut.wide, twin) if own_points else shifted(cut.wide, twin) for twin in cut.twins
    ]
    places = (task.train, task.held_out) if own_points else by_place(task.train, task.held_out)
    return train_one_by_one(networks, recipes, cut.seeds, *places, task.watch, progress, _rates(task, cut, asked))


def _rates(task: ForecastTask, cut: CutTwins, asked: Recipe) -> list[Rates | None] | None:
    """The rates of every twin where its steps can be taken by formulas; None for the network itself."""
    if cut.twins[0].whole:
        return None
    if cut.kind is None or asked.clip is not None or asked.interventions:
        return [None] * len(cut.twins)
    return [Rates(twin, asked, cut.kind, asked.total_steps(len(task.train))) for twin in cut.twins]


#: Weights that train in one stack at most; with gradients and moments they take half a gigabyte.
MOST_WEIGHTS = 2**25


def forecasts_by_twins(
    task: ForecastTask,
    recipes: Mapping[Name, Recipe],
    method: Twin,
    tell: Callable[[int], None] = lambda done: None,  # noqa: ARG005
) -> FoundForecasts[Name]:
    """The forecast of every recipe, with twins in a dimension `seed`; `tell` is called with how many are done.

    Recipes that differ only in weights and in interventions of groups and points by weights share their twins, which
    are cut once, and the scores of the untrained network; recipes without interventions only among themselves. Those
    with constant weights train in one stack, those with interventions that react in another. Every other recipe is
    forecast alone: `origin.settings["calculation"]` says which."""
    found, asked = ForecastCollector[Name](), dict[Name, AskedRecipe]()
    for name, recipe in recipes.items():
        with found.refusing(name):
            asked[name] = AskedRecipe.of(recipe, task.train)
    for family in families(asked):
        with found.refusing(*family):
            _forecast_family(task, method, family, found)
        tell(found.done)
    return found.found(recipes)


def _forecast_family(
    task: ForecastTask, method: Twin, family: Mapping[Name, AskedRecipe], found: ForecastCollector[Name]
) -> None:
    cut = cut_twins(task, method, list(family.values())) if len(family) > 1 else None
    if cut is None or cut.rates is None:
        for name, recipe in family.items():
            with found.refusing(name):
                runs, account = forecast_alone(task, method, recipe, progress=False)
                found.runs[name] = _forecast(runs, task, method, recipe, account)
        return
    shared = stacked_twins(task, cut, next(iter(family.values())).lowered)
    blocks = dict[Name, RecipeBlock]()
    for name, recipe in family.items():
        with found.refusing(name):
            blocks[name] = recipe_block(recipe, task.train, shared.shifts, shared.answers)
    size = sum(p.numel() for twin in cut.twins for p in twin.network.parameters())
    for stack in _stacks(blocks, size):
        for (name, block), run in zip(
            stack.items(), train_side_by_side(task, shared, list(stack.values())), strict=True
        ):
            account = twin_account(cut, block.recipe, together=len(stack))
            found.runs[name] = _forecast(run, task, method, block.recipe, account)


def _forecast(
    runs: Trajectory, task: ForecastTask, method: Twin, recipe: AskedRecipe, account: dict[str, Any]
) -> Trajectory:
    return as_forecast(runs, task.with_recipe(recipe.asked), method, account)


def _stacks(blocks: Mapping[Name, RecipeBlock], size: int) -> Iterator[dict[Name, RecipeBlock]]:
    """Blocks with constant weights, whose derivatives are known by formulas, and blocks that interventions steer.

    A stack has at most so many blocks of this `size` as fit in memory.
    """
    most = max(1, MOST_WEIGHTS // size)
    for steered in (False, True):
        names = [name for name, block in blocks.items() if (block.steering is not None) == steered]
        for first in range(0, len(names), most):
            yield {name: blocks[name] for name in names[first : first + most]}
