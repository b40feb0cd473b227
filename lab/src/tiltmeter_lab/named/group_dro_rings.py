"""Group DRO rings: an integral controller ends where losses are equal, but overshoots; a proportional term damps it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.lead import changes
from tiltmeter_lab.shared.steered_cases import PROBLEMS, steered

TITLE = "Group DRO is an integral controller: it ends equal and rings on the way; a proportional term damps it"
PAPER = "Sagawa, Koh, Hashimoto and Liang, Distributionally Robust Neural Networks (2020); theory of this package"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Rate and proportional term of the intervention; the sizes of the simulation, whose intervention acts at a smaller
    rate."""

    rate: float = 30.0
    proportional: float = 150.0
    d: int = 2000
    seeds: int = 32


QUICK, FULL = Setting(), Setting(d=10_000, seeds=96)


def run(setting: Setting, keep: Keep) -> Runs:
    """Every problem in theory: plain, group DRO, damped; and one problem simulated."""
    rings = tm.interventions.GroupDRO(setting.rate, begin="shares", by="draws")
    damped = tm.interventions.GroupDRO(setting.rate, setting.proportional, begin="shares", by="draws")
    found = {}
    for name in PROBLEMS:
        for kind, law in (("plain", None), ("DRO", rings), ("damped", damped)):
            found[f"{name} {kind}"] = keep(f"{name} {kind}", partial(steered, name, law))
    problem, lr, _ = PROBLEMS["A"]
    slow = tm.interventions.GroupDRO(5.0, begin="shares", by="draws", memory=20.0, every=max(1, setting.d // 200))
    times = np.unique(np.rint(np.linspace(1.0, 40.0, 40) * setting.d)) / setting.d
    found["A simulated"] = keep(
        "A simulated",
        lambda: tm.simulate(
            problem,
            tm.SGD(lr=lr, interventions=(slow,)),
            times,
            setting.d,
            setting.seeds,
            curves=("loss",),
            method=tm.theory.Chain(progress=False),
        ),
    )
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """More crossings, smaller gaps; the damped intervention crosses no more than plain training and has the smallest
    gap."""
    counts = {name: len(changes(one)) for name, one in runs.items() if name != "A simulated"}
    area = {name: float(tm.fairness.criteria.GapArea().of(one)) for name, one in runs.items() if name != "A simulated"}
    more = min(counts[f"{name} DRO"] - counts[f"{name} plain"] for name in PROBLEMS)
    listed = "; ".join(f"{n}: {counts[f'{n} plain']} to {counts[f'{n} DRO']}" for n in PROBLEMS)
    ends = runs["A simulated"]["loss"]
    gap = ends.sel(group="+") - ends.sel(group="-")
    seeds = gap.sizes["seed"]
    mean, error = gap.mean("seed").values, gap.std("seed", ddof=1).values / np.sqrt(seeds)
    swing = int(np.argmax(mean)), int(np.argmin(mean))
    return (
        Claim(
            "Group DRO adds crossings", float(more), "least number of added crossings over four problems", 2.0, listed
        ),
        Claim(
            "It makes the gap over training smaller all the same",
            max(area[f"{name} DRO"] / area[f"{name} plain"] for name in PROBLEMS),
            "largest ratio of the area under the gap to that of plain training",
            0.5,
            rule="at most",
        ),
        Claim(
            "The proportional term takes the ringing away",
            float(max(counts[f"{name} damped"] - counts[f"{name} plain"] for name in PROBLEMS)),
            "largest number of crossings beyond plain training",
            0.0,
            rule="at most",
        ),
        Claim(
            "The damped intervention has the smaller gap",
            max(area[f"{name} damped"] / area[f"{name} DRO"] for name in PROBLEMS),
            "largest ratio of areas under the gap",
            0.5,
            rule="at most",
        ),
        Claim(
            "Simulated students overshoot, too: the mean gap is shown on either side",
            float(min(mean[swing[0]] / error[swing[0]], -mean[swing[1]] / error[swing[1]])),
            "smaller of the two largest swings, in standard errors",
            2.0,
            seeds=seeds,
            safe=False,
            error=1.0,
            neutral=0.0,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """The gap of problem A under the three."""
    from tiltmeter_lab.shared.pictures import lines

    rows = []
    for kind in ("plain", "DRO", "damped"):
        loss = runs[f"A {kind}"]["loss"]
        gap = (loss.sel(group="+") - loss.sel(group="-")).values
        rows += [(float(t), float(g), kind) for t, g in zip(loss.coords["time"].values[1:], gap[1:], strict=True)]
    return {"Gap in loss, problem A": lines(rows, "t", "loss of + minus loss of -", "law", log_x=True)}
