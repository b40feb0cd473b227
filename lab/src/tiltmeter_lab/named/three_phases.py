"""Three phases: shift, variance and representation decide in turn, and the losses cross twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, whether
from tiltmeter_lab.shared.lead import changes, claim, crossing_distance, leaders
from tiltmeter_lab.shared.network_students import train_students

TITLE = "General groups: two crossings, driven by shift, then variance, then representation"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), figure 10"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Sizes of simulation and networks; `batch` examples per step with `lr` = 0.5 `batch` are lr = 0.5, only faster."""

    d: int = 2000
    seeds: int = 32
    evaluations: int = 40
    network_d: int = 100
    width: int = 64
    batch: int = 10
    steps: int = 2000
    network_seeds: int = 8


QUICK = Setting()
FULL = Setting(d=8000, seeds=128, evaluations=60, width=256, batch=2, steps=10000, network_seeds=50)


def run(setting: Setting, keep: Keep) -> Runs:
    """Theory, its drivers, simulation and networks of one problem and one SGD."""
    problem = tm.theory.cases.three_phases().problem
    sgd = tm.SGD(lr=0.5 * setting.batch, batch=setting.batch)
    until = setting.steps / setting.network_d
    times = np.geomspace(until / 20000.0, until, 400)
    evaluations = np.unique(np.rint(np.geomspace(until / 2000.0, until, setting.evaluations) * setting.d)) / setting.d
    return {
        "theory": keep("theory", lambda: tm.predict(problem, sgd, times, ("loss", "error"))),
        "drivers": keep("drivers", lambda: tm.drivers(problem, sgd, times)),
        "simulation": keep(
            "simulation",
            lambda: tm.simulate(
                problem,
                sgd,
                evaluations,
                setting.d,
                setting.seeds,
                curves=("loss", "error"),
                method=tm.theory.Chain(progress=False),
            ),
        ),
        "networks": keep(
            "networks",
            lambda: train_students(
                problem, sgd, (setting.width,), setting.network_d, setting.steps, setting.network_seeds
            ),
        ),
    }


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Two crossings, the order of drivers, and the same in simulation and networks."""
    exact = changes(runs["theory"])
    led = tm.leaders(runs["theory"], "loss")
    far, error = crossing_distance(runs["simulation"], [crossing.time for crossing in exact], "+-+")
    nets = len(runs["networks"].origin.seeds)
    return (
        Claim("The losses cross twice", float(len(exact)), "crossings in the theory", 2.0, led.headline.line),
        whether(
            "The phases are driven by shift, then variance, then representation",
            [phase.driver for phase in led.phases] == ["shift", "variance", "representation"],
            "do the drivers come in this order",
            safe=True,
        ),
        Claim(
            "Simulated students cross when the theory says",
            far,
            "largest relative distance of a time of crossing",
            0.15,
            claim(runs["simulation"]),
            rule="at most",
            error=error,
            seeds=len(runs["simulation"].origin.seeds),
        ),
        whether(
            "A ReLU network crosses twice, too",
            "+-+" in leaders(runs["networks"]),
            "do +, - and + lead in turn",
            claim(runs["networks"]),
            seeds=nets,
            safe=False,
        ),
        whether(
            "Errors cross twice, too, in a ReLU network",
            "+-+" in leaders(runs["networks"], "error"),
            "have +, - and + the lower error in turn",
            claim(runs["networks"], "error"),
            seeds=nets,
            safe=False,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """Theory, simulation and networks on one chart; the theory with its phases; what drives them."""

    drawn = [runs[name] for name in ("theory", "simulation", "networks")]
    return {
        "Losses: theory, simulation and ReLU networks": tm.plot.curves(*drawn, labels=("theory", "simulation", "ReLU")),
        "Phases": tm.plot.curves(runs["theory"], leaders=tm.leaders(runs["theory"])),
        "What makes the gap": tm.theory.plot.drivers(runs["drivers"]),
    }
