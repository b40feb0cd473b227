"""bar-actions: six actions at their typical places; do interventions without group labels help elsewhere?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.networks import small_cnn
from tiltmeter_lab.shared.over_seeds import mean_and_error
from tiltmeter_lab.shared.picture_folds import scaled

TITLE = "BAR: actions away from their typical places, and interventions that know no groups"
PAPER = "Nam, Cha, Ahn, Lee and Shin, Learning from Failure (2020)"
NEEDS: tuple[str, ...] = ("bar",)
PLAIN = "plain"
#: Seeds from here on had not been used.
FRESH = 3000


@dataclass(frozen=True)
class Setting:
    """A small convolutional network from scratch; the paper starts from a pretrained ResNet-18."""

    side: int = 32
    width: int = 16
    lr: float = 0.02
    steps: int = 200
    batch: int = 64
    seeds: int = 3


QUICK = Setting()
FULL = Setting(side=48, steps=800, seeds=8)


def arms(steps: int) -> dict[str, tuple[Any, ...]]:
    """Interventions that need no groups; those with a scout look after a tenth of the training."""
    scout = max(1, steps // 10)
    return {
        PLAIN: (),
        "LfF": (tm.interventions.LfF(),),
        "JTT": (tm.interventions.JTT(times=5, scout=scout),),
        "PrunedEasy": (lab.interventions.PrunedEasy(scout=scout),),
        "SpectralDecoupling": (lab.interventions.SpectralDecoupling(),),
    }


def run(setting: Setting, keep: Keep) -> Runs:
    """The same seeds with every intervention; groups are the actions, for the record alone."""
    parts = [lab.data.bar(part) for part in ("train", "test")]
    data: list[tm.GroupedData] = []
    for part in parts:
        x = scaled(part.pictures, np.arange(len(part)), setting.side)
        data.append(tm.GroupedData(x, part.y, np.array(lab.data.ACTIONS)[part.y]))

    def make(name: str) -> tm.Trajectory:
        runs = []
        for seed in range(FRESH, FRESH + setting.seeds):
            torch.manual_seed(seed)
            sgd = partial(torch.optim.SGD, lr=setting.lr, momentum=0.9)
            recipe = tm.Recipe(sgd, steps=setting.steps, batch=setting.batch, interventions=arms(setting.steps)[name])
            watch = tm.Watch(when=tm.record.log_spaced(3))
            runs.append(tm.train(small_cnn(3, 6, setting.width), data[0], data[1], recipe, watch=watch, seed=seed))
        return tm.stack(runs)

    return {name: keep(name, partial(make, name)) for name in arms(setting.steps)}


def accuracy(run: tm.Trajectory) -> np.ndarray:
    """The mean over actions of their accuracy at the end, one number per seed."""
    return np.asarray(1.0 - run["error"].isel(time=-1).mean("group").values)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Every intervention against plain training, seed by seed."""
    found = []
    for name in list(runs)[1:]:
        mean, error = mean_and_error(accuracy(runs[name]) - accuracy(runs[PLAIN]))
        found.append(
            Claim(
                f"{name} raises the accuracy away from the typical places",
                mean,
                "mean accuracy over actions on the test part, less that of plain training with the same seed",
                0.02,
                error=error,
                seeds=len(accuracy(runs[name])),
                safe=False,
                neutral=0.0,
            )
        )
    return tuple(found)


def tables(runs: Runs) -> dict[str, Any]:
    """Accuracy at the end with its 95 % interval over seeds, and the worst action."""
    rows = []
    for name, run in runs.items():
        mean, error = mean_and_error(accuracy(run))
        each = run["error"].isel(time=-1).mean("seed")
        worst = str(each.coords["group"].values[int(np.argmax(each.values))])
        told = Claim("", mean, "", 0.0, error=error, seeds=len(accuracy(run))).measured
        rows.append((name, told, f"{worst} {1.0 - float(each.max()):.2f}"))
    header = ("intervention", "mean accuracy over actions", "worst action")
    return {"Accuracy on the test part": tm.results.page.Table(header, rows)}


def pictures(runs: Runs) -> dict[str, Any]:
    """The error of every action in plain training."""
    return {"Error by action, plain training": tm.plot.curves(runs[PLAIN], curve="error", title=PLAIN)}
