"""utkface-ages: is a face older than 40? Who is served worse, by sex and by race, and when during training."""

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
from tiltmeter_lab.shared.over_seeds import mean_and_error
from tiltmeter_lab.shared.picture_folds import lead_change, over_folds, scaled

TITLE = "UTKFace: whose age a network judges wrong more often, by sex and by race, and from when on"
PAPER = "No published answer; data of Zhang, Song and Qi (2017), whose age, sex and race are estimates"
NEEDS: tuple[str, ...] = ("utkface",)
#: The step at which the first leader is determined, and the age, fixed before any run.
EARLY, AGE = 30, 40
#: Folds and seeds from here on had not been used.
FRESH = 3000
CURVES = ("loss", "error", "positive_rate", "tpr", "fpr")


@dataclass(frozen=True)
class Setting:
    """How many faces of which size, and how a small convolutional network is trained on them; `seeds` counts folds.

    Up to step 600 or so the networks give one answer to everybody, so that the first leader is the group with fewer
    faces over 40; at the last step they still learn.
    """

    points: int = 2000
    side: int = 32
    width: int = 16
    lr: float = 0.05
    steps: int = 300
    batch: int = 32
    per_decade: int = 6
    seeds: int = 4
    repeats: int = 1


QUICK = Setting()
FULL = Setting(points=23_705, steps=3000, seeds=6)


def run(setting: Setting, keep: Keep) -> Runs:
    """The same faces and networks, held-out faces in groups by sex and by race."""
    faces = lab.data.utkface()
    places = np.sort(np.random.default_rng(FRESH).permutation(len(faces))[: setting.points])

    def make(group: str) -> tm.Trajectory:
        codes = faces.sex if group == "sex" else faces.race
        names = np.array(lab.data.SEXES if group == "sex" else lab.data.RACES)
        x = scaled(faces.pictures, places, setting.side)
        data = tm.GroupedData(x, (faces.age[places] > AGE).astype(int), names[codes[places]])
        return over_folds(setting, data, CURVES, partial(torch.optim.SGD, lr=setting.lr, momentum=0.9), FRESH)

    return {group: keep(group, partial(make, group)) for group in ("sex", "race")}


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The last gaps of every group to the mean of the others, and whether the lead of the sexes changes."""
    found = [lead_change(runs["sex"], curve, EARLY, "Age over 40 by sex") for curve in ("loss", "error")]
    for name, run in runs.items():
        error = run["error"].isel(time=-1)
        worst = max(error.coords["group"].values, key=lambda group: float(error.sel(group=group).mean()))
        others = error.where(error.coords["group"] != worst).mean("group")
        mean, scatter = mean_and_error(error.sel(group=worst) - others)
        found.append(
            Claim(
                f"By {name}, one group is judged wrong more often than the others at the end",
                mean,
                f"error of the worst group, {worst}, minus the mean of the others",
                0.01,
                "The worst group is chosen by the same numbers, which makes the gap a little too large.",
                error=scatter,
                seeds=error.sizes["seed"],
                safe=False,
                neutral=0.0,
            )
        )
    return tuple(found)


def tables(runs: Runs) -> dict[str, Any]:
    """Every rate at the end, with its 95 % interval over folds."""
    found = {}
    for name, run in runs.items():
        rows = []
        for group in run["error"].coords["group"].values:
            cells = []
            for curve in CURVES[1:]:
                mean, error = mean_and_error(run[curve].isel(time=-1).sel(group=group))
                cells.append(Claim("", mean, "", 0.0, error=error, seeds=run[curve].sizes["seed"]).measured)
            rows.append((str(group), *cells))
        header = ("group", "error", "selection rate", "true positive rate", "false positive rate")
        found[f"Rates at the end, by {name}"] = tm.results.page.Table(header, rows)
    return found


def pictures(runs: Runs) -> dict[str, Any]:
    """The error of every group over training."""
    return {f"Error by {name}": tm.plot.curves(run, curve="error", title=f"by {name}") for name, run in runs.items()}
