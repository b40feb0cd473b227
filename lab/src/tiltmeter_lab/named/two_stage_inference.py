"""two-stage-inference: which points a short first training gets wrong, over its length, and what JTT makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.cell_tasks import CONFLICTING, Sizes, network, parts, plain_recipe
from tiltmeter_lab.shared.equal_progress import training_shares
from tiltmeter_lab.shared.over_seeds import mean_and_error
from tiltmeter_lab.shared.seed_scatter import in_errors

TITLE = (
    "The errors of a first training are the rare groups only for some of its lengths, and JTT is as good as they are"
)
PAPER = "Liu et al., Just Train Twice (2021)"
NEEDS: tuple[str, ...] = ()
TASKS = ("digits", "toy")
PLAIN, SCOUT = "plain", "scout"


@dataclass(frozen=True)
class Setting:
    """Lengths of the first training that JTT is run with, as shares of the whole; `long` is that of the scout alone."""

    steps: int = 500
    long: int = 6000
    scouts: tuple[int, ...] = (2, 50, 250)
    times: int = 20
    seeds: int = 5


QUICK, FULL = Setting(), Setting(steps=2000, long=50_000, scouts=(2, 10, 50, 250, 1000), seeds=12)


def run(setting: Setting, keep: Keep) -> Runs:
    """On each task: a scout that looks at its own training points, plain training, and JTT with several scouts."""
    found = {}
    for task in TASKS:
        laws = {
            PLAIN: None,
            **{f"JTT {length}": tm.interventions.JTT(setting.times, scout=length) for length in setting.scouts},
        }
        found[f"{task} {SCOUT}"] = keep(f"{task} {SCOUT}", partial(_scout, task, setting))
        for name, law in laws.items():
            found[f"{task} {name}"] = keep(f"{task} {name}", partial(_trained, task, law, setting))
    return found


def _scout(task: str, setting: Setting) -> tm.Trajectory:
    """A group's error on the training points is the part of it that the scout would pick: its recall."""

    runs = []
    for seed in range(setting.seeds):
        data = parts(task, seed, Sizes()).train
        recipe, watch = plain_recipe(setting.long), tm.Watch(when=tm.record.log_spaced(12), points=False)
        one = tm.train(network(data.x.shape[1], seed), data, data, recipe, watch=watch, seed=seed)
        runs.append(one.replace({"error": one["error"]}))
    return tm.stack(runs)


def _trained(task: str, law: tm.interventions.JTT | None, setting: Setting) -> tm.Trajectory:

    runs = []
    for seed in range(setting.seeds):
        data = parts(task, seed, Sizes())
        recipe = replace(plain_recipe(setting.steps), interventions=() if law is None else (law,))
        watch = tm.Watch(when=tm.record.at((0, setting.steps)), points=False)
        one = tm.train(network(data.train.x.shape[1], seed), data.train, data.judge, recipe, watch=watch, seed=seed)
        runs.append(one.replace({"error": one["error"]}))
    return tm.stack(runs)


def picked(scout: tm.Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, then precision and recall of the conflicting cells in the set of errors, each (time, seed)."""
    error = scout["error"].transpose("time", "group", "seed")
    count = training_shares(scout, tuple(error.coords["group"].values))
    rare = np.isin(error.coords["group"].values, CONFLICTING)
    inside = error.values * count[:, None]
    total = inside.sum(1)
    precision = np.where(total > 0, inside[:, rare].sum(1) / np.where(total > 0, total, 1.0), np.nan)
    return error.coords["time"].values, precision, inside[:, rare].sum(1) / count[rare].sum()


def claims(runs: Runs) -> tuple[Claim, ...]:
    """When the set is right, how it fails at either end, and whether JTT follows it."""
    seeds = runs[f"digits {SCOUT}"]["error"].sizes["seed"]
    time, precision, recall = picked(runs[f"digits {SCOUT}"])
    good = (_mean(precision) > 0.9) & (recall.mean(1) > 0.9)
    _, toy_precision, toy_recall = picked(runs[f"toy {SCOUT}"])
    first, last = int(np.searchsorted(time, 2)), -1
    share = _mean(precision)[first]
    gains = {task: _gains(runs, task) for task in TASKS}
    fit = {task: _quality(runs, task) for task in TASKS}
    best = {task: max(fit[task], key=fit[task].__getitem__) for task in TASKS}
    worst = {task: min(fit[task], key=fit[task].__getitem__) for task in TASKS}
    lead = [gains[task][best[task]] - gains[task][worst[task]] for task in TASKS]
    span = f"From step {time[good].min():g} to {time[good].max():g}." if good.any() else "At no length."
    return (
        Claim(
            "On digits there are lengths at which the errors are the rare groups",
            float(good.sum()),
            "looks at which precision and recall are both above 0.9",
            1.0,
            span,
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "After two steps they are not",
            float(share),
            "precision on digits after two steps",
            0.5,
            "The rare groups are 5 % of the points.",
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "A first training that is too long memorises the rare groups and no longer finds them",
            float(max(recall[last].mean(), toy_recall[last].mean())),
            "larger recall of the two tasks at the end",
            0.5,
            f"Digits {recall[last].mean():.2f}, toy {toy_recall[last].mean():.2f}.",
            rule="at most",
            error=float(max(mean_and_error(recall[last])[1], mean_and_error(toy_recall[last])[1])),
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "On the toy the set is pure but small: what both features agree on is learned at once",
            float(toy_recall[time >= 50].mean(1).max()),
            "largest recall from step 50 on",
            0.5,
            f"The largest precision there is {np.nanmax(_mean(toy_precision[time >= 50])):.2f}.",
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "JTT gains more with the set that is more right",
            float(np.mean(lead)),
            "mean gain in the worst group's error, best set minus worst set, over both tasks",
            0.0,
            "; ".join(f"{task}: {best[task]} against {worst[task]}" for task in TASKS) + ".",
            error=mean_and_error(np.mean(lead, axis=0))[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "With its best set JTT lowers the worst group's error on both tasks",
            float(min(in_errors(gains[task][best[task]]) for task in TASKS)),
            "smaller gain in paired standard errors",
            2.0,
            "; ".join(f"{task} {gains[task][best[task]].mean():.3f}" for task in TASKS) + ".",
            seeds=seeds,
            safe=False,
            error=1.0,
            neutral=0.0,
        ),
    )


def _gains(runs: Runs, task: str) -> dict[str, np.ndarray]:
    """How much lower the worst group's last error is than in plain training, by seed."""
    ends = {
        name.removeprefix(f"{task} "): one["error"].isel(time=-1).max("group").values
        for name, one in runs.items()
        if name.startswith(f"{task} ") and not name.endswith(SCOUT)
    }
    return {name: ends[PLAIN] - end for name, end in ends.items() if name != PLAIN}


def _quality(runs: Runs, task: str) -> dict[str, float]:
    """The mean over seeds of F1, the harmonic mean of precision and recall, by length of the scout."""
    time, precision, recall = picked(runs[f"{task} {SCOUT}"])
    found = {}
    for name in _gains(runs, task):
        held_out = int(np.argmin(abs(time - float(name.split()[1]))))
        p, r = np.nan_to_num(precision[held_out]), recall[held_out]
        found[name] = float(np.mean(2.0 * p * r / np.maximum(p + r, 1e-12)))
    return found


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean over seeds that have a value; NaN where none has, as the precision of an empty set."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(1)
    return np.where(known.any(1), total / np.maximum(known.sum(1), 1), np.nan)


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Precision and recall over the length of the first training; the worst group's gain of JTT against both."""
    from tiltmeter_lab.shared.pictures import lines

    points = []
    for task in TASKS:
        time, precision, recall = picked(runs[f"{task} {SCOUT}"])
        for name, values in (("precision", precision), ("recall", recall)):
            middle = _mean(values)
            points += [
                (float(t), float(v), f"{name}, {task}") for t, v in zip(time, middle, strict=True) if t and v == v
            ]
    marks = [
        (float(name.split()[1]), float(gain.mean()), task)
        for task in TASKS
        for name, gain in _gains(runs, task).items()
    ]
    return {
        "The rare groups among the errors": lines(points, "steps of the first training", "share", "set", log_x=True),
        "What JTT gains": lines(
            marks, "steps of the first training", "fall of the worst group's error", "task", log_x=True, marks=True
        ),
    }
