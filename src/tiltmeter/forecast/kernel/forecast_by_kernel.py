"""forecast_by_kernel: the curves of a training from the tangent kernel of a sample of its points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.bands import with_promise
from tiltmeter.forecast.kernel.network_kernels import tangent
from tiltmeter.forecast.kernel.question import check_before_work
from tiltmeter.forecast.methods import Kernel, method_to_json
from tiltmeter.forecast.task import ForecastTask
from tiltmeter.interventions.kinds import DataIntervention
from tiltmeter.modules.tangent.gradient import check_statistics
from tiltmeter.recipe.optimisers import check_alike
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.record import Trajectory
from tiltmeter.training.network_interventions import check_needs
from tiltmeter.training.scouting import changed_data

#: Points of the sample by which kernels are timed.
TIMED = 100


def forecast_by_kernel(task: ForecastTask, method: Kernel, progress: bool = True) -> Trajectory:
    """The curves of the linearised network: a mean over orders of batches, whatever order the settings give."""
    given, recipe = task.train, task.recipe
    check_before_work(recipe, given)
    train, asked = _without_data_interventions(given, recipe)
    read = task.watch.read
    kernels = tangent(
        task.model, train, task.held_out, sample=method.sample, seed=method.seed, read=read, progress=progress
    )
    ahead = kernels.forecast(asked, watch=task.watch)
    settings: dict[str, Any] = {**ahead.origin.settings, "recipe": recipe.to_json(), "method": method_to_json(method)}
    if train is not given:  # the user's own data, not those that interventions and orders made of them
        settings["train"] = given.to_json()
    origin = replace(ahead.origin, settings=settings)
    told = Trajectory(dict(ahead), ahead.clock, origin, ahead.diverged, points=ahead.points)
    return with_promise(told, None, task.steps, type(method).__name__, 1)


def kernel_refusal(task: ForecastTask) -> str | None:
    """Why the kernel cannot forecast this training; None if it can."""
    try:
        check_statistics(task.model)
        check_before_work(task.recipe, task.train)
        if task.recipe.optimiser is not None:
            weights = list(task.model.parameters())
            check_alike(task.recipe.make_optimiser(weights), weights)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def kernel_cost(task: ForecastTask, method: Kernel) -> float:
    """Seconds of the kernels, from those of a small sample: their entries grow with its size."""
    small = min(TIMED, len(task.train))
    begin = task.clock()
    tangent(task.model, task.train, task.held_out, sample=max(2, small), progress=False)
    spent = task.clock() - begin
    return spent * max(1.0, min(method.sample, len(task.train)) / small) ** 2


def _without_data_interventions(train: GroupedData, recipe: Recipe) -> tuple[GroupedData, Recipe]:
    """Return the data as the recipe's interventions make them, and the recipe without these interventions."""
    laws = [law for law in recipe.interventions if isinstance(law, DataIntervention)]
    if not laws or not isinstance(train, GroupedData):
        return train, recipe
    check_needs(tuple(laws), train, None)
    rest = tuple(law for law in recipe.interventions if not isinstance(law, DataIntervention))
    return changed_data(laws, train).data, replace(recipe, interventions=rest)
