"""Forecasts by twins: narrow copies cut from a network and trained in its place, for one recipe or several."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.bands import Promise, calibrated, where
from tiltmeter.forecast.methods import Twin
from tiltmeter.forecast.rehearsal import rehearsal_promise
from tiltmeter.forecast.result import as_forecast
from tiltmeter.forecast.task import ForecastTask, copy_seeds, modules_of
from tiltmeter.forecast.twin.rule import Kind
from tiltmeter.forecast.twin.twins import ScaledTwin, by_place, scaled, shifted, train_twins
from tiltmeter.forecast.twin.untrained import Untrained, seen_places
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import (
    BatchIntervention,
    DataIntervention,
    ModelIntervention,
    PointIntervention,
    StepIntervention,
    TermIntervention,
)
from tiltmeter.interventions.stored import stored_name
from tiltmeter.modules.tangent.gradient import check_statistics
from tiltmeter.recipe.checks import refuse_run_as
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.record import Trajectory, When, at, every
from tiltmeter.training.network_interventions import check_needs

#: The name of a recipe among several.
Name = TypeVar("Name", bound=Hashable)
#: Steps of the shortest training by which a twin is timed; how many more there are at least and at most; and the
#: seconds of the training itself that they stand for.
FEW, LEAST_MORE, MOST_MORE, SECONDS_MORE = 5, 20, 200, 0.5


@dataclass(frozen=True, eq=False)
class CutTwins:
    """Twins with the seeds of their batches and the scores of the untrained network.

    `kind` is that of the optimiser, None where it does not matter.
    """

    twins: Sequence[ScaledTwin]
    seeds: Sequence[int]
    wide: Untrained
    kind: Kind | None


def cut_twins(task: ForecastTask, method: Twin, wide: Untrained | None = None) -> CutTwins:
    """The twins of a task; `wide` is the untrained network where it was asked already."""
    recipe = task.recipe
    twins = _twins(task, method)
    # The network itself, on the batches of its run, takes any optimiser.
    kind = None if twins[0].whole and task.order_known else twins[0].kind(recipe)
    # The order of the run if the recipe gives one; else every twin has its own order.
    seeds = [method.seed] * len(twins) if task.order_known else copy_seeds(method.seed, len(twins))
    if wide is None:
        # Interventions may look at points that no batch shows.
        steered = bool(recipe.interventions)
        seen = None if steered else seen_places(task.train, recipe, seeds)
        wide = Untrained(task.precise, task.train, task.x, task.watch.read, seen, rough=not steered)
    return CutTwins(twins, seeds, wide, kind)


def _twins(task: ForecastTask, method: Twin) -> list[ScaledTwin]:
    seeds = range(method.seed, method.seed + method.count)
    if method.share == 1.0 and task.order_known:
        seeds = seeds[:1]  # every twin would be the network itself, trained on the same batches
    return [scaled(task.cut(method.share, seed), task.outputs) for seed in seeds]


def forecast_alone(
    task: ForecastTask, method: Twin, progress: bool, wide: Untrained | None = None
) -> tuple[Trajectory, dict[str, Any]]:
    """The curves of every twin of one recipe, in a dimension `seed` where there are several, and how they were made."""
    cut = cut_twins(task, method, wide)
    account = {
        "cut": {name: list(counts) for name, counts in cut.twins[0].cut.cut.items()},
        "whole": list(cut.twins[0].cut.whole),
        "parameters": sum(p.numel() for p in cut.twins[0].network.parameters()),
        "order": "the run's own" if task.order_known else "one for every twin",
    }
    return _trained(task, cut, progress), account


def _trained(task: ForecastTask, cut: CutTwins, progress: bool) -> Trajectory:
    recipes = [twin.recipe(task.recipe, task.steps, cut.kind) for twin in cut.twins]
    new_points = needs_points(task.recipe)
    networks = [shifted(cut.wide, twin, new_points) for twin in cut.twins]
    data = (task.train, task.held_out) if new_points else by_place(task.train, task.held_out)
    return train_twins(networks, recipes, cut.seeds, *data, task.watch, progress)


def promised_twins(
    task: ForecastTask, method: Twin, progress: bool
) -> tuple[Trajectory, Promise | None, dict[str, Any]]:
    """The curves of the twins, what they promise, and how they were made."""
    if (refused := twin_refusal(task, method)) is not None:
        raise ValueError(refused)
    runs, account = forecast_alone(task, method, progress)
    return runs, twin_promise(task, method, whole=not account["cut"]), account


def forecasts_by_twins(
    task: ForecastTask,
    recipes: Mapping[Name, Recipe],
    method: Twin,
    tell: Callable[[int], None] = lambda done: None,  # noqa: ARG005
) -> tuple[dict[Name, Trajectory], dict[Name, Exception]]:
    """The forecast of every recipe, and the errors of those that twins cannot forecast.

    The untrained network is asked once for all of them. `tell` is called with how many are done.
    """
    wide = Untrained(task.precise, task.train, task.x, task.watch.read)
    runs, refused = dict[Name, Trajectory](), dict[Name, Exception]()
    for name, recipe in recipes.items():
        arm = task.with_recipe(recipe)
        try:
            check_twin_recipe(recipe, task.train)
            made, account = forecast_alone(arm, method, False, wide)
            runs[name] = as_forecast(made, arm, method, account)
        except (ValueError, TypeError) as error:
            refused[name] = error
        tell(len(runs) + len(refused))
    return runs, refused


def twin_refusal(task: ForecastTask, method: Twin) -> str | None:
    """Why twins cannot foretell this training; None if they can."""
    try:
        refuse_run_as(task.recipe, "A twin")
        check_statistics(task.model)
        check_twin_recipe(task.recipe, task.train)
        narrow = task.cut.by_chance(method.share) if method.share < 1.0 else None
    except (ValueError, TypeError) as error:
        return str(error)
    if narrow is None:
        return None
    if not narrow.cut:
        return (
            f"A twin of share {method.share:g} needs dimensions of more than 8 units that can be cut. Found none in "
            f"{type(task.model).__name__}: Rehearsal takes it as it is."
        )
    if task.probabilities:
        return (
            "A twin adds the scores of two networks, which `model` should give before its sigmoid or softmax. Found "
            "that it answers with probabilities: Rehearsal takes it as it is."
        )
    return None


def check_twin_recipe(recipe: Recipe, train: GroupedData) -> None:
    """Refuse the few interventions that act on a narrow network in another way than on a wide one.

    An intervention that delivers another model fits it to the features of the network, of which a twin has fewer; so
    does one with a term of features. A step of somebody else's may depend on the number of weights."""
    for law in lowered_recipe(recipe, train).interventions:
        applies = f"Found {type(law).__name__}: `train` applies it."
        if isinstance(law, PointIntervention) and _sees_network(law):
            raise ValueError(f"A twin has other features and knows points by their places. {applies}")
        if isinstance(law, ModelIntervention):
            raise ValueError(
                f"A twin delivers no other model: {type(law).__name__} would fit its few features. `train` applies it."
            )
        if isinstance(law, StepIntervention) and not _of_tiltmeter(law):
            raise ValueError(f"A twin knows the steps of tiltmeter's interventions only. {applies}")
    check_needs(recipe.interventions, train, None)


def needs_points(recipe: Recipe) -> bool:
    """Whether an intervention makes new points, so that a twin cannot be given them as places among known ones."""
    return any(
        isinstance(law, BatchIntervention) or (isinstance(law, DataIntervention) and not _of_tiltmeter(law))
        for law in recipe.interventions
    )


def _of_tiltmeter(law: Intervention) -> bool:
    return "." not in stored_name(law)


def _sees_network(law: PointIntervention) -> bool:
    """Whether an intervention sees points or features, or has a module of its own: a twin has others."""
    return isinstance(law, TermIntervention) and bool(law.sees & {"inputs", "features"})


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
    cut = cut_twins(task, method)
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
    brief = task.with_recipe(replace(task.recipe, steps=steps, epochs=None), replace(task.watch, when=when))
    begin = task.clock()
    _trained(brief, cut, progress=False)
    return task.clock() - begin
