"""Bias at the end of training: the findings of Sarao Mannelli et al. (2022), by the theory of `equilibrium`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs, make_now
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import farthest
from tiltmeter_lab.theory.frontier import frontier, trade_off, unbeaten
from tiltmeter_lab.theory.incompatibility import incompatibility
from tiltmeter_lab.theory.trained_sets import trained_sets

#: The one time of such a run: a label, since the end of training has no time.
END = 0.0


def as_run(found: xr.Dataset) -> tm.Trajectory:
    """A Dataset of trained students, as from `equilibrium`, as a trajectory of one time.

    >>> run = as_run(xr.Dataset({"error": ("group", [0.1, 0.2])}, coords={"group": ["+", "-"]}))
    >>> run["error"].dims
    ('time', 'group')
    >>> as_dataset(run)["error"].values.tolist()
    [0.1, 0.2]
    """
    origin: Any = found.attrs.get("origin")
    curves = {str(name): curve.expand_dims(time=[END]) for name, curve in found.data_vars.items()}
    return tm.Trajectory(
        curves, "t", tm.record.Origin("equilibrium") if origin is None else tm.record.Origin.from_json(origin)
    )


def as_dataset(run: tm.Trajectory) -> xr.Dataset:
    """The Dataset that `as_run` was given."""
    found = run.to_dataset().isel(time=0, drop=True)
    return found.assign_attrs(origin=run.origin.to_json())


#: A gap in error that counts as bias.
BIAS = 0.01
#: Overlaps of labelling rules from here on count as similar.
SIMILAR = 0.75
#: Differences below this are rounding.
LEVEL = 1e-6
#: What the claims are read off: trained students by name.
Found: TypeAlias = Mapping[str, xr.Dataset]


TITLE = "Bias of the fully trained model: labelling rules, balance, joint training, reweighting, coupled students"
PAPER = "Sarao Mannelli, Gerace, Rostamzadeh and Saglietti, Bias-inducing geometries (2022)"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """How finely the experiment evaluations; problems and losses are the same in all. `d` and `seeds` are of the
    runs."""

    samples: tuple[float, ...] = (0.5, 2.0, 8.0)
    overlaps: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    shares: tuple[float, ...] = (0.5, 0.7, 0.9)
    weights: tuple[float, ...] = (0.25, 1.0, 4.0, 16.0)
    couplings: tuple[float, ...] = (0.0, 0.1, 1.0, 10.0)
    ridges: tuple[float, ...] = (0.1, 0.3, 1.0)
    ridge: float = 0.3
    criteria: tuple[str, ...] = tuple(
        one.name
        for one in (
            tm.fairness.criteria.StatisticalParity(),
            tm.fairness.criteria.EqualOpportunity(),
            tm.fairness.criteria.WorstGroupError(),
        )
    )
    d: int = 200
    seeds: int = 12


QUICK = Setting()
FULL = Setting(
    samples=tuple(np.geomspace(0.3, 30.0, 11)),
    overlaps=tuple(np.linspace(0.0, 1.0, 13)),
    shares=(0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    weights=tuple(np.geomspace(0.1, 50.0, 19)),
    couplings=(0.0, *np.geomspace(0.01, 30.0, 12)),
    ridges=tuple(np.geomspace(0.03, 3.0, 7)),
    criteria=tuple(one.name for one in tm.fairness.criteria.CRITERIA),
    d=800,
    seeds=48,
)


def example() -> tm.theory.Mixture:
    """Two groups that differ in everything: number, variance, teacher, shift and label imbalance."""
    return tm.teacher_mixture(0.75, 1.0, (0.5, 1.2), 0.6, (0.4, 0.2), (0.2, -0.1))


def run(setting: Setting = QUICK, keep: Keep = make_now) -> Runs:
    """All equilibria that the claims need, each as a run of one time: the end of training."""
    loss, ridge = tm.Logistic(), setting.ridge
    samples = ("samples", list(setting.samples))
    overlap = ("overlap", list(setting.overlaps))
    transfer = tm.teacher_mixture(("rho", list(setting.shares)), 0.5, (1.0, 1.0), overlap)
    ratio = xr.DataArray(list(setting.weights), dims="ratio", coords={"ratio": list(setting.weights)})
    scale = 1.0 / (0.75 + 0.25 * ratio)
    ridges = ("ridge", list(setting.ridges))
    balanced = tm.teacher_mixture(0.5, 1.0, (0.5, 1.5), 0.6, (0.4, 0.1))
    make: dict[str, Callable[[], xr.Dataset]] = {
        "mismatched": lambda: tm.equilibrium(tm.teacher_mixture(0.8, 0.0, (1.0, 1.0), overlap), loss, samples, ridge),
        "identical": lambda: tm.equilibrium(
            tm.teacher_mixture(0.8, 1.0, (0.5, 1.5), 1.0, (0.3, 0.3)), loss, samples, ridge
        ),
        "balanced": lambda: tm.equilibrium(balanced, loss, samples, ridge),
        "control": lambda: tm.equilibrium(tm.teacher_mixture(0.5, 0.0, (1.0, 1.0), overlap), loss, samples, ridge),
        "joint": lambda: tm.equilibrium(transfer, loss, samples, ridge),
        "separate": lambda: tm.equilibrium(transfer, loss, samples, ridge, coupling=0.0),
        "table": lambda: _table(setting),
        "reweighted": lambda: tm.equilibrium(example(), loss, 2.0, ridges, {"+": scale, "-": ratio * scale}),
        "coupled": lambda: tm.equilibrium(example(), loss, 2.0, ridges, coupling=("coupling", list(setting.couplings))),
        "measured": lambda: trained_sets(balanced, setting.samples, ridge, setting.d, setting.seeds),
    }
    return {name: keep(name, partial(_as_run, one)) for name, one in make.items()}


def _as_run(make: Callable[[], xr.Dataset]) -> tm.Trajectory:
    return as_run(make())


def _table(setting: Setting) -> xr.Dataset:
    """What every criterion pays when the loss is reweighted for one, and whether that is noticeable."""
    criteria = tuple(one for one in tm.fairness.criteria.CRITERIA if one.name in setting.criteria)
    found = incompatibility(example(), tm.Logistic(), 2.0, setting.ridge, criteria)
    worse = found.worsened()
    worsened = xr.zeros_like(found.table, dtype=bool)
    for served, others in worse.items():
        worsened.loc[{"reweighted_for": served, "criterion": others}] = True
    return xr.Dataset({"unfairness": found.table, "worsened": worsened})


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The published findings, each with its verdict."""
    found = {name: as_dataset(one) for name, one in runs.items()}
    return (
        _mismatched(found),
        Claim(
            "A model is biased even where both groups have the same labelling rule",
            float(np.abs(found["identical"]["error_gap"]).max()),
            "largest gap in error",
            BIAS,
            "The gap shrinks with samples: to "
            f"{abs(found['identical']['error_gap'].isel(samples=-1).item()):.3f} at the most samples looked at.",
        ),
        Claim(
            "A model is biased even where both groups are equally represented",
            float((np.abs(found["balanced"]["error_gap"]) >= BIAS).mean()),
            f"share of numbers of samples at which errors differ by {BIAS} or more",
            0.5,
            "Groups that also agree in variance and shift show none: at most "
            f"{float(np.abs(found['control']['error_gap']).max()):.1g}.",
        ),
        _joint(found),
        _incompatible(found),
        frontier_claim(found, tm.fairness.criteria.WorstGroupError()),
        frontier_claim(found, tm.fairness.criteria.AccuracyParity()),
        frontier_claim(found, tm.fairness.criteria.StatisticalParity()),
        _finite_size(found),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """Theory and finite-size minimisers; the frontier of joint and coupled training."""

    found = {name: as_dataset(one) for name, one in runs.items()}
    both = {"joint, reweighted": found["reweighted"], "coupled": found["coupled"]}
    return {
        "Equally represented groups, theory and training": tm.theory.plot.equilibrium_sweep(
            found["balanced"], found["measured"]
        ),
        "Error against worst-group error": frontier(both, tm.fairness.criteria.WorstGroupError()),
        "Error against statistical parity": frontier(both, tm.fairness.criteria.StatisticalParity()),
    }


def _finite_size(found: Found) -> Claim:
    """How far the means over training sets lie from the theory, per group and number of samples."""
    error = found["measured"]["error"]
    seeds = error.sizes["seed"]
    d = found["measured"].attrs["origin"]["settings"]["d"]
    # A dimension d is O(1/d) away from the limit, besides the noise.
    distance, scatter = farthest(error, found["balanced"]["error"], 1.0 / d)
    largest = float(abs(error.mean("seed") - found["balanced"]["error"]).max())
    return Claim(
        "The theory describes training sets of finite size",
        distance,
        "largest distance in the error of a group, in units of its standard error + 1/d",
        4.0,
        f"The largest distance is {largest:.4f}.",
        rule="at most",
        error=scatter,
        seeds=seeds,
    )


def _mismatched(found: Found) -> Claim:
    gap = abs(found["mismatched"]["error_gap"].isel(pair=0))
    low, high = gap.isel(overlap=0), gap.sel(overlap=1.0)
    return Claim(
        "The less the labelling rules of the groups agree, the more a model favours the larger group",
        float((low - high).min()),
        "smallest rise of the gap in error from equal to least similar rules",
        BIAS,
    )


def _joint(found: Found) -> Claim:
    """How often the smaller group gains by training together, and where it loses."""
    gain = (
        (found["separate"]["error"] - found["joint"]["error"])
        .sel(group="-")
        .where(found["joint"]["rho"] > 0.5, drop=True)
    )
    helped = gain > LEVEL
    rates = helped.mean(("rho", "samples"))
    by_overlap = ", ".join(f"{float(share):.2f} at {float(share.overlap):g}" for share in rates)
    similar = rates > 0.5
    similar_rules = rates["overlap"].values[rates["overlap"].values >= SIMILAR]
    from_overlap = f"{float(similar['overlap'].where(similar).min()):.3g}" if bool(similar.any()) else "none"
    lost = float((~helped).where(helped["overlap"] < 1.0).sum("samples").mean())
    where = f"It helps in most problems for overlaps of the rules from {from_overlap} on"
    where += "; below, a group loses by sharing a model, the more so the more data it has." if lost > 0 else "."
    return Claim(
        "Joint training helps the smaller group where the labelling rules are similar",
        float(rates.sel(overlap=similar_rules).mean()),
        f"share of problems with an overlap of at least {SIMILAR:g} in which it does",
        0.5,
        f"By overlap: {by_overlap}. {where}",
        error=0.0,
        safe=False,
    )


def _incompatible(found: Found) -> Claim:
    table = found["table"]["worsened"]
    served = [str(name) for name in table.coords["reweighted_for"].values if name != "nothing"]
    names = table.coords["criterion"].values.tolist()
    worse = {
        name: [other for other in names if bool(table.sel(reweighted_for=name, criterion=other))] for name in served
    }
    share = float(np.mean([bool(names) for names in worse.values()]))
    fair = {name: [other for other in others if other != "population error"] for name, others in worse.items()}
    paid = [name for name, others in fair.items() if others]
    free = [name for name, others in fair.items() if not others]
    where = f"Another criterion of fairness pays for {', '.join(paid)}." if paid else ""
    if free:
        where = f"{where} Only accuracy pays for {', '.join(free)}.".strip()
    return Claim(
        "Reweighting the loss for one criterion worsens another, or accuracy",
        share,
        "share of criteria whose weights worsen something else",
        1.0,
        where,
    )


def frontier_claim(found: Found, criterion: tm.fairness.criteria.Criterion) -> Claim:
    """How much of the frontier of joint training, over weights and ridges, lies behind that of coupled students."""
    joint, coupled = (unbeaten(trade_off(one, criterion)) for one in (found["reweighted"], found["coupled"]))
    beaten = np.array([(coupled <= point + LEVEL).all(axis=1).any() for point in joint])
    where = ""
    if not beaten.all():
        where = (
            f"Joint training gets {criterion.name} down to {joint[:, 0].min():.3f}, coupling to "
            f"{coupled[:, 0].min():.3f}; their lowest errors are {joint[:, 1].min():.3f} and {coupled[:, 1].min():.3f}."
        )
    return Claim(
        f"Students coupled across groups beat joint training on the frontier of error and {criterion.name}",
        float(beaten.mean()),
        "share of the best joint trainings that some coupling beats in both",
        0.5,
        where,
        # Worst-group error is the one that our own explorations found at every fineness.
        safe=isinstance(criterion, tm.fairness.criteria.WorstGroupError),
    )
