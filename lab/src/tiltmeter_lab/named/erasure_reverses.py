"""erasure-reverses: erasing an attribute that goes along with the label takes the label with it, unless balanced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.cell_tasks import ATTRIBUTE, CONFLICTING, Sizes, network, parts, plain_recipe
from tiltmeter_lab.shared.seed_scatter import in_errors, told

TITLE = "Linear erasure of an attribute that goes along with the label reverses the bias, unless the cells are balanced"
PAPER = "Belrose et al., LEACE (2023); Kumar, Tan and Sharma, Probing classifiers are unreliable (2022)"
NEEDS: tuple[str, ...] = ()
TASKS = ("toy", "digits")
INTERVENTIONS = {
    "plain": None,
    "unbalanced": tm.interventions.Erasure(attribute=ATTRIBUTE, balanced=False),
    "balanced": tm.interventions.Erasure(attribute=ATTRIBUTE),
}
ALIGNED = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class Setting:
    """Steps before the erasure; the points that it may fit are drawn like the training points."""

    steps: int = 300
    seeds: int = 5


QUICK, FULL = Setting(), Setting(steps=1000, seeds=20)


def run(setting: Setting, keep: Keep) -> Runs:
    """Every task, alignment and intervention."""
    found = {}
    for task in TASKS:
        for aligned in ALIGNED:
            for name, law in INTERVENTIONS.items():
                label = f"{task}, {name}, {aligned:g}"
                found[label] = keep(label, partial(_trained, task, law, aligned, setting))
    return found


def _trained(task: str, law: tm.interventions.Erasure | None, aligned: float, setting: Setting) -> tm.Trajectory:

    runs = []
    for seed in range(setting.seeds):
        data = parts(task, seed, Sizes(), aligned)
        recipe = replace(plain_recipe(setting.steps), interventions=() if law is None else (law,))
        one = tm.train(
            network(data.train.x.shape[1], seed),
            data.train,
            data.judge,
            recipe,
            watch=tm.Watch(when=tm.record.at((setting.steps,)), points=False),
            seed=seed,
            validation=None if law is None else data.train,
        )
        runs.append(one.replace({"error": one["error"]}))
    return tm.stack(runs)


def lean(run: tm.Trajectory) -> np.ndarray:
    """Mean error of the conflicting cells minus that of the aligned ones at the end, by seed: 0 is no bias."""
    error = run["error"].isel(time=-1)
    rare = np.isin(error.coords["group"].values, CONFLICTING)
    return np.asarray(error.isel(group=rare).mean("group").values - error.isel(group=~rare).mean("group").values)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The bias before, after either erasure, and without an association."""
    strong = {name: {task: lean(runs[f"{task}, {name}, {ALIGNED[-1]:g}"]) for task in TASKS} for name in INTERVENTIONS}
    none = {task: lean(runs[f"{task}, unbalanced, 0.5"]) - lean(runs[f"{task}, balanced, 0.5"]) for task in TASKS}
    order = [[float(lean(runs[f"{task}, unbalanced, {a:g}"]).mean()) for a in ALIGNED] for task in TASKS]
    left = [abs(strong["balanced"][task].mean()) / abs(strong["plain"][task].mean()) for task in TASKS]
    seeds = len(strong["plain"][TASKS[0]])
    return (
        Claim(
            "Plain training errs more where the attribute contradicts the label",
            min(in_errors(one) for one in strong["plain"].values()),
            "smaller gap in error of the two tasks, in standard errors",
            2.0,
            told(strong["plain"]),
            seeds=seeds,
            safe=False,
            error=1.0,
            neutral=0.0,
        ),
        Claim(
            "After erasure without balance it errs more where they agree",
            max(in_errors(one) for one in strong["unbalanced"].values()),
            "larger gap in error of the two tasks, in standard errors",
            -2.0,
            told(strong["unbalanced"]),
            rule="at most",
            seeds=seeds,
            safe=False,
            error=1.0,
            neutral=0.0,
        ),
        Claim(
            "Balanced over cells, most of the bias goes away and none is made",
            max(left),
            "largest gap in error relative to that of plain training",
            0.25,
            told(strong["balanced"]),
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The reversal grows with the association of attribute and label",
            float(sum(all(np.diff(one) < 0.0) for one in order)),
            "tasks on which the gap falls with every step from 0.5 to 0.95",
            2.0,
            "; ".join(f"{task}: {', '.join(f'{v:+.3f}' for v in one)}" for task, one in zip(TASKS, order, strict=True))
            + ".",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Control: without an association both erasures are alike",
            max(abs(in_errors(one)) for one in none.values()),
            "larger difference of the gaps, in paired standard errors",
            3.0,
            told(none),
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The gap over the association of attribute and label."""
    from tiltmeter_lab.shared.pictures import lines

    drawn = {}
    for task in TASKS:
        rows = [
            (aligned, float(lean(runs[f"{task}, {name}, {aligned:g}"]).mean()), name)
            for name in INTERVENTIONS
            for aligned in ALIGNED
        ]
        drawn[f"Gap in error, {task}"] = lines(
            rows,
            "share of points whose attribute agrees",
            "error, conflicting minus agreeing points",
            "model",
            marks=True,
        )
    return drawn
