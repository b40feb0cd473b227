"""optimiser-or-speed: is another optimiser fairer, or only faster? Asked at equal steps and at equal mean loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, not_run
from tiltmeter_lab.shared.cell_tasks import HIDDEN, Sizes, parts
from tiltmeter_lab.shared.equal_progress import losses, part_of_fall, training_shares, when_reached
from tiltmeter_lab.shared.over_seeds import jackknife_error, mean_and_error, mean_claim

TITLE = "At equal steps optimisers differ in the worst group; at equal mean loss much less"
PAPER = "tiltmeter's own question: the loss clock of its scorecard"
NEEDS: tuple[str, ...] = ()
TASKS = ("digits", "toy", "adult")
BASE, DOUBLED = "SGD", "SGD, doubled rate"
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
        DOUBLED: tm.Recipe(lr=0.1, **more),
        "momentum": tm.Recipe(lr=0.05, momentum=0.9, **more),
        "Adam": tm.Recipe(partial(torch.optim.Adam, lr=1e-3), **more),
        "RMSprop": tm.Recipe(partial(torch.optim.RMSprop, lr=1e-3), **more),
        "Muon": tm.Recipe(partial(torch.optim.Muon, lr=5e-3, weight_decay=0.0), **more),
    }


def run(setting: Setting, keep: Keep) -> Runs:
    """Every task and optimiser; the seeds have the same data, weights and batches in all."""
    return {
        f"{task} {name}": keep(f"{task} {name}", partial(_trained, task, recipe, setting))
        for task in TASKS
        if task != "adult" or tm.data.is_present("adult")
        for name, recipe in recipes(setting.steps).items()
    }


def _trained(task: str, recipe: tm.Recipe, setting: Setting) -> tm.Trajectory:
    import torch

    runs = []
    for seed in range(setting.seeds):
        data = parts(task, seed, Sizes())
        watch = tm.Watch(when=tm.record.log_spaced(setting.per_decade), points=False)
        torch.manual_seed(seed)
        model = tm.modules.mlp(data.train.x.shape[1], HIDDEN, 1, bias=False)  # torch's Muon takes matrices only
        trained = tm.train(model, data.train, data.judge, recipe, watch=watch, seed=seed)
        runs.append(trained.replace({"loss": trained["loss"]}))
    return tm.stack(runs)


@dataclass(frozen=True, eq=False)
class Compared:
    """Losses of an optimiser minus those of plain SGD, by seed: of the worst group at equal steps and at equal mean
    loss, and the largest gap between groups at equal mean loss."""

    steps: np.ndarray
    clock: np.ndarray
    gap: np.ndarray

    @property
    def reached(self) -> bool:
        """Whether every seed gets to the mean loss at which runs are compared."""
        return bool(np.isfinite(self.clock).all())

    def remains(self, places: np.ndarray) -> float:
        """The worst group's difference at equal mean loss relative to that at equal steps, of the mean of seeds."""
        return float(self.clock[places].mean() / self.steps[places].mean())

    def claim(self, sentence: str) -> Claim:
        """Most of the difference is gone at equal mean loss; not asked where none is clear at equal steps."""
        at_steps, at_loss = (mean_claim("", values, "", 0.0) for values in (self.steps, self.clock))
        told = f"{at_steps.measured} at equal steps, {at_loss.measured} at equal mean loss."
        if not self.reached:
            return not_run(sentence, f"Some seeds do not get to that mean loss. {told}")
        if at_steps.verdict == "undecided":
            return not_run(sentence, f"No difference is clear at equal steps: {told}")
        seeds = len(self.steps)
        return Claim(
            sentence,
            abs(self.remains(np.arange(seeds))),
            "part of the difference in the worst group's loss that remains at equal mean loss",
            0.25,
            f"The difference is {told}",
            rule="at most",
            error=float(jackknife_error(self.remains, seeds)),
            seeds=seeds,
            safe=False,
        )


def compared(runs: Runs, task: str, name: str) -> Compared:
    """One optimiser against plain SGD. Means weigh groups as in training; every seed has its own level of the mean."""
    plain = runs[f"{task} {BASE}"]
    base, other = losses(plain), losses(runs[f"{task} {name}"])
    times = plain["loss"].coords["time"].values.astype(float)
    shares = training_shares(plain, plain["loss"].coords["group"].values.tolist())
    early = int(np.searchsorted(times, EARLY * times[-1]))
    worst, gaps = [], []
    for seed in range(len(base)):
        level = part_of_fall(base[seed : seed + 1], shares, LEVEL)
        then, before = (when_reached(values[seed], shares, level) for values in (other, base))
        worst.append(then.max() - before.max())
        gaps.append(np.ptp(then) - np.ptp(before))
    return Compared(other[:, early].max(1) - base[:, early].max(1), np.array(worst), np.array(gaps))


def _all_compared(runs: Runs) -> dict[tuple[str, str], Compared]:
    tasks = [task for task in TASKS if f"{task} {BASE}" in runs]
    names = [name.removeprefix(f"{tasks[0]} ") for name in runs if name.startswith(f"{tasks[0]} ")]
    return {(task, name): compared(runs, task, name) for task in tasks for name in names if name != BASE}


def claims(runs: Runs) -> tuple[Claim, ...]:
    """A larger rate as the control of pure speed; then every other optimiser on each task."""
    comparisons = _all_compared(runs)
    asked = []
    for (task, name), comparison in comparisons.items():
        sentence = f"{name} on {task}: what differs from SGD is the speed"
        asked.append(
            comparison.claim(
                f"Control: a doubled learning rate is only faster on {task}" if name == DOUBLED else sentence
            )
        )
    mean, error = mean_and_error(comparisons["toy", "Adam"].clock)
    asked.append(
        Claim(
            "On the toy Adam also takes another path",
            abs(mean) / error if error > 0 else float("nan"),
            "difference in the worst group's loss at equal mean loss, in paired standard errors",
            2.0,
            seeds=len(comparisons["toy", "Adam"].clock),
            safe=False,
            error=1.0,
            neutral=0.0,
        )
    )
    return tuple(asked)


def tables(runs: Runs) -> dict[str, Any]:
    """Worst group and gap at equal mean loss, minus those of SGD, with 95 % intervals over seeds."""
    rows = [
        (task, name, *(mean_claim("", values, "", 0.0).measured for values in (comparison.clock, comparison.gap)))
        for (task, name), comparison in _all_compared(runs).items()
    ]
    header = ("task", "optimiser", "worst group's loss", "largest gap in loss")
    return {"At equal mean loss, minus plain SGD": tm.results.page.Table(header, rows)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The plane of mean and worst group: an optimiser that is only faster stays on the line of SGD."""

    return {
        f"Mean and worst group, {task}": tm.plot.loss_plane(
            {name.removeprefix(f"{task} "): run for name, run in runs.items() if name.startswith(f"{task} ")}
        )
        for task in TASKS
        if f"{task} {BASE}" in runs
    }
