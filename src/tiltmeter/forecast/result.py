"""finished: the runs of a method as one forecast, with its promise and an account of how it was computed."""

from __future__ import annotations

from typing import Any

from tiltmeter.forecast.bands import Promise, with_promise
from tiltmeter.forecast.methods import method_to_json
from tiltmeter.forecast.task import ForecastTask
from tiltmeter.modules.forward import describe
from tiltmeter.record import Origin, Trajectory


def as_forecast(runs: Trajectory, task: ForecastTask, method: Any, account: dict[str, Any]) -> Trajectory:
    """The same curves; where they come from is the user's network and data, not those of copies or narrow copies."""
    settings = {
        "model": describe(task.model),
        "train": task.train.to_json(),
        "recipe": task.recipe.to_json(),
        "steps": task.steps,
        "loss": runs["loss"].attrs.get("definition"),
        "when": task.watch.when.to_json(),
        "method": method_to_json(method),
        "calculation": account,
        "copies": int(runs["loss"].sizes.get("seed", 1)),
    }
    origin = Origin(
        "forecast", problem={"held_out": task.held_out.to_json()}, settings=settings, seeds=runs.origin.seeds
    )
    return Trajectory(dict(runs), runs.clock, origin, runs.diverged, points=runs.points)


def finished(
    task: ForecastTask, method: Any, runs: Trajectory, promise: Promise | None, account: dict[str, Any]
) -> Trajectory:
    """The mean over copies with its promised limits."""
    ahead = as_forecast(runs, task, method, account)
    copies = int(runs["loss"].sizes.get("seed", 1))
    return with_promise(ahead, promise, task.steps, type(method).__name__, copies)


def previewed(task: ForecastTask, method: Any) -> Trajectory:
    """The preview of the task's table, with the network and the settings that it is asked for."""
    run = task.view.run
    settings = {
        **run.origin.settings,
        "model": describe(task.model),
        "recipe": task.recipe.to_json(),
        "steps": task.steps,
        "method": method_to_json(method),
    }
    return Trajectory(dict(run), run.clock, Origin("forecast", run.origin.problem, settings), points=run.points)
