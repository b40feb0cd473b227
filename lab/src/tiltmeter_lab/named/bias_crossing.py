"""Bias crossing: without a shift, the group of larger variance leads first, and the better represented one last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, whether
from tiltmeter_lab.shared.lead import changes, claim, crossing_distance, leaders
from tiltmeter_lab.shared.network_students import train_students

TITLE = "Centred groups: larger variance leads first, better representation last"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), section 4.2"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Sizes of simulation and networks; `batch` examples per step with `lr` = 0.1 `batch` act like lr = 0.1, but
    faster."""

    d: int = 1000
    seeds: int = 16
    evaluations: int = 30
    problems: int = 400
    network_d: int = 100
    width: int = 64
    batch: int = 25
    steps: int = 1000
    network_seeds: int = 8


QUICK = Setting()
FULL = Setting(d=4000, seeds=64, evaluations=60, problems=2000, width=256, batch=5, steps=10000, network_seeds=50)


def centred() -> tm.theory.Mixture:
    """The preset of the notes whose early lead is large: the losses cross at lr * t = 2.155."""
    return tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.9)


def run(setting: Setting, keep: Keep) -> Runs:
    """Theory, simulation and networks of one problem and one SGD; and the theory of many random problems."""
    problem, sgd = centred(), tm.SGD(lr=0.1 * setting.batch, batch=setting.batch)
    until = setting.steps / setting.network_d
    times = np.geomspace(until / 2000.0, until, 400)
    evaluations = np.unique(np.rint(np.geomspace(until / 200.0, until, setting.evaluations) * setting.d)) / setting.d
    return {
        "theory": keep("theory", lambda: tm.predict(problem, sgd, times, ("loss", "error"))),
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
        "linear networks": keep(
            "linear networks",
            lambda: train_students(problem, sgd, (), setting.network_d, setting.steps, setting.network_seeds),
        ),
        "problems": keep("problems", partial(_many, setting.problems)),
    }


def _many(number: int) -> tm.Trajectory:
    """Random centred problems, each with a random rate below its stability limit."""
    rng = np.random.default_rng(2024)

    def draw(low: float, high: float) -> xr.DataArray:
        return xr.DataArray(rng.uniform(low, high, number), dims="problem", coords={"problem": np.arange(number)})

    plus, minus, rho, overlap = draw(0.1, 2.0), draw(0.1, 2.0), draw(0.05, 0.95), draw(-0.2, 0.99)
    mean = rho * plus + (1.0 - rho) * minus
    lr = draw(0.02, 0.95) * 2.0 * mean / (rho * plus**2 + (1.0 - rho) * minus**2)
    times = np.geomspace(1e-5, 60.0 / float((lr * mean).min()), 1200)
    found = tm.predict(tm.teacher_mixture(rho, 0.0, (plus, minus), overlap), tm.SGD(lr=lr), times, ("loss", "error"))
    # Only the sign of the gap is needed, which takes an eighth of the space.
    gap = found["loss"].sel(group="+", drop=True) - found["loss"].sel(group="-", drop=True)
    counts = {
        name: tm.theory.crossing_count(found, curve).expand_dims(time=times[-1:])
        for name, curve in (("crossings", "loss"), ("error_crossings", "error"))
    }
    return tm.Trajectory({**counts, "final_gap": gap.isel(time=[-1])}, "t", found.origin)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The rule over many problems; theory, simulation and networks of one."""
    many = runs["problems"]
    problem, sgd = tm.theory.Mixture.from_json(many.origin.problem), tm.SGD.from_json(many.origin.settings["sgd"])  # type: ignore[arg-type]
    differ = tm.theory.first_leader(problem, sgd).values != tm.theory.final_leader(problem, sgd).values
    count = many["crossings"].isel(time=0).values
    exact, measured = changes(runs["theory"])[0].time, changes(runs["simulation"])
    linear = changes(runs["linear networks"])
    far, error = crossing_distance(runs["simulation"], (exact,), "-+")
    linear_far, linear_error = crossing_distance(runs["linear networks"], (exact,), "-+")
    seeds = len(runs["simulation"].origin.seeds)
    nets = len(runs["networks"].origin.seeds)
    led = tm.leaders(runs["theory"], "loss")
    return (
        Claim(
            "Losses cross once if the first and the final winner differ, else never",
            float((count == differ).mean()),
            f"share of {len(count)} random problems in which that is so",
            1.0,
            f"{int(differ.sum())} of them have a crossing.",
        ),
        whether(
            "The group of larger variance leads first, the better represented one last",
            [phase.driver for phase in led.phases] == ["variance", "representation"],
            "are the drivers of the two phases variance, then representation",
            led.headline.line,
            safe=True,
        ),
        Claim(
            "Simulated students cross when the theory says",
            far,
            "relative distance of the time of crossing",
            0.1,
            f"The theory crosses at t = {exact:.3f}; the simulation is decided between {_between(measured)}.",
            rule="at most",
            error=error,
            seeds=seeds,
        ),
        Claim(
            "A linear module trained by PyTorch crosses when the theory says",
            linear_far,
            "relative distance of the time of crossing",
            0.2,
            f"It is decided between {_between(linear)}.",
            rule="at most",
            error=linear_error,
            seeds=nets,
        ),
        whether(
            "The crossing survives in a ReLU network",
            leaders(runs["networks"]).endswith("-+"),
            "does - lead, then + to the end",
            f"{claim(runs['networks'])}",
            seeds=nets,
            safe=False,
        ),
        Claim(
            "Errors of centred groups never cross: from zero, the ratio of their overlaps with the rules is constant",
            float((many["error_crossings"].values > 0).mean()),
            f"share of {count.size:,} random problems in which errors cross",
            0.01,
            f"Losses cross in {int((count > 0).sum())} of them. In ReLU networks: {claim(runs['networks'], 'error')}",
            rule="at most",
            trials=count.size,
        ),
    )


def _between(found: Any) -> str:
    return f"{found[-1].low:.3g} and {found[-1].high:.3g}" if found else "no two evaluations"


def pictures(runs: Runs) -> dict[str, Any]:
    """Theory, simulation and networks on one chart."""

    drawn = [runs[name] for name in ("theory", "simulation", "networks")]
    return {
        "Losses: theory, simulation and ReLU networks": tm.plot.curves(*drawn, labels=("theory", "simulation", "ReLU")),
        "The theory and its phases": tm.plot.curves(runs["theory"], leaders=tm.leaders(runs["theory"])),
    }
