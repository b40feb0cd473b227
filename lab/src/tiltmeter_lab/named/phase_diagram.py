"""Phase diagram: who leads at the end, and whether there was a crossing, over grids of problems."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim

TITLE = "Where the lead changes, over representation, variance ratio and learning rate"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), section 4.2"
NEEDS: tuple[str, ...] = ()
#: Variance of "+", overlap of the teachers, and the rate of the first grid.
PLUS, OVERLAP, LR = 0.5, 0.5, 0.1
RATIO, SHARE = "variance of - over that of +", "share of +"
#: Points of the grid at which students are simulated, and at which multiples of the stability limit.
EDGE_SHARES, EDGE_RATES = (0.2, 0.5, 0.8), (0.85, 1.15)


@dataclass(frozen=True)
class Setting:
    """Points along each side of the (exact) grid; dimension and number of the simulated students at its edge."""

    points: int = 40
    evaluations: int = 200
    d: int = 400
    seeds: int = 8


QUICK = Setting()
FULL = Setting(points=150, evaluations=600, d=2000, seeds=32)


def run(setting: Setting, keep: Keep) -> Runs:
    """The theory over (share, variance ratio), over (share, lr), and over the first again at a very small rate."""
    values = np.linspace(0.04, 0.96, setting.points)
    shares = xr.DataArray(values, dims=SHARE, coords={SHARE: values})
    # An even number of points, evenly spaced in the logarithm, so that none lies on the line of symmetry.
    ratios = np.geomspace(0.1, 10.0, setting.points)
    rates = np.geomspace(0.03, 6.0, setting.points)

    def over_ratio(lr: float) -> tm.Trajectory:
        variance = xr.DataArray(PLUS * ratios, dims=RATIO, coords={RATIO: ratios})
        problem = tm.teacher_mixture(shares, 0.0, (PLUS, variance), OVERLAP)
        return _quiet(
            tm.predict, problem, tm.SGD(lr=lr), np.geomspace(1e-4, 200.0, setting.evaluations) / lr, ("loss",)
        )

    def over_rate() -> tm.Trajectory:
        problem = tm.teacher_mixture(shares, 0.0, (PLUS, 3.0 * PLUS), OVERLAP)
        return _quiet(
            tm.predict, problem, tm.SGD(lr=("lr", rates)), np.geomspace(1e-5, 2e5, 2 * setting.evaluations), ("loss",)
        )

    def at_the_edge() -> tm.Trajectory:
        # The theory uses the formula of the limit to leave out diverging points, so only simulations can test it.
        let_go = partial(tm.simulate, curves=("Q",), method=tm.theory.Chain(progress=False))
        parts = []
        for rho in EDGE_SHARES:
            mean, square = (PLUS**n * (rho + (1 - rho) * 3.0**n) for n in (1, 2))
            problem, limit = tm.teacher_mixture(rho, 0.0, (PLUS, 3.0 * PLUS), OVERLAP), 2.0 * mean / square
            sgds = [tm.SGD(lr=x * limit) for x in EDGE_RATES]
            found = [_quiet(let_go, problem, sgd, [20.0, 40.0], setting.d, setting.seeds) for sgd in sgds]
            parts.append(tm.stack(found, "over_limit", EDGE_RATES))
        return tm.stack(parts, SHARE, EDGE_SHARES)

    return {
        "ratio": keep("ratio", lambda: over_ratio(LR)),
        "rate": keep("rate", over_rate),
        "slow": keep("slow", lambda: over_ratio(1e-6)),
        "edge": keep("edge", at_the_edge),
    }


def _quiet(function: Any, *given: Any) -> tm.Trajectory:
    """Suppress warnings: grids go beyond the stability limit on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: tm.Trajectory = function(*given)
    return found


@dataclass(frozen=True)
class Analytic:
    """The papers' conditions, written out for the grid of a run: True where "+" wins, or where training diverges."""

    first: xr.DataArray
    final: xr.DataArray
    diverges: xr.DataArray


def analytic(run: tm.Trajectory) -> Analytic:
    """Closed-form winners of centred problems from zero weights, in terms of share, variances, overlap and rate."""
    loss = run["loss"]
    rho = loss.coords[SHARE]
    minus: Any = PLUS * loss.coords[RATIO] if RATIO in loss.dims else xr.DataArray(3.0 * PLUS)
    stored: Any = run.origin.settings["sgd"]
    lr: Any = loss.coords["lr"] if "lr" in loss.dims else xr.DataArray(float(stored["lr"]))
    mean, square = rho * PLUS + (1 - rho) * minus, rho * PLUS**2 + (1 - rho) * minus**2
    root = np.sqrt(PLUS * minus)
    early = rho * PLUS - (1 - rho) * minus + OVERLAP * root * (1 - 2 * rho)
    first = early > lr * np.pi / 4.0 * mean * (PLUS - minus)
    a, b = rho * np.sqrt(PLUS), (1 - rho) * np.sqrt(minus)
    # Half squared errors of the best linear students, whose scores have squared length Q and overlaps R.
    right = [np.sqrt(2.0 / np.pi) * part / mean for part in (a + OVERLAP * b, OVERLAP * a + b)]
    Q = np.sqrt(2.0 / np.pi) * (a * right[0] + b * right[1]) / mean
    best = [
        1.0 + variance * Q - 2.0 * np.sqrt(variance) * np.sqrt(2.0 / np.pi) * one
        for variance, one in zip((PLUS, minus), right, strict=True)
    ]
    noise = lr * (rho * PLUS * best[0] + (1 - rho) * minus * best[1]) / (2.0 * mean - lr * square)
    gap = -((a**2 - b**2) * (PLUS + minus - 2.0 * OVERLAP * root)) / (np.pi * mean**2) + 0.5 * (PLUS - minus) * noise
    return Analytic(first, gap < 0, lr >= 2.0 * mean / square)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The boundaries found on the grids against the analytic conditions."""
    found = []
    for name, words in (("ratio", "representation and variance ratio"), ("rate", "representation and learning rate")):
        run, rule = runs[name], analytic(runs[name])
        stable = ~rule.diverges
        plus = tm.theory.leader_on_grid(run).isel(time=-1) == "+"
        differs = rule.first != rule.final
        crossed = tm.theory.crossing_count(run) > 0
        found += [
            Claim(
                f"Over {words}, the final winner is the one of the analytic condition",
                _share(plus == rule.final, stable),
                "share of grid points",
                1.0,
            ),
            Claim(
                f"Over {words}, losses cross exactly where first and final winner differ",
                _share(crossed == differs, stable),
                "share of grid points",
                1.0,
                f"They cross at {_share(differs, stable):.0%} of the points.",
            ),
        ]
    rate, slow = runs["rate"], runs["slow"]
    empty = rate["loss"].isel(time=-1).isnull().all("group")
    # Below the limit the squared length is constant by then, up to noise; beyond, it grows a thousandfold or more,
    # or is NaN.
    grows = ~(runs["edge"]["Q"].isel(time=1, drop=True) <= 10.0 * runs["edge"]["Q"].isel(time=0, drop=True))
    rho, ratio = slow["loss"].coords[SHARE], slow["loss"].coords[RATIO]
    return (
        *found,
        Claim(
            "Training diverges beyond lr = 2 D / D2 and not below",
            _share(grows == (grows.coords["over_limit"] > 1.0)),
            f"share of simulated students (shares {', '.join(map(str, EDGE_SHARES))}; rates "
            f"{', '.join(map(str, EDGE_RATES))} times the limit) that do so",
            1.0,
            f"{_share(empty):.0%} of the grid is beyond. `learning-rates` measures the limit itself.",
            seeds=grows.sizes["seed"],
            neutral=0.5,  # of students that know no limit
            trials=grows.size,
        ),
        Claim(
            "For small rates the winner is decided by share times root of variance alone",
            _share((tm.theory.leader_on_grid(slow).isel(time=-1) == "+") == (rho > (1 - rho) * np.sqrt(ratio))),
            "share of grid points",
            1.0,
        ),
    )


def _share(holds: xr.DataArray, among: xr.DataArray | None = None) -> float:
    return float(holds.mean() if among is None else holds.where(among).mean())


def pictures(runs: Runs) -> dict[str, Any]:
    """Both diagrams."""

    return {
        "Representation and variance ratio": tm.theory.plot.phase_diagram(runs["ratio"], x=SHARE, y=RATIO),
        "Representation and learning rate": tm.theory.plot.phase_diagram(runs["rate"], x=SHARE, y="lr"),
    }
