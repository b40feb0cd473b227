"""utkface-tools: a forecast before training and three interventions on photographs of people."""

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
from tiltmeter_lab.named.utkface_ages import AGE
from tiltmeter_lab.networks import small_cnn
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim
from tiltmeter_lab.shared.picture_folds import scaled

TITLE = "UTKFace: what a forecast says before training, and what interventions do to the errors by race"
PAPER = "No published answer; data of Zhang, Song and Qi (2017), whose age, sex and race are estimates"
NEEDS: tuple[str, ...] = ("utkface",)
PLAIN, FORECAST, TRAINED = "plain", "forecast", "trained"
#: Splits and seeds from here on had not been used, and claims were written before any run with them.
FRESH = 7000
CURVES = ("loss", "error", "positive_rate", "tpr", "fpr")


@dataclass(frozen=True)
class Setting:
    """Faces and their size, the training of a small convolutional network, rehearsals; every seed has its own split."""

    points: int = 1500
    side: int = 16
    width: int = 8
    lr: float = 2e-3
    steps: int = 60
    batch: int = 64
    copies: int = 3
    seeds: int = 3


QUICK = Setting()
FULL = Setting(points=12_000, side=32, width=16, steps=800, copies=5, seeds=5)


def arms() -> dict[str, tuple[Any, ...]]:
    """Interventions that know the race of every training face."""
    return {
        PLAIN: (),
        "Balanced": (tm.interventions.Balanced(),),
        "GroupDRO": (tm.interventions.GroupDRO(),),
        "MedianGradient": (lab.interventions.MedianGradient(),),
    }


def run(setting: Setting, keep: Keep) -> Runs:
    """By sex: a forecast and the training it is of. By race: the same splits with every intervention."""
    faces = lab.data.utkface()
    places = np.sort(np.random.default_rng(FRESH).permutation(len(faces))[: setting.points])
    read: dict[str, np.ndarray] = {}  # the photographs, once for all runs

    def split(group: str, seed: int) -> tuple[tm.GroupedData, tm.GroupedData]:
        if not read:
            read["x"] = scaled(faces.pictures, places, setting.side)
        codes, names = (faces.sex, lab.data.SEXES) if group == "sex" else (faces.race, lab.data.RACES)
        data = tm.GroupedData(read["x"], (faces.age[places] > AGE).astype(int), np.array(names)[codes[places]])
        train, held_out = data.split(held_out=0.25, seed=seed)
        return train, held_out

    def recipe(interventions: tuple[Any, ...]) -> tm.Recipe:
        adam = partial(torch.optim.Adam, lr=setting.lr)
        return tm.Recipe(
            adam, steps=setting.steps, batch=setting.batch, loss=tm.Logistic(), interventions=interventions
        )

    def make(name: str) -> tm.Trajectory:
        runs, seeds = [], range(FRESH, FRESH + setting.seeds)
        for seed in seeds:
            by_sex = name in (FORECAST, TRAINED)
            parts = split("sex" if by_sex else "race", seed)
            torch.manual_seed(seed)
            model = small_cnn(3, 1, setting.width)
            watch = tm.Watch(when=tm.record.log_spaced(4), points=False)  # no face is kept with a run
            chosen = recipe(() if by_sex else arms()[name])
            if name == FORECAST:
                rehearsal = tm.methods.Rehearsal(copies=setting.copies)
                ahead = tm.forecast(model, *parts, chosen, method=rehearsal, watch=watch, progress=False)
                wanted = (*CURVES, "error_gap_low", "error_gap_high")
                runs.append(ahead.replace({curve: ahead[curve] for curve in wanted}))
            else:
                trained = tm.train(model, *parts, chosen, watch=watch, seed=seed)
                runs.append(trained.replace({curve: trained[curve] for curve in CURVES}))
        return tm.stack(runs, "seed", seeds)

    return {name: keep(name, partial(make, name)) for name in (FORECAST, TRAINED, *arms())}


def _gap(run: tm.Trajectory) -> Any:
    """The error of women minus that of men, over time and seeds."""
    return run["error"].sel(group="female") - run["error"].sel(group="male")


def worst(run: tm.Trajectory) -> Any:
    """The error of the race that is judged worst at the end, one number per seed."""
    return run["error"].isel(time=-1).max("group")


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The forecast against the training, then every intervention against plain training, seed by seed."""
    forecast, trained = _gap(runs[FORECAST]), _gap(runs[TRAINED])
    # Women come before men in the order of the groups, so the limits are of the same difference.
    low, high = (runs[FORECAST][f"error_gap_{end}"].isel(pair=0) for end in ("low", "high"))
    inside = (((trained >= low) & (trained <= high)) | low.isnull()).all("time")
    changes = {name: worst(runs[name]) - worst(runs[PLAIN]) for name in list(arms())[1:]}
    what = "error of the race that is judged worst, less that of plain training with the same seed"
    return (
        mean_claim(
            "Before training, rehearsals tell the last gap in error between the sexes",
            abs(forecast - trained).isel(time=-1),
            "distance of the forecast gap from that of the training",
            0.02,
            rule="at most",
            safe=False,
        ),
        share_claim(
            "The training stays within the promised band of that gap",
            inside,
            "share of splits in which it does at every evaluation that is promised",
            safe=False,
        ),
        mean_claim(
            "Balancing the races lowers the error of the race that is judged worst",
            changes["Balanced"],
            what,
            -0.01,
            rule="at most",
            neutral=0.0,
            safe=False,
        ),
        mean_claim(
            "GroupDRO lowers the error of the race that is judged worst",
            changes["GroupDRO"],
            what,
            -0.01,
            rule="at most",
            neutral=0.0,
            safe=False,
        ),
        mean_claim(
            "MedianGradient, which follows no race that is unlike the others, raises it",
            changes["MedianGradient"],
            what,
            0.01,
            neutral=0.0,
            safe=False,
        ),
    )


def tables(runs: Runs) -> dict[str, Any]:
    """Errors by race at the end with every intervention, with 95 % intervals over splits."""
    rows = []
    for name in arms():
        error = runs[name]["error"].isel(time=-1)
        spread = error.max("group") - error.min("group")
        caught = runs[name]["tpr"].isel(time=-1)
        numbers = (error.mean("group"), worst(runs[name]), spread, caught.max("group") - caught.min("group"))
        each = error.mean("seed")
        rows.append(
            (
                name,
                *(mean_claim("", values, "", 0.0).measured for values in numbers),
                str(each.idxmax("group").item()),
            )
        )
    header = ("intervention", "mean error of the races", "worst", "worst less best", "gap in TPR", "judged worst")
    gaps = [(name, mean_claim("", _gap(runs[name]).isel(time=-1), "", 0.0).measured) for name in (FORECAST, TRAINED)]
    return {
        "Errors by race at the end": tm.results.page.Table(header, rows),
        "Error of women minus that of men at the end": tm.results.page.Table(("run", "gap"), gaps),
    }


def pictures(runs: Runs) -> dict[str, Any]:
    """The forecast with the training that followed, and the errors by race in plain training."""
    both = "Error by sex: forecast and training"
    return {
        both: tm.plot.curves(runs[FORECAST], runs[TRAINED], curve="error", title=both),
        "Error by race, plain training": tm.plot.curves(runs[PLAIN], curve="error", title="Error by race"),
    }
