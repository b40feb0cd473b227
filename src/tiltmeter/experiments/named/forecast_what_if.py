"""Forecasts for other group weights, compared with training with these weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter import plot
from tiltmeter.analysis.over_seeds import over_seeds, share
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.named.forecast_accuracy import Prepared
from tiltmeter.experiments.shared.forecast_scores import Scored, median_error, score
from tiltmeter.experiments.shared.forecast_tasks import draw
from tiltmeter.forecast.horizon import noted_step
from tiltmeter.losses import Square
from tiltmeter.recipe import Recipe
from tiltmeter.record import Trajectory
from tiltmeter.report.page import Table

TITLE = "Reweighted training follows its forecast, and weights found without training help the worst group"
PAPER = "tiltmeter's own claim, see docs/forecast.md"
NEEDS: tuple[str, ...] = ("mnist", "fashion-mnist", "cifar10")
#: Added to the seed of a training, the seed of the batches of its second one.
OTHER = 1000
#: Ways to weigh the groups: as they come, each as if equally frequent, and as the forecast advises.
WAYS = ("equal", "inverse frequency", "best")


@dataclass(frozen=True)
class Setting:
    """The first `tasks` of those on which forecasts are judged; they are judged at the last step."""

    tasks: int = 2
    seeds: int = 2
    steps: int = 300
    batch: int = 16
    sample: int = 800
    look: int = 500


QUICK = Setting()
FULL = Setting(tasks=6, seeds=3, steps=6000, sample=2500, look=1000)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task, seed and way of weighing, forecast and training; the best weights are those of each seed.

    Reweighted trainings are also forecast by twins, and repeated with other batches: no forecast of the recipe can
    predict a run better than such a repetition. Twins see the run's own batches.
    """
    runs: dict[str, Trajectory] = {}
    for number in range(setting.tasks):
        made = Prepared(draw(number), setting.look)
        for seed in range(setting.seeds):
            for way in WAYS:
                name = f"{made.task.name}, seed {seed}, {way}"
                told = keep(f"{name}, forecast", partial(_forecast, made, seed, setting, way))
                runs[f"{name}, forecast"] = told
                real = partial(made.trained, seed, setting, weights_of(told))
                runs[f"{name}, trained"] = keep(f"{name}, trained", real)
                if way != WAYS[0]:
                    twins = partial(made.twins, seed, setting, weights_of(told))
                    runs[f"{name}, twins"] = keep(f"{name}, twins", twins)
                    runs[f"{name}, again"] = keep(f"{name}, again", partial(real, draws=OTHER + seed))
    return runs


def _forecast(made: Prepared, seed: int, setting: Setting, way: str) -> Trajectory:
    return made.forecast(seed, setting, _weights(made, seed, setting, way))


def _weights(made: Prepared, seed: int, setting: Setting, way: str) -> dict[Any, float] | None:
    from tiltmeter.forecast.best_weights import best_weights
    from tiltmeter.forecast.kernel.network_kernels import tangent
    from tiltmeter.population.criteria import WorstGroupLoss

    train = made.points[0]
    if way == "equal":
        return None
    if way == "inverse frequency":
        return {group: len(train) / (len(train.groups) * size) for group, size in train.sizes.items()}
    kernels = tangent(made.model(seed), *made.points, sample=setting.sample)
    found = best_weights(
        kernels, Recipe(lr=made.task.lr, steps=setting.steps, batch=None, loss=Square()), criterion=WorstGroupLoss()
    )
    return dict(found.weights)


def weights_of(run: Trajectory) -> dict[Any, float] | None:
    """The weights that a run says it had."""
    recipe: Any = run.origin.settings["recipe"]
    return None if "weights" not in recipe else {group: float(value) for group, value in recipe["weights"]}


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Return the claims: whether training follows the forecast, and whether its weights help."""
    by_way = {
        way: [
            score(runs[name.replace("trained", "forecast")], run)
            for name, run in runs.items()
            if name.endswith(f", {way}, trained")
        ]
        for way in WAYS[1:]
    }
    twice, twins = _beside(runs, "again"), _beside(runs, "twins")
    found = [one for part in by_way.values() for one in part]
    known = np.array([one.correlation for one in found if np.isfinite(one.correlation)])
    decided = [one.right for one in found if one.right is not None]
    passed, told_by_twins = ([hit for one in part for hit in one.foretold] for part in (found, twins))
    table = worst(runs)
    beaten = {other: table.sel(way="best") < table.sel(way=other) for other in WAYS[:2]}
    tasks = {other: float((won.mean("seed") > 0.5).mean()) for other, won in beaten.items()}
    both = share(((beaten["equal"] & beaten["inverse frequency"]).mean("seed") > 0.5).values)
    gain = {other: float((1.0 - table.sel(way="best") / table.sel(way=other)).mean()) for other in beaten}
    seeds = table.sizes["seed"]
    return (
        Claim(
            "The final leader of a reweighted training is predicted",
            share(decided)[0],
            f"share right of {len(decided)} runs in which a final leader is shown",
            0.95,
            f"Right in {_right([one for one in found if one.horizon is None])} runs that end before their horizon, "
            + ", ".join(f"{_right(part)} with {way} weights" for way, part in by_way.items())
            + ": the best weights close the forecast gap, and what is learned beyond the horizon opens it again. "
            f"A second training with other batches predicts {_right(twice)}, two twins {_right(twins)}.",
            error=share(decided)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Reweighted training follows the reweighted forecast",
            float(np.median(known)) if len(known) else float("nan"),
            f"median correlation of forecast and real gap before the horizon, over {len(known)} runs",
            0.95,
            "Where weights make the gap nearly vanish, there is little left to predict: "
            + ", ".join(f"{_course(part):.3f} with {way}" for way, part in by_way.items())
            + f". A second training with other batches correlates with the first by {_course(twice):.3f}, two twins by "
            f"{_course(twins):.3f}.",
            error=median_error(known),
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Crossings of a reweighted training are predicted",
            share(passed)[0],
            f"share of {len(passed)} crossings shown after step 10 forecast within a factor 1.5",
            0.8,
            f"{_passed(found, beyond=False)} before the horizon, {_passed(found, beyond=True)} beyond it: a gap near "
            f"zero crosses for little. A second training with other batches has {_passed(twice)} of the crossings of "
            "the first.",
            error=share(passed)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Crossings of a reweighted training are predicted by twins",
            share(told_by_twins)[0],
            f"share of {len(told_by_twins)} crossings shown after step 10 forecast within a factor 1.5",
            0.8,
            f"{_passed(twins, beyond=False)} before the kernel's horizon, {_passed(twins, beyond=True)} beyond it.",
            error=share(told_by_twins)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Weights found from the kernels beat equal weights and inverse frequencies for the worst group",
            both[0],
            f"share of {table.sizes['task']} tasks in which they beat both in most seeds",
            0.5,
            f"They beat equal weights in {tasks['equal']:.0%} of the tasks (worst loss {gain['equal']:.0%} lower on "
            f"average) and inverse frequencies in {tasks['inverse frequency']:.0%} ({gain['inverse frequency']:.0%} "
            "lower).",
            error=both[1],
            seeds=seeds,
            safe=False,
        ),
    )


def _course(part: list[Scored]) -> float:
    return float(np.nanmedian([one.correlation for one in part]))


def _passed(part: list[Scored], beyond: bool | None = None) -> str:
    pairs = [pair for one in part for pair in zip(one.foretold, one.beyond, strict=True)]
    hits = [hit for hit, late in pairs if beyond in (None, late)]
    return f"{sum(hits)} of {len(hits)}"


def _beside(runs: Runs, kind: str) -> list[Scored]:
    """Compare every reweighted training with another run of this kind, up to the horizon of the forecast."""
    pairs = {name.removesuffix(f", {kind}"): run for name, run in runs.items() if name.endswith(f", {kind}")}
    return [
        score(other, runs[f"{short}, trained"], noted_step(runs[f"{short}, forecast"]))
        for short, other in pairs.items()
    ]


def _right(part: list[Scored]) -> str:
    judged = [one.right for one in part if one.right is not None]
    return f"{sum(judged)} of {len(judged)}"


def worst(runs: Runs) -> xr.DataArray:
    """The worst group's real loss at the last step, by task, seed and way."""
    names = [name.removesuffix(", trained").rsplit(", ", 2) for name in runs if name.endswith(", trained")]
    tasks, seeds = (list(dict.fromkeys(parts[i] for parts in names)) for i in (0, 1))
    values = [
        [[float(runs[f"{t}, {s}, {w}, trained"]["loss"].isel(time=-1).max()) for w in WAYS] for s in seeds]
        for t in tasks
    ]
    return xr.DataArray(values, dims=("task", "seed", "way"), coords={"task": tasks, "seed": seeds, "way": list(WAYS)})


def tables(runs: Runs) -> Mapping[str, Table]:
    """The worst group's loss under each way of weighing, mean and standard error over seeds."""
    table = worst(runs)
    mean, error = over_seeds(table)
    rows = [
        (
            f"{task[:2]} {draw(int(task[:2]))}",
            *(f"{float(mean.sel(task=task, way=w)):.4f} ± {float(error.sel(task=task, way=w)):.4f}" for w in WAYS),
        )
        for task in table.coords["task"].values.tolist()
    ]
    return {"Loss of the worst group at the last step, in real training": Table(("task", *WAYS), rows)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Trained and forecast with the best weights, for the first task."""
    short = next(name.removesuffix(", trained") for name in runs if name.endswith("best, trained"))
    both = (runs[f"{short}, trained"], runs[f"{short}, forecast"])
    return {f"Task {short} weights: trained and forecast": plot.curves(*both, labels=("trained", "forecast"))}
