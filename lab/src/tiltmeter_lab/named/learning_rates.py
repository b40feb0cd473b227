"""Learning rates: the crossing keeps its place in lr * time, and training diverges at the analytic limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.lead import changes
from tiltmeter_lab.shared.over_seeds import jackknife_error

TITLE = "Learning rates: crossings scale as 1/lr, and too large a rate diverges"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), figure 13"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Rates at which the theory is looked at; and, in units of the limit, those at which students are let go."""

    rates: tuple[float, ...] = tuple(0.2 / 2.0 ** np.arange(9))
    beyond: tuple[float, ...] = (1.03, 1.06, 1.09, 1.12)
    d: int = 2000
    seeds: int = 16


QUICK = Setting()
FULL = Setting(rates=tuple(0.2 / 2.0 ** np.arange(13)), beyond=tuple(np.linspace(1.02, 1.12, 6)), d=8000, seeds=64)


def run(setting: Setting, keep: Keep) -> Runs:
    """Both cases at several rates, in theory; and simulated students beyond the limit."""
    problem = tm.theory.cases.centred_crossing().problem
    scaled = np.geomspace(0.01, 20.0, 300)  # lr * t

    def at_rates() -> tm.Trajectory:
        found = [tm.predict(problem, tm.SGD(lr=lr), scaled / lr, ("loss",)) for lr in setting.rates]
        return tm.stack([_rescaled(one, lr) for one, lr in zip(found, setting.rates, strict=True)], "lr", setting.rates)

    def let_go() -> tm.Trajectory:
        limit = float(tm.theory.stability_limit(problem, tm.SGD(lr=0.1)))
        # From the first decades of growth alone, before anything overflows.
        times = np.arange(1, 31, dtype=float)
        parts = [
            tm.simulate(
                problem,
                tm.SGD(lr=x * limit),
                times,
                setting.d,
                setting.seeds,
                curves=("Q",),
                method=tm.theory.Chain(progress=False),
            )
            for x in setting.beyond
        ]
        return tm.stack(parts, "over_limit", setting.beyond)

    three = tm.theory.cases.three_phases()
    many = tuple(np.geomspace(0.01, 2.35, 60))
    return {
        "rates": keep("rates", at_rates),
        "let go": keep("let go", let_go),
        "three phases": keep(
            "three phases",
            lambda: tm.predict(
                three.problem, replace(three.sgd, lr=("lr", list(many))), np.geomspace(1e-3, 4000.0, 1500), ("loss",)
            ),
        ),
    }


def _rescaled(run: tm.Trajectory, lr: float) -> tm.Trajectory:
    """The same run with time counted in t * lr, so that runs of all rates share their times."""
    return tm.Trajectory(
        {name: curve.assign_coords(time=np.round(curve.coords["time"].values * lr, 12)) for name, curve in run.items()},
        run.clock,
        run.origin,
    )


def crossing_times(run: tm.Trajectory) -> np.ndarray:
    """lr * t of the last crossing of each rate, from the curves as they were recorded."""
    found = []
    for lr in run["loss"].coords["lr"].values:
        # A run of its own without the theory's origin: its times are not those of the theory any more.
        alone = tm.Trajectory(
            {"loss": run["loss"].sel(lr=lr, drop=True)}, run.clock, replace(run.origin, source="rescaled")
        )
        crossed = changes(alone)
        found.append(crossed[-1].time if crossed else np.nan)
    return np.asarray(found)


def growth(curve: xr.DataArray) -> np.ndarray:
    """The rate g of Q(t) = a + b exp(g t) at each learning rate, from the increments of the mean over seeds."""
    Q = curve.mean("seed").transpose("time", ...)
    times = Q.coords["time"].values
    late = times[1:] > times[-1] / 4.0  # by then the overlaps with means and teachers have settled
    increments = np.log(np.diff(Q.values, axis=0)[late])
    return np.asarray(np.polyfit(times[1:][late], increments, 1)[0])


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The product of crossing time and rate settles; growth vanishes at the limit."""
    at = crossing_times(runs["rates"])
    rates = runs["rates"]["loss"].coords["lr"].values
    problem = tm.theory.cases.centred_crossing().problem
    limit = float(tm.theory.stability_limit(problem, tm.SGD(lr=0.1)))
    squared = runs["let go"]["Q"]
    over = squared.coords["over_limit"].values

    def distance(places: np.ndarray) -> float:
        # log Q grows by lr (lr D2 - 2 D): divided by lr it is a line, whose root is the limit.
        slope, offset = np.polyfit(over, growth(squared.isel(seed=places)) / over, 1)
        return float(-offset / slope - 1.0)

    counts = tm.theory.crossing_count(runs["three phases"])
    rate = counts.coords["lr"].values
    twice = rate[counts.values == 2]
    never = rate[counts.values == 0]
    return (
        Claim(
            "The crossing time times lr becomes constant as lr goes to 0",
            float(abs(at[-1] / at[-2] - 1.0)),
            f"relative change of lr * t between lr = {rates[-2]:.2g} and {rates[-1]:.2g}",
            0.01,
            f"It goes from {at[0]:.3f} at lr = {rates[0]:.3g} to {at[-1]:.3f}.",
            rule="at most",
        ),
        Claim(
            "Training diverges at the analytic limit",
            abs(distance(np.arange(squared.sizes["seed"]))),
            f"relative distance of the rate at which simulated growth vanishes from the limit {limit:.4f}",
            0.02,
            rule="at most",
            error=float(jackknife_error(distance, squared.sizes["seed"])),
            seeds=squared.sizes["seed"],
        ),
        Claim(
            "Losses cross at small rates and at none near the stability limit, with shift, variance and representation",
            float(rate[counts.values > 0].max()),
            f"largest of {rate.size} rates up to {rate.max():.3g} at which they cross",
            rate.min(),
            f"They cross at every rate from {rate.min():.2g} to {rate[counts.values > 0].max():.2g}"
            + (f", twice from {twice.min():.2g} to {twice.max():.2g}" if twice.size else "")
            + (f", and at none from {never.min():.2g} on." if never.size else "."),
            safe=False,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """The loss gap against lr * t for every rate."""
    from tiltmeter_lab.shared.pictures import lines

    loss = runs["rates"]["loss"]
    gap = loss.sel(group="+") - loss.sel(group="-")
    rows = [
        (float(t), float(value), f"{lr:.3g}")
        for lr in gap.coords["lr"].values[::2]
        for t, value in zip(gap.coords["time"].values[::4], gap.sel(lr=lr).values[::4], strict=True)
    ]
    return {"Gap in loss against lr * t": lines(rows, "lr * t", "loss of + minus loss of -", "lr", log_x=True)}
