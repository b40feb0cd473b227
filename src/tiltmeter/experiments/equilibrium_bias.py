"""Bias at the end of training: the findings of Sarao Mannelli et al. (2022), by the theory of `equilibrium`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.experiments.claim import Claim
from tiltmeter.losses import Logistic
from tiltmeter.mixture import Mixture
from tiltmeter.observables.criteria import (
    CRITERIA,
    AccuracyParity,
    Criterion,
    EqualOpportunity,
    StatisticalParity,
    WorstGroupError,
)
from tiltmeter.observables.frontier import trade_off, unbeaten
from tiltmeter.theory.equilibrium import coupled_equilibrium, equilibrium
from tiltmeter.theory.incompatibility import Incompatibility, incompatibility
from tiltmeter.two_groups import teacher_mixture

#: A gap in error that counts as bias.
BIAS = 0.01
#: Differences below this are rounding.
LEVEL = 1e-6


@dataclass(frozen=True)
class Setting:
    """How finely the experiment looks; problems and losses are the same in all."""

    samples: tuple[float, ...] = (0.5, 2.0, 8.0)
    overlaps: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    shares: tuple[float, ...] = (0.5, 0.7, 0.9)
    weights: tuple[float, ...] = (0.25, 1.0, 4.0, 16.0)
    couplings: tuple[float, ...] = (0.0, 0.1, 1.0, 10.0)
    ridges: tuple[float, ...] = (0.1, 0.3, 1.0)
    ridge: float = 0.3
    criteria: tuple[Criterion, ...] = (StatisticalParity(), EqualOpportunity(), WorstGroupError())


QUICK = Setting()
FULL = Setting(
    samples=tuple(np.geomspace(0.3, 30.0, 11)),
    overlaps=tuple(np.linspace(0.0, 1.0, 13)),
    shares=(0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    weights=tuple(np.geomspace(0.1, 50.0, 19)),
    couplings=(0.0, *np.geomspace(0.01, 30.0, 12)),
    ridges=tuple(np.geomspace(0.03, 3.0, 7)),
    criteria=CRITERIA,
)


@dataclass(frozen=True, eq=False)
class Found:
    """Everything the claims are read off."""

    mismatched: xr.Dataset
    identical: xr.Dataset
    balanced: xr.Dataset
    control: xr.Dataset
    joint: xr.Dataset
    separate: xr.Dataset
    table: Incompatibility
    reweighted: xr.Dataset
    coupled: xr.Dataset


def example() -> Mixture:
    """Two groups that differ in everything: number, variance, teacher, shift and label imbalance."""
    return teacher_mixture(0.75, 1.0, (0.5, 1.2), 0.6, (0.4, 0.2), (0.2, -0.1))


def run(setting: Setting = QUICK) -> Found:
    """All equilibria that the claims need."""
    loss, ridge = Logistic(), setting.ridge
    samples = ("samples", list(setting.samples))
    overlap = ("overlap", list(setting.overlaps))
    transfer = teacher_mixture(("rho", list(setting.shares)), 0.5, (1.0, 1.0), overlap)
    ratio = xr.DataArray(list(setting.weights), dims="ratio", coords={"ratio": list(setting.weights)})
    scale = 1.0 / (0.75 + 0.25 * ratio)
    ridges = ("ridge", list(setting.ridges))
    return Found(
        mismatched=equilibrium(teacher_mixture(0.8, 0.0, (1.0, 1.0), overlap), loss, samples, ridge),
        identical=equilibrium(teacher_mixture(0.8, 1.0, (0.5, 1.5), 1.0, (0.3, 0.3)), loss, samples, ridge),
        balanced=equilibrium(teacher_mixture(0.5, 1.0, (0.5, 1.5), 0.6, (0.4, 0.1)), loss, samples, ridge),
        control=equilibrium(teacher_mixture(0.5, 0.0, (1.0, 1.0), overlap), loss, samples, ridge),
        joint=equilibrium(transfer, loss, samples, ridge),
        separate=coupled_equilibrium(transfer, loss, samples, ridge, coupling=0.0),
        table=incompatibility(example(), loss, 2.0, ridge, setting.criteria),
        reweighted=equilibrium(example(), loss, 2.0, ridges, {"+": scale, "-": ratio * scale}),
        coupled=coupled_equilibrium(example(), loss, 2.0, ridges, ("coupling", list(setting.couplings))),
    )


def claims(found: Found) -> tuple[Claim, ...]:
    """The published findings, each with its verdict."""
    return (
        _mismatched(found),
        Claim(
            "A model is biased even where both groups have the same labelling rule",
            float(np.abs(found.identical["error_gap"]).max()),
            "largest gap in error",
            BIAS,
            "The gap shrinks with samples: to "
            f"{abs(found.identical['error_gap'].isel(samples=-1).item()):.3f} at the most samples looked at.",
        ),
        Claim(
            "A model is biased even where both groups are equally represented",
            float((np.abs(found.balanced["error_gap"]) >= BIAS).mean()),
            f"share of numbers of samples at which errors differ by {BIAS} or more",
            0.5,
            "Groups that also agree in variance and shift show none: at most "
            f"{float(np.abs(found.control['error_gap']).max()):.1g}.",
        ),
        _joint(found),
        _incompatible(found),
        _frontier(found, WorstGroupError()),
        _frontier(found, AccuracyParity()),
        _frontier(found, StatisticalParity()),
    )


def _mismatched(found: Found) -> Claim:
    gap = abs(found.mismatched["error_gap"].isel(pair=0))
    low, high = gap.isel(overlap=0), gap.sel(overlap=1.0)
    return Claim(
        "The less the labelling rules of the groups agree, the more a model favours the larger group",
        float((low - high).min()),
        "smallest rise of the gap in error from equal to least similar rules",
        BIAS,
    )


def _joint(found: Found) -> Claim:
    """How often the smaller group gains by training together, and where it loses."""
    gain = (found.separate["error"] - found.joint["error"]).sel(group="-").where(found.joint["rho"] > 0.5, drop=True)
    helped = gain > LEVEL
    similar = helped.mean(("rho", "samples")) > 0.5
    from_overlap = f"{float(similar['overlap'].where(similar).min()):.3g}" if bool(similar.any()) else "none"
    lost = float((~helped).where(helped["overlap"] < 1.0).sum("samples").mean())
    where = f"It helps in most problems for overlaps of the rules from {from_overlap} on"
    where += "; below, a group loses by sharing a model, the more so the more data it has." if lost > 0 else "."
    return Claim(
        "Joint training usually helps the smaller group",
        float(helped.mean()),
        "share of problems in which it does, over overlaps from 0 to 1",
        0.5,
        where,
    )


def _incompatible(found: Found) -> Claim:
    worse = found.table.worsened()
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


def _frontier(found: Found, criterion: Criterion) -> Claim:
    """How much of the frontier of joint training, over weights and ridges, lies behind that of coupled students."""
    joint, coupled = (unbeaten(trade_off(one, criterion)) for one in (found.reweighted, found.coupled))
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
    )
