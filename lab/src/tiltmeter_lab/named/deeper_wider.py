"""Deeper and wider: the bias crossing in ReLU networks of several depths and widths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.named.bias_crossing import centred
from tiltmeter_lab.shared.lead import changes, final_gap, leaders
from tiltmeter_lab.shared.network_students import train_students

TITLE = "The crossing survives in deeper and wider networks"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024)"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Depth counts layers of weights: 2 has one hidden layer. `lr` is that of the theory."""

    depths: tuple[int, ...] = (2, 3, 4)
    widths: tuple[int, ...] = (32, 128)
    d: int = 100
    lr: float = 5.0
    batch: int = 20
    steps: int = 1000
    seeds: int = 6


QUICK = Setting()
#: The number of seeds was chosen on others; seeds from here on had not been used.
FRESH = 1000
FULL = Setting(seeds=24)


def run(setting: Setting, keep: Keep) -> Runs:
    """One run, of many seeds, for every depth and width."""
    sgd = tm.SGD(lr=setting.lr, batch=setting.batch)
    seeds = range(FRESH, FRESH + setting.seeds)
    found = {}
    for depth in setting.depths:
        for width in setting.widths:
            name = f"depth {depth}, width {width}"
            hidden = (width,) * (depth - 1)
            make = partial(train_students, centred(), sgd, hidden, setting.d, setting.steps, seeds, points=4000)
            found[name] = keep(name, make)
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """In how many of them the larger-variance group leads before the better represented one."""
    told = {name: leaders(run) for name, run in runs.items()}
    failing = [f"{name} ({told[name] or 'nobody'})" for name in told if not told[name].endswith("-+")]
    gaps = {name: final_gap(run) for name, run in runs.items()}
    surest = min(gaps, key=lambda name: abs(gaps[name][0]) / gaps[name][1])
    seeds = len(next(iter(runs.values())).origin.seeds)
    times = [changes(run)[-1].time for run in runs.values() if changes(run)]
    return (
        Claim(
            "The group of larger variance leads before the better represented one",
            float(np.mean([text.endswith("-+") for text in told.values()])),
            f"share of {len(told)} depths and widths in which this is clear",
            1.0,
            f"Not so: {', '.join(failing)}."
            if failing
            else f"They cross between t = {min(times):.2g} and {max(times):.2g}.",
            seeds=seeds,
            safe=False,
            neutral=0.5,
            trials=len(told),
        ),
        Claim(
            "The better represented group wins in the end",
            -gaps[surest][0],
            f"lead of + in loss at the end, in the network with the smallest lead ({surest})",
            0.0,
            error=gaps[surest][1],
            seeds=seeds,
            safe=False,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """The gap in loss of every network."""
    from tiltmeter_lab.shared.pictures import loss_gaps

    return {"Gap in loss of networks": loss_gaps(runs, "t = steps/d", "ReLU network")}
