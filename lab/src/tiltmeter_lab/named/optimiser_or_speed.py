"""optimiser-or-speed: is another optimiser fairer, or only faster? Asked at equal steps and at equal mean loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.cell_tasks import Sizes, network, parts
from tiltmeter_lab.shared.equal_progress import losses, part_of_fall, training_shares, worst_when_reached
from tiltmeter_lab.shared.over_seeds import mean_and_error

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
    """Steps of every run; evaluations are dense, because the loss clock is read between them."""

    steps: int = 1000
    per_decade: int = 40
    seeds: int = 6


QUICK, FULL = Setting(), Setting(steps=5000, per_decade=80, seeds=20)


def recipes(steps: int) -> dict[str, tm.Recipe]:
    """Plain SGD first, then the same faster, then other optimisers."""
    import torch

    more: dict[str, Any] = {"steps": steps, "batch": 64, "loss": tm.Logistic()}
    return {
        BASE: tm.Recipe(lr=0.05, **more),
        "SGD, doubled rate": tm.Recipe(lr=0.1, **more),
        "momentum": tm.Recipe(lr=0.05, momentum=0.9, **more),
        "Adam": tm.Recipe(partial(torch.optim.Adam, lr=1e-3), **more),
        "RMSprop": tm.Recipe(partial(torch.optim.RMSprop, lr=1e-3), **more),
    }


def run(setting: Setting, keep: Keep) -> Runs:
    """Every task and optimiser; the seeds have the same data, weights and batches in all."""
    return {
        f"{task} {name}": keep(f"{task} {name}", partial(_trained, task, recipe, setting))
        for task in TASKS
        for name, recipe in recipes(setting.steps).items()
    }


def _trained(task: str, recipe: tm.Recipe, setting: Setting) -> tm.Trajectory:

    runs = []
    for seed in range(setting.seeds):
        data = parts(task, seed, Sizes())
        watch = tm.Watch(when=tm.record.log_spaced(setting.per_decade), points=False)
        one = tm.train(network(data.train.x.shape[1], seed), data.train, data.judge, recipe, watch=watch, seed=seed)
        runs.append(one.replace({"loss": one["loss"]}))
    return tm.stack(runs)


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
    plain = runs[f"{task} {BASE}"]
    base, other = losses(plain), losses(runs[f"{task} {name}"])
    times = plain["loss"].coords["time"].values.astype(float)
    shares = training_shares(plain, plain["loss"].coords["group"].values.tolist())
    early = int(np.searchsorted(times, EARLY * times[-1]))
    clock = []
    for seed in range(len(base)):
        level = part_of_fall(base[seed : seed + 1], shares, LEVEL)
        clock.append(worst_when_reached(other[seed], shares, level) - worst_when_reached(base[seed], shares, level))
    return Compared(other[:, early].max(1) - base[:, early].max(1), np.array(clock))


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
            error=1.0,
            neutral=0.0,
        )
    )
    return tuple(asked)


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The plane of mean and worst group: an optimiser that is only faster stays on the line of SGD."""

    return {
        f"Mean and worst group, {task}": tm.plot.loss_plane(
            {name.removeprefix(f"{task} "): one for name, one in runs.items() if name.startswith(f"{task} ")}
        )
        for task in TASKS
    }
