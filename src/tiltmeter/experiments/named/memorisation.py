"""Memorisation: few examples seen many times, some with wrong labels. An open question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tiltmeter.analysis.crossings import crossings
from tiltmeter.analysis.over_seeds import mean_and_error, over_seeds
from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.samples import samples
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim, whether
from tiltmeter.experiments.named.bias_crossing import centred
from tiltmeter.experiments.shared.lead import leaders
from tiltmeter.experiments.shared.network_students import student, told
from tiltmeter.losses import Square
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, log_spaced

TITLE = "Memorisation: a finite data set, many epochs, wrong labels (open question)"
PAPER = "No published answer; the setting is that of Jain, Nobahari, Baratin and Sarao Mannelli (2024)"
NEEDS: tuple[str, ...] = ()
NOISES = ("right labels", "wrong labels")


@dataclass(frozen=True)
class Setting:
    """`examples` seen again and again; the share `noise` of them with the wrong label."""

    d: int = 50
    examples: int = 1000
    noise: float = 0.2
    width: int = 128
    lr: float = 5.0
    batch: int = 20
    epochs: int = 100
    seeds: int = 5


QUICK = Setting()
FULL = Setting(d=100, examples=4000, width=512, lr=2.0, batch=5, epochs=300, seeds=30)


def run(setting: Setting, keep: Keep) -> Runs:
    """Networks on clean and on noisy data, looked at on fresh points and on the examples they are trained on."""
    return {name: keep(name, partial(_networks, setting, name)) for name in NOISES}


def _networks(setting: Setting, name: str) -> Trajectory:

    from tiltmeter.training.ensemble import ensemble

    problem = centred()
    clean = samples(problem, setting.d, setting.examples, seed=0)
    rng = np.random.default_rng(3)
    wrong = rng.random(len(clean)) < (setting.noise if name == "wrong labels" else 0.0)
    members = [clean.groups[code] for code in clean.codes]
    data = GroupedData(clean.x, np.where(wrong, -clean.y, clean.y), members, groups=clean.groups)
    fresh = samples(problem, setting.d, 4000, seed=1, proportions={"+": 1.0, "-": 1.0}, paired=True)
    new = [(fresh.groups[code], "new") for code in fresh.codes]
    seen = [(group, "wrong" if bad else "seen") for group, bad in zip(members, wrong, strict=True)]
    look = GroupedData(np.concatenate([fresh.x, data.x]), np.concatenate([fresh.y, data.y]), new + seen)
    run = ensemble(
        partial(student, setting.d, (setting.width,)),
        data,
        look,
        Recipe(lr=setting.lr / setting.d, epochs=setting.epochs, batch=setting.batch, loss=Square()),
        watch=Watch(when=log_spaced(10)),
        seeds=setting.seeds,
    )
    per_epoch = -(-setting.examples // setting.batch)
    return told(run.on_clock("epoch", steps_per_epoch=per_epoch), "network")


def on(run: Trajectory, kind: str) -> Trajectory:
    """The run as seen on points of one kind: "new", "seen" or "wrong", with the groups under their own names."""
    picked = {}
    for name in ("loss", "error"):
        curve = run[name]
        places = [i for i, (_, word) in enumerate(curve.coords["group"].values.tolist()) if word == kind]
        labels = [curve.coords["group"].values.tolist()[i][0] for i in places]
        picked[name] = curve.isel(group=places).drop_vars("group").assign_coords(group=labels)
    return run.replace(picked)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """What is memorised, of whom, and what it does to the groups on fresh points."""
    noisy, clean = runs["wrong labels"], runs["right labels"]
    seeds = len(noisy.origin.seeds)
    fitted = 1.0 - on(noisy, "wrong")["error"].isel(time=-1).mean("seed")
    half = {group: _half(on(noisy, "wrong"), group) for group in "+-"}
    lost, error = _lost(noisy)
    control, _ = _lost(clean)
    apart, spread = _difference(noisy)
    return (
        Claim(
            "Wrong labels of both groups are memorised",
            float(fitted.min()),
            "share of wrong labels reproduced in the end, in the group where it is lower",
            0.9,
            f"{', '.join(f'{group}: {float(fitted.sel(group=group)):.0%}' for group in '+-')}.",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Wrong labels of the rarer group of larger variance are memorised first",
            half["+"] / half["-"],
            "epochs until half of the wrong labels of + are reproduced, over those of -",
            1.2,
            f"{', '.join(f'{group}: {epochs:.1f}' for group, epochs in half.items())} epochs.",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Memorising them costs error on fresh points",
            float(min(lost.values())),
            "rise of the error from its best epoch to the last, in the group where it is smaller",
            0.02,
            f"Rise by group {_told(lost)}; with right labels {_told(control)}.",
            error=error,
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The smaller group pays more for it",
            apart,
            "rise of the error of - minus that of +",
            2.0 * spread,
            error=spread,
            seeds=seeds,
            safe=False,
        ),
        whether(
            "The crossing of losses on fresh points survives many epochs of few examples",
            leaders(on(clean, "new")).endswith("-+"),
            "does - lead first and + last, with right labels",
            f"Right labels: {crossings(on(clean, 'new'))} Wrong labels: {crossings(on(noisy, 'new'))}",
            seeds=seeds,
        ),
    )


def _half(run: Trajectory, group: str) -> float:
    """The epoch after which the mean error stays below one half."""
    error = run["error"].sel(group=group).mean("seed")
    above = np.flatnonzero(error.values >= 0.5)
    last = int(above[-1]) + 1 if above.size else 0
    return float(error.coords["time"][last]) if last < error.sizes["time"] else float("nan")


def _rises(run: Trajectory) -> Any:
    """Error at the end minus the error of the epoch that was best on average, per group and seed."""
    error = on(run, "new")["error"]
    best = error.mean("seed").idxmin("time")
    return error.isel(time=-1, drop=True) - error.sel(time=best).drop_vars("time")


def _lost(run: Trajectory) -> tuple[dict[str, float], float]:
    rises = _rises(run)
    mean, error = over_seeds(rises)
    return {group: float(mean.sel(group=group)) for group in "+-"}, float(error.max())


def _difference(run: Trajectory) -> tuple[float, float]:
    return mean_and_error(_rises(run).sel(group="-") - _rises(run).sel(group="+"))


def _told(rises: dict[str, float]) -> str:
    return ", ".join(f"{group}: {value:.3f}" for group, value in rises.items())


def pictures(runs: Runs) -> dict[str, Any]:
    """Error on fresh points and on the examples seen, with wrong labels and without."""
    from tiltmeter import plot

    noisy, clean = runs["wrong labels"], runs["right labels"]
    labels = ("right labels", "wrong labels")
    return {
        "Error on fresh points": plot.curves(on(clean, "new"), on(noisy, "new"), curve="error", labels=labels),
        "Error on wrong labels that were trained on": plot.curves(on(noisy, "wrong"), curve="error"),
    }
