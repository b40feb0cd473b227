"""Spurious correlation: the shift of the groups is learnt first, as a shortcut, and then unlearnt."""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, exp, pi, sqrt
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import farthest, jackknife_error

TITLE = "A shift that half predicts the label is learnt first, then fades"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), section 4.1"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Size of the simulation, and the number of times."""

    d: int = 1000
    seeds: int = 16
    evaluations: int = 30


QUICK = Setting()
FULL = Setting(d=4000, seeds=64, evaluations=60)


def run(setting: Setting, keep: Keep) -> Runs:
    """The case in theory and simulation, and a problem whose shortcut is part of the rule, so that it must stay."""
    problem, sgd, times = tm.theory.cases.spurious_correlation()
    chosen = ("M", "R", "loss_gap")
    evaluations = np.unique(np.rint(np.geomspace(0.1, times[-1], setting.evaluations) * setting.d)) / setting.d
    # Here the group decides the label, so the shift is not a shortcut but the best predictor.
    honest = tm.teacher_mixture(0.5, 1.0, (0.5, 0.5), 1.0, (0.0, 0.0), (0.3, -0.3))
    return {
        "theory": keep("theory", lambda: tm.predict(problem, sgd, times, chosen)),
        "simulation": keep(
            "simulation",
            lambda: tm.simulate(
                problem,
                sgd,
                evaluations,
                setting.d,
                setting.seeds,
                curves=chosen,
                method=tm.theory.Chain(progress=False),
            ),
        ),
        "group decides": keep("group decides", lambda: tm.predict(honest, sgd, times, ("M", "R"))),
    }


def spurious_weight(run: tm.Trajectory) -> xr.DataArray:
    """The student's weight on the shift beyond what the teacher needs: s in W = p W_T + s v + noise."""
    problem = tm.theory.Mixture.from_json(run.origin.problem)  # type: ignore[arg-type]
    v, a = (float(problem.gram.sel(vector="mean +", other=other)) for other in ("mean +", "teacher +"))
    along, right = run["M"].sel(group="+", drop=True), run["R"].sel(group="+", drop=True)
    weight = (along - a * right) / (v - a**2)
    return weight.assign_attrs(long_name="weight on the shift beyond the teacher's", better="neither")


def half_time(curve: xr.DataArray) -> float:
    """Return when a rising curve first reaches half of its largest value, by interpolation.

    >>> half_time(xr.DataArray([0.0, 0.4, 0.6, 1.0], dims="time", coords={"time": [1.0, 2.0, 3.0, 4.0]}))
    2.5
    """
    half = 0.5 * float(curve.max())
    after = max(1, int((curve >= half).argmax("time")))
    around = curve.isel(time=[after - 1, after])
    return float(np.interp(half, around.values, around.coords["time"].values))


def limit() -> float:
    """Where the spurious weight ends, by formula: (erf(a / sqrt 2) - g a) / (D + v) with a = A / sqrt D."""
    problem = tm.theory.cases.spurious_correlation().problem
    v, overlap = (float(problem.gram.sel(vector="mean +", other=other)) for other in ("mean +", "teacher +"))
    variance = float(problem.variance.sel(group="+"))
    a = overlap / sqrt(variance)
    return (erf(a / sqrt(2.0)) - sqrt(2.0 / pi) * exp(-(a**2) / 2.0) * a) / (variance + v)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """It peaks between the two time scales, decays to the known limit, and the simulation does the same."""
    weight, measured = spurious_weight(runs["theory"]), spurious_weight(runs["simulation"])
    stays = spurious_weight(runs["group decides"])
    problem, sgd, _ = tm.theory.cases.spurious_correlation()
    scales = tm.timescales(problem, sgd)
    rule = runs["simulation"]["R"].sel(group="+", drop=True)
    peak, at = float(weight.max()), float(weight.idxmax("time"))
    seeds, d = measured.sizes["seed"], _dimension(runs["simulation"])
    exact = spurious_weight(tm.predict(problem, tm.SGD(lr=sgd.lr), measured.coords["time"].values, ("M", "R")))
    distance, error = farthest(measured, exact, 1.0 / d)

    def later(places: np.ndarray) -> float:
        """How many times later half of the rule is learnt than half of the shift's peak, by the mean of these seeds."""
        slow, fast = (half_time(curve.isel(seed=places).mean("seed")) for curve in (rule, measured))
        return slow / fast

    return (
        Claim(
            "The direction of the shift is learnt faster than the rule",
            later(np.arange(seeds)),
            "time until half of the rule is learnt, over that of half of the shift's peak, in simulated students",
            1.5,
            f"Time scales by formula: {float(scales['M'].max()):.3g} and {float(scales['R']):.3g}.",
            error=float(jackknife_error(later, seeds)),
            seeds=seeds,
            neutral=1.0,
        ),
        Claim(
            "The spurious weight rises, peaks and fades",
            peak / float(weight.isel(time=-1)),
            "peak over final weight",
            5.0,
            f"It peaks at {peak:.4f}, t = {at:.1f}, and ends at {float(weight.isel(time=-1)):.4f}.",
        ),
        Claim(
            "It decays to the known limit",
            abs(float(weight.isel(time=-1)) / limit() - 1.0),
            "relative distance from the formula",
            1e-3,
            f"The limit {limit():.4f} is small, not zero: the fading is complete to leading order only.",
            rule="at most",
        ),
        Claim(
            "Simulated students do the same",
            distance,
            "largest distance of the mean from the theory, in units of its standard error + 1/d",
            4.0,
            rule="at most",
            error=error,
            seeds=seeds,
        ),
        Claim(
            "By symmetry no group is favoured meanwhile (control)",
            float(abs(runs["theory"]["loss_gap"]).max()),
            "largest gap in loss",
            1e-9,
            rule="at most",
        ),
        Claim(
            "Where the group itself decides the label, the weight on the shift does not fade (control)",
            float(stays.isel(time=-1) / stays.max()),
            "final over largest weight",
            0.99,
        ),
    )


def _dimension(run: tm.Trajectory) -> int:
    return int(run.origin.settings["d"])  # type: ignore[arg-type]


def pictures(runs: Runs) -> dict[str, Any]:
    """The weight on the shift over time, theory and simulation."""

    problem, sgd, _ = tm.theory.cases.spurious_correlation()
    drawn = [one.replace({"spurious_weight": spurious_weight(one)}) for one in (runs["theory"], runs["simulation"])]
    chart = tm.plot.curves(*drawn, curve="spurious_weight", timescales=tm.timescales(problem, sgd))
    return {"Weight on the shift beyond what the teacher needs": chart}
