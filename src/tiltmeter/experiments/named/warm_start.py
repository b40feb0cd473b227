"""Warm start: does the bias of another task, learnt before, stay? An open question."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tiltmeter.analysis.crossings import crossings
from tiltmeter.analysis.over_seeds import mean_and_error
from tiltmeter.data.synthetic.samples import samples
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.named.bias_crossing import centred
from tiltmeter.experiments.shared.lead import leaders
from tiltmeter.experiments.shared.network_students import student, told
from tiltmeter.losses import Square
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.start import Overlaps, Start, Zero
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, log_spaced
from tiltmeter.theory.limits import asymptotes
from tiltmeter.theory.predict import predict

TITLE = "Warm start from another task: what stays of the bias that was learnt before (open question)"
PAPER = "No published answer; the setting is that of Jain, Nobahari, Baratin and Sarao Mannelli (2024)"
NEEDS: tuple[str, ...] = ()
#: What was learnt before: nothing, one group alone, or labels that have nothing to do with this task.
BEFORE = ("nothing", "- alone", "+ alone", "something unrelated")


@dataclass(frozen=True)
class Setting:
    """Sizes of the networks; `before` steps on the first task, then `steps` on the second."""

    d: int = 100
    width: int = 64
    lr: float = 5.0
    batch: int = 20
    before: int = 600
    steps: int = 1000
    seeds: int = 5


QUICK = Setting()
FULL = Setting(width=256, lr=1.0, batch=5, before=8000, steps=12000, seeds=30)


def run(setting: Setting, keep: Keep) -> Runs:
    """The linear student in theory, started where another task ended; and networks trained on two tasks in turn."""
    problem, sgd = centred(), SGD(lr=0.1)
    times = np.geomspace(0.01, 400.0, 400)
    found = {}
    for name in BEFORE:
        warm = replace(sgd, start=learnt(name))
        found[f"theory, {name}"] = keep(f"theory, {name}", partial(predict, problem, warm, times, ("loss",)))
        found[f"networks, {name}"] = keep(f"networks, {name}", partial(_networks, setting, name))
    return found


def learnt(name: str) -> Start:
    """Where the linear student ends after the first task, in overlaps with the groups of the second."""
    if name == "nothing":
        return Zero()
    if name == "something unrelated":
        return Overlaps(Q=1.0)
    only: dict[Hashable, Any] = {"+": 0.0, "-": 0.0, name[0]: 1.0}
    end = asymptotes(centred(), SGD(lr=0.1, proportions=only))

    def along(curve: str) -> dict[Hashable, Any]:
        return {group: float(end[curve].sel(group=group)) for group in "+-"}

    return Overlaps(M=along("M"), R=along("R"), Q=float(end["Q"]))


def _networks(setting: Setting, name: str) -> Trajectory:
    """Networks that learn the first task from the same start as always, then the second."""
    import torch

    from tiltmeter.training.ensemble import ensemble
    from tiltmeter.training.loop import train

    problem, sgd = centred(), partial(torch.optim.SGD, lr=setting.lr / setting.d)
    first = samples(problem, setting.d, setting.before * setting.batch, seed=2, world=1 if "unrelated" in name else 0)
    data = samples(problem, setting.d, setting.steps * setting.batch, seed=0)
    look = samples(problem, setting.d, 4000, seed=1, proportions={"+": 1.0, "-": 1.0}, paired=True)

    def make() -> Any:
        model = student(setting.d, (setting.width,))
        if name != "nothing":
            # Of its own stream: the seeds differ in their start and in the second task.
            only = {name[0]: 1.0} if name.endswith("alone") else {"+": 0.8, "-": 0.2}
            train(
                model,
                first,
                first.take(range(0, len(first), len(first) // 200)),
                Recipe(sgd, steps=setting.before, batch=setting.batch, proportions=only, loss=Square()),
                watch=Watch(when=log_spaced(1)),
            )
        return model

    run = ensemble(
        make,
        data,
        look,
        Recipe(sgd, steps=setting.steps, batch=setting.batch, loss=Square()),
        watch=Watch(when=log_spaced(10)),
        seeds=setting.seeds,
    )
    return told(run.on_clock("t", d=setting.d), "network")


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Does the start decide who leads first, and does anything of it stay? What we saw."""
    found = []
    for kind, word in (("theory", "the linear student"), ("networks", "ReLU networks")):
        ends = {name: _final(runs[f"{kind}, {name}"]) for name in BEFORE}
        spread = max(abs(ends[name][0] - ends["nothing"][0]) for name in BEFORE)
        noise = max(error for _, error in ends.values())
        seeds = max(1, len(runs[f"{kind}, nothing"].origin.seeds))
        found.append(
            Claim(
                f"In {word}, the group learnt before leads at first",
                float(np.mean([leaders(runs[f"{kind}, {group} alone"]).startswith(group) for group in "+-"])),
                "share of the two groups for which it does",
                1.0,
                " ".join(f"After {name}: {crossings(runs[f'{kind}, {name}'])}" for name in BEFORE),
                seeds=seeds,
                safe=kind == "theory",
            )
        )
        found.append(
            Claim(
                f"In {word}, nothing of the first task is left in the end",
                spread,
                "largest change of the final gap in loss by what was learnt before",
                # Exact to rounding in theory; four standard errors of a difference of two means in networks.
                1e-6 if kind == "theory" else 4.0 * np.sqrt(2.0) * noise,
                rule="at most",
                error=None if kind == "theory" else noise,
                seeds=seeds,
                safe=kind == "theory",
            )
        )
    return tuple(found)


def _final(run: Trajectory) -> tuple[float, float]:
    """The last gap in loss, and its standard error over seeds, 0 for theory."""
    gap = run["loss"].isel(time=-1).sel(group="+") - run["loss"].isel(time=-1).sel(group="-")
    if "seed" not in gap.dims:
        return float(gap), 0.0
    return mean_and_error(gap)


def pictures(runs: Runs) -> dict[str, Any]:
    """The gap over time by what was learnt before."""
    from tiltmeter.experiments.shared.pictures import lines

    charts = {}
    for kind in ("theory", "networks"):
        points = []
        for name in BEFORE:
            loss = runs[f"{kind}, {name}"]["loss"]
            mean = loss.mean("seed") if "seed" in loss.dims else loss
            gap = mean.sel(group="+") - mean.sel(group="-")
            points += [(float(t), float(gap.sel(time=t)), name) for t in gap.coords["time"].values if t > 0]
        axis = "loss of + minus loss of -"
        charts[f"Gap in loss after a first task ({kind})"] = lines(points, "t = steps/d", axis, "before", log_x=True)
    return charts
