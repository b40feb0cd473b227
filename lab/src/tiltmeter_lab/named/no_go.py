"""No-go: beyond an overlap of the teachers no weighting whatever removes the first gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.theory.group_pulls import first_gap

TITLE = "Some weighting removes the first gap if and only if the teachers overlap less than sqrt(D_min / D_max)"
PAPER = "Theory of this package, on the model of Jain, Nobahari, Baratin and Sarao Mannelli (2024)"
NEEDS: tuple[str, ...] = ()
#: Variances of the two groups, and the edge.
VARIANCE = (0.5, 1.0)
EDGE = (VARIANCE[0] / VARIANCE[1]) ** 0.5


@dataclass(frozen=True)
class Setting:
    """Overlaps and shares at which the first speeds are compared, and the simulation."""

    overlaps: int = 41
    shares: int = 101
    d: int = 2000
    seeds: int = 64


QUICK, FULL = Setting(), Setting(overlaps=201, shares=1001, d=10_000, seeds=256)


def run(setting: Setting, keep: Keep) -> Runs:
    """First speeds over overlaps and over how often groups are drawn; the strongest intervention that there is,
    simulated."""
    overlaps = np.linspace(0.0, 0.98, setting.overlaps)

    def speeds() -> tm.Trajectory:
        problem = tm.teacher_mixture(0.5, 0.0, VARIANCE, ("overlap", overlaps))
        share = xr.DataArray(np.linspace(1e-3, 1 - 1e-3, setting.shares), dims="share")
        share = share.assign_coords(share=share.values)
        sgd = tm.SGD(lr=1e-4, proportions={"+": share, "-": 1.0 - share})
        return tm.predict(problem, sgd, [1e-3], ("loss",))

    def answers() -> tm.Trajectory:
        given = [first_gap(tm.teacher_mixture(0.7, 0.0, VARIANCE, T), tm.SGD(lr=0.1)).removable for T in overlaps]
        coords = {"time": [0.0], "overlap": overlaps}
        curve = xr.DataArray(np.array([given], dtype=float), dims=("time", "overlap"), coords=coords)
        return tm.Trajectory(
            {"removable": curve}, "t", tm.predict(tm.teacher_mixture(), tm.SGD(lr=0.1), [0.0], ("loss",)).origin
        )

    law = tm.interventions.GroupDRO(200.0, by="draws", memory=50.0, every=max(1, setting.d // 200))
    at = np.unique(np.rint(np.linspace(0.5, 4.0, 8) * setting.d)) / setting.d
    found = {"speeds": keep("speeds", speeds), "answers": keep("answers", answers)}
    for name, T in (("beyond the edge", 0.9), ("below the edge", 0.3)):
        problem = tm.teacher_mixture(0.5, 0.0, VARIANCE, T)
        found[name] = keep(
            name,
            lambda problem=problem: tm.simulate(  # type: ignore[misc]
                problem,
                tm.SGD(lr=0.1, interventions=(law,)),
                at,
                setting.d,
                setting.seeds,
                curves=("loss",),
                method=tm.theory.Chain(progress=False),
            ),
        )
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The linear programme agrees with the rule and with a scan over shares; a strong intervention fails beyond the
    edge."""
    answers = runs["answers"]["removable"].isel(time=0)
    overlaps = answers.coords["overlap"].values
    rule = overlaps < EDGE
    loss = runs["speeds"]["loss"].isel(time=0)
    gap = loss.sel(group="+") - loss.sel(group="-")
    both = (gap.max("share") > 0) & (gap.min("share") < 0)
    # At the edge itself the two shares that change the sign lie ever nearer to 0 or 1.
    clear = np.abs(overlaps - EDGE) > 0.03
    first = {}
    for name in ("beyond the edge", "below the edge"):
        loss = runs[name]["loss"].isel(time=slice(0, 3))
        one = (loss.sel(group="+") - loss.sel(group="-")).mean("time")
        first[name] = float(one.mean()), float(one.std("seed", ddof=1) / np.sqrt(one.sizes["seed"])), one.sizes["seed"]
    beyond, below = first["beyond the edge"], first["below the edge"]
    return (
        Claim(
            "The linear programme gives the rule",
            float((answers.values.astype(bool) == rule).mean()),
            f"share of {len(overlaps)} overlaps, edge at {EDGE:.4f}",
            1.0,
        ),
        Claim(
            "A scan over all ways to draw two groups finds the same",
            float((both.values == rule)[clear].mean()),
            "share of overlaps, those within 0.03 of the edge left out",
            1.0,
        ),
        Claim(
            "Beyond the edge a strong group DRO cannot hold the losses together at first",
            beyond[0] / beyond[1],
            "gap in simulated students up to t = 1.5, in standard errors",
            3.0,
            f"Gap {beyond[0]:.4f} ± {beyond[1]:.4f} at overlap 0.9, {below[0]:.4f} ± {below[1]:.4f} at 0.3.",
            seeds=beyond[2],
            safe=False,
            error=1.0,
            neutral=0.0,
        ),
        Claim(
            "Below the edge it does better",
            beyond[0] - abs(below[0]),
            "difference of the absolute gaps",
            0.0,
            error=float(np.hypot(beyond[1], below[1])),
            seeds=beyond[2],
            safe=False,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """The first gap over how often + is drawn, for some overlaps."""
    from tiltmeter_lab.shared.pictures import lines

    loss = runs["speeds"]["loss"].isel(time=0)
    gap = loss.sel(group="+") - loss.sel(group="-")
    rows = [
        (float(s), float(v) * 1e6, f"{float(T):.2f}")
        for T in gap.coords["overlap"].values[:: max(1, len(gap.coords["overlap"]) // 5)]
        for s, v in zip(gap.coords["share"].values, gap.sel(overlap=T).values, strict=True)
    ]
    return {"First gap": lines(rows, "share of +", "first gap, times a million", "overlap of teachers")}
