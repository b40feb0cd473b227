"""optimiser-or-speed: is another optimiser fairer, or only faster? Asked at equal steps and at equal mean loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tiltmeter.analysis.over_seeds import mean_and_error
from tiltmeter.analysis.scorecard.group_values import group_values
from tiltmeter.analysis.scorecard.loss_clock import clock_levels, worst_when_reached
from tiltmeter.analysis.scorecard.training_facts import training_shares
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.shared.cell_tasks import Sizes, network, parts
from tiltmeter.losses import Logistic
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, log_spaced, stack

TITLE = "At equal steps optimisers differ in the worst group; at equal mean loss much less"
PAPER = "tiltmeter's own question: the loss clock of its scorecard"
NEEDS: tuple[str, ...] = ()
TASKS = ("digits", "toy")
BASE = "SGD"
#: At equal steps runs are compared after this share of them.
EARLY = 0.2
#: At equal mean loss they are compared where the mean has completed this part of its fall under plain SGD.
LEVEL = 0.9


@dataclass(frozen=True)
class Setting:
    """Steps of every run; looks are dense, because the loss clock is read between them."""

    steps: int = 1000
    per_decade: int = 40
    seeds: int = 6


QUICK, FULL = Setting(), Setting(steps=5000, per_decade=80, seeds=20)


def recipes(steps: int) -> dict[str, Recipe]:
    """Plain SGD first, then the same faster, then other optimisers."""
    import torch

    more: dict[str, Any] = {"steps": steps, "batch": 64, "loss": Logistic()}
    return {
        BASE: Recipe(lr=0.05, **more),
        "SGD, doubled rate": Recipe(lr=0.1, **more),
        "momentum": Recipe(lr=0.05, momentum=0.9, **more),
        "Adam": Recipe(partial(torch.optim.Adam, lr=1e-3), **more),
        "RMSprop": Recipe(partial(torch.optim.RMSprop, lr=1e-3), **more),
    }


def run(setting: Setting, keep: Keep) -> Runs:
    """Every task and optimiser; the seeds have the same data, weights and batches in all."""
    return {
        f"{task} {name}": keep(f"{task} {name}", partial(_trained, task, recipe, setting))
        for task in TASKS
        for name, recipe in recipes(setting.steps).items()
    }


def _trained(task: str, recipe: Recipe, setting: Setting) -> Trajectory:
    from tiltmeter.training.loop import train

    runs = []
    for seed in range(setting.seeds):
        data = parts(task, seed, Sizes())
        watch = Watch(when=log_spaced(setting.per_decade), points=False)
        one = train(network(data.train.x.shape[1], seed), data.train, data.judge, recipe, watch=watch, seed=seed)
        runs.append(one.replace({"loss": one["loss"]}))
    return stack(runs)


@dataclass(frozen=True, eq=False)
class Compared:
    """The worst group's loss minus that of plain SGD, by seed: at equal steps, and at equal mean loss."""

    steps: np.ndarray
    clock: np.ndarray

    @property
    def remains(self) -> float:
        """The difference on the loss clock relative to that at equal steps; NaN if none is shown at equal steps."""
        mean, error = mean_and_error(self.steps)
        return abs(mean_and_error(self.clock)[0]) / abs(mean) if abs(mean) > 2.0 * error else float("nan")

    @property
    def told(self) -> str:
        return "{:+.3f} ± {:.3f} at equal steps, {:+.3f} ± {:.3f} at equal mean loss".format(
            *mean_and_error(self.steps), *mean_and_error(self.clock)
        )


def compared(runs: Runs, task: str, name: str) -> Compared:
    """One optimiser against plain SGD. Means weigh groups as in training; every seed has its own level of the mean."""
    base, other = (group_values(runs[f"{task} {one}"], "loss") for one in (BASE, name))
    shares, _ = training_shares(runs[f"{task} {BASE}"], base.groups)
    look = int(np.searchsorted(base.times, EARLY * base.times[-1]))
    at_step = [one.values[:, look].max(1) for one in (base, other)]
    clock = []
    for seed in range(len(base.seeds)):
        pair = [replace(one, values=one.values[seed : seed + 1]) for one in (base, other)]
        level = clock_levels(pair[0], shares, [LEVEL])[0]
        worst = [worst_when_reached(one, shares, level)[0] for one in pair]
        clock.append(worst[1] - worst[0])
    return Compared(at_step[1] - at_step[0], np.array(clock))


def claims(runs: Runs) -> tuple[Claim, ...]:
    """A larger rate as the control of pure speed; then every other optimiser on each task."""
    seeds = runs[f"{TASKS[0]} {BASE}"]["loss"].sizes["seed"]
    names = [name.removeprefix(f"{TASKS[0]} ") for name in runs if name.startswith(f"{TASKS[0]} ")]
    found = {(task, name): compared(runs, task, name) for task in TASKS for name in names if name != BASE}
    doubled = {task: found[task, "SGD, doubled rate"] for task in TASKS}
    asked = [
        Claim(
            "Control: a doubled learning rate is only faster",
            max(one.remains for one in doubled.values()),
            "largest part of the difference in the worst group's loss that remains at equal mean loss",
            0.25,
            "; ".join(f"{task}: {one.told}" for task, one in doubled.items()) + ".",
            rule="at most",
            seeds=seeds,
            safe=False,
        )
    ]
    for (task, name), one in found.items():
        if name == "SGD, doubled rate":
            continue
        asked.append(
            Claim(
                f"{name} on {task}: what differs from SGD is the speed",
                one.remains,
                "part of the difference in the worst group's loss that remains at equal mean loss",
                0.25,
                f"{'' if one.remains == one.remains else 'No difference is shown at equal steps: '}{one.told}.",
                rule="at most",
                seeds=seeds,
                safe=False,
            )
        )
    mean, error = mean_and_error(found["toy", "Adam"].clock)
    asked.append(
        Claim(
            "On the toy Adam also takes another path",
            abs(mean) / error if error > 0 else float("nan"),
            "difference in the worst group's loss at equal mean loss, in paired standard errors",
            2.0,
            seeds=seeds,
            safe=False,
        )
    )
    return tuple(asked)


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The plane of mean and worst group: an optimiser that is only faster stays on the line of SGD."""
    from tiltmeter.plot.loss_plane import loss_plane

    return {
        f"Mean and worst group, {task}": loss_plane(
            {name.removeprefix(f"{task} "): one for name, one in runs.items() if name.startswith(f"{task} ")}
        )
        for task in TASKS
    }
