"""Equalising weights: equal losses at the end need pulls like the inverse root of the variances, not equal pulls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.steered_cases import PROBLEMS, evaluations
from tiltmeter_lab.theory.group_pulls import equalising_pulls

TITLE = "Groups end equal where they pull like 1 / sqrt(variance), whatever their shares and teachers"
PAPER = "Theory of this package, on the model of Jain, Nobahari, Baratin and Sarao Mannelli (2024)"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Problems drawn at random, and the simulation of one."""

    problems: int = 40
    d: int = 1000
    seeds: int = 48


QUICK, FULL = Setting(), Setting(problems=400, d=4000, seeds=128)


def run(setting: Setting, keep: Keep) -> Runs:
    """The equalising pulls of random problems as lr -> 0, and simulated students at those of one problem."""

    def scan() -> tm.Trajectory:
        rng = np.random.default_rng(0)
        found, expected = [], []
        for _ in range(setting.problems):
            variance = tuple(rng.uniform(0.2, 2.0, 2))
            problem = tm.teacher_mixture(rng.uniform(0.1, 0.9), 0.0, variance, rng.uniform(-0.9, 0.9))
            roots = equalising_pulls(problem, tm.SGD(lr=1e-7))
            found.append(roots[0]["+"] if len(roots) == 1 else np.nan)
            expected.append(variance[0] ** -0.5 / (variance[0] ** -0.5 + variance[1] ** -0.5))
        coords = {"time": [0.0], "problem": np.arange(setting.problems)}
        return tm.Trajectory(
            {
                name: xr.DataArray([values], dims=("time", "problem"), coords=coords)
                for name, values in (("found", found), ("expected", expected))
            },
            "t",
            tm.predict(PROBLEMS["A"][0], tm.SGD(lr=0.1), [0.0], ("loss",)).origin,
        )

    problem, lr, until = PROBLEMS["A"]
    (pulls,) = equalising_pulls(problem, tm.SGD(lr=lr))
    at = np.unique(np.rint(np.array([20.0, 40.0, 60.0]) * setting.d)) / setting.d
    sgd, even = (tm.SGD(lr=lr, proportions=dict(given)) for given in (pulls.items(), (("+", 0.5), ("-", 0.5))))
    return {
        "scan": keep("scan", scan),
        "equalised": keep("equalised", lambda: tm.predict(problem, sgd, evaluations(4.0 * until), ("loss",))),
        "balanced": keep("balanced", lambda: tm.predict(problem, even, evaluations(4.0 * until), ("loss",))),
        "simulated": keep(
            "simulated",
            lambda: tm.simulate(
                problem, sgd, at, setting.d, setting.seeds, curves=("loss",), method=tm.theory.Chain(progress=False)
            ),
        ),
    }


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The rule on random problems, the end of one problem, and its simulation."""
    scan = runs["scan"]
    off = float(np.abs((scan["found"] - scan["expected"]).values).max())
    gaps = {
        name: float(np.abs(runs[name]["loss"].isel(time=-1).diff("group")).item()) for name in ("equalised", "balanced")
    }
    last = runs["simulated"]["loss"].isel(time=-1)
    gap = last.sel(group="+") - last.sel(group="-")
    error = float(gap.std("seed", ddof=1) / np.sqrt(gap.sizes["seed"]))
    return (
        Claim(
            "Two centred groups end equal at one place, P proportional to 1 / sqrt(variance)",
            off,
            f"largest distance of the pull from the rule, {scan['found'].sizes['problem']} random problems",
            1e-4,
            rule="at most",
        ),
        Claim("Equal pulls leave a gap at the end", gaps["balanced"], "gap in loss", 0.01),
        Claim("Equalising pulls leave none", gaps["equalised"], "gap in loss", 1e-6, rule="at most"),
        Claim(
            "Nor do they in simulated students",
            abs(float(gap.mean())) / error,
            "mean gap at the end, in standard errors",
            4.0,
            rule="at most",
            error=1.0,
            seeds=gap.sizes["seed"],
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """Losses under equal and under equalising pulls."""
    from tiltmeter_lab.shared.pictures import lines

    rows = [
        (float(t), float(v), f"{group}, {name}")
        for name in ("equalised", "balanced")
        for group in ("+", "-")
        for t, v in zip(
            runs[name]["loss"].coords["time"].values[1:], runs[name]["loss"].sel(group=group).values[1:], strict=True
        )
    ]
    return {"Losses, problem A": lines(rows, "t", "loss", "group and pulls", log_x=True, zero=False)}
