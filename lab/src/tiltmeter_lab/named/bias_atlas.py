"""Bias atlas: which part of a training makes which simplicity bias."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.atlas_biases import BIASES
from tiltmeter_lab.shared.atlas_cell import MOMENTS, bias_cell
from tiltmeter_lab.shared.atlas_study import study_run, with_results
from tiltmeter_lab.shared.second_route import largest_by_forest

TITLE = "Which simplicity bias comes from the data, which from the architecture, which from the optimiser"
PAPER = "A question of the project page Quantifying modern inductive biases; no published answer"
NEEDS: tuple[str, ...] = ()
FACTORS = ("data", "activation", "shape", "scale", "optimiser", "lr")
GROUPS = {"data": ("data",), "architecture": ("activation", "shape", "scale"), "optimiser": ("optimiser", "lr")}
#: With eight inputs, one hidden layer of 70 units has 701 parameters and three of 16 have 705.
WIDE, NARROW, SAME_INPUTS = [1, 70], [3, 16], ["uniform", "dense half", "normal"]
#: A bias that shows everywhere is above its null in so many of the settings; one that shows at a moment, in so many of
#: them at that moment. Fixed before the runs, as all thresholds here.
EVERYWHERE, SHOWS = 0.95, 0.75
#: Of the cells of a study: to be changed when the function of a cell changes its meaning.
VERSION = "2"


@dataclass(frozen=True)
class Setting:
    """Every network is trained on three tasks; `fraction` of the grid, all seeds of a cell together."""

    data: tuple[str, ...] = ("uniform", "dense half", "normal", "digits")
    activations: tuple[str, ...] = ("relu", "tanh", "identity")
    shapes: tuple[tuple[int, int], ...] = ((1, 70), (3, 16), (3, 70))
    scales: tuple[float, ...] = (0.5, 1.5)
    optimisers: tuple[str, ...] = ("SGD", "momentum", "AdamW")
    lrs: tuple[float, ...] = (0.03, 0.1)
    steps: int = 200
    points: int = 128
    fraction: float = 1 / 6
    seeds: int = 5


QUICK = Setting()
FULL = Setting(fraction=1 / 3)


def run(setting: Setting, keep: Keep) -> Runs:
    """One study; its table is a curve over the moments of training."""
    factors = {
        "data": setting.data,
        "activation": setting.activations,
        "shape": [list(shape) for shape in setting.shapes],
        "scale": setting.scales,
        "optimiser": setting.optimisers,
        "lr": setting.lrs,
        "steps": [setting.steps],
        "points": [setting.points],
    }
    return {"atlas": study_run(keep, "atlas", bias_cell, factors, setting.seeds, setting.fraction, VERSION)}


def table_of(runs: Runs, bias: str, moment: str) -> xr.DataArray:
    """One bias at one moment, over the factors and seeds."""
    curve = runs["atlas"]["simplicity_bias"].sel(bias=bias, time=MOMENTS.index(moment), drop=True)
    return curve.squeeze(("steps", "points", "seeds"), drop=True).rename(bias)


def shares_of(runs: Runs, bias: str, moment: str) -> lab.Shares | None:
    """None where too few runs have the number to explain anything."""
    array = with_results(table_of(runs, bias, moment), FACTORS)
    try:
        return lab.shares(array, draws=200, permutations=0, shared_seeds=True)
    except ValueError:
        return None


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Sources of each bias, the loss clock, equal numbers of parameters, and what moves together."""
    seeds = len(runs["atlas"].origin.seeds)
    ends = {bias: found for bias in BIASES if (found := shares_of(runs, bias, "end")) is not None}
    matched = {bias: found for bias in BIASES if (found := shares_of(runs, bias, "matched loss")) is not None}
    return (
        *(_shows(runs, bias, seeds) for bias in BIASES),
        _architecture(ends, seeds),
        _speed(ends, matched, seeds),
        _same_parameters(runs, seeds),
        _together(runs, seeds),
        _second_route(runs, ends, seeds),
    )


def _shows(runs: Runs, bias: str, seeds: int) -> Claim:
    """Whether a bias that was shown in one setting is there in all of them."""
    means = table_of(runs, bias, "end").mean("seed").values.ravel()
    means = means[np.isfinite(means)]
    share = float((means > 0).mean()) if len(means) else np.nan
    return Claim(
        f"The bias of {bias} shows in every setting",
        share,
        f"share of {len(means)} settings in which its number is above 0 at the end",
        EVERYWHERE,
        f"Its median is {np.median(means):.2f}." if len(means) else "",
        seeds=seeds,
        safe=False,
        trials=len(means),
    )


def _architecture(ends: dict[str, lab.Shares], seeds: int) -> Claim:
    more, told = 0, []
    for bias, found in ends.items():
        data, architecture, *_ = found.grouped(GROUPS)
        more += architecture.share > data.share
        told.append(f"{bias} {architecture.share:.0%} against {data.share:.0%}")
    return Claim(
        "The architecture explains more of a simplicity bias than the data",
        more / len(ends) if ends else np.nan,
        f"share of {len(ends)} biases for which it does, at the end of training",
        0.5,
        f"Architecture against data: {'; '.join(told)}.",
        seeds=seeds,
        safe=False,
    )


def _speed(ends: dict[str, lab.Shares], matched: dict[str, lab.Shares], seeds: int) -> Claim:
    both = [bias for bias in ends if bias in matched]
    falls = [_share(ends[bias], "optimiser") - _share(matched[bias], "optimiser") for bias in both]
    told = "; ".join(
        f"{bias} {_share(ends[bias], 'optimiser'):.0%} and {_share(matched[bias], 'optimiser'):.0%}" for bias in both
    )
    return Claim(
        "Part of the optimiser's bias is only its speed: its share is smaller at matched loss than at matched steps",
        float(np.mean(falls)) if falls else np.nan,
        f"mean fall of its share over {len(both)} biases",
        0.0,
        f"At matched steps and at matched loss: {told}.",
        error=float(np.std(falls, ddof=1) / np.sqrt(len(falls))) if len(falls) > 1 else None,
        seeds=seeds,
        safe=False,
    )


def _share(found: lab.Shares, group: str) -> float:
    return next(row.share for row in found.grouped(GROUPS) if row.term == group)


def _same_parameters(runs: Runs, seeds: int) -> Claim:
    """Settings of one shape against those of the other, on tasks with eight inputs."""
    differ, told = [], []
    for bias, (task, _) in BIASES.items():
        table = table_of(runs, bias, "end")
        means = table.sel(data=[name for name in SAME_INPUTS if name in table["data"].values]).mean("seed")
        if task == "waves":  # one input: the wide network has fewer parameters there
            continue
        wide, narrow = (means.sel(shape=str(shape).replace(" ", "")).values.ravel() for shape in (WIDE, NARROW))
        wide, narrow = wide[np.isfinite(wide)], narrow[np.isfinite(narrow)]
        if min(len(wide), len(narrow)) > 2:
            gap = narrow.mean() - wide.mean()
            ratio = abs(gap) / np.sqrt(wide.var(ddof=1) / len(wide) + narrow.var(ddof=1) / len(narrow) + 1e-300)
            differ.append(ratio > 3)
            told.append(f"{bias} {gap:+.2f} ({ratio:.1f} standard errors)")
    return Claim(
        "With as many parameters, deep narrow networks have the biases of wide shallow ones",
        float(np.mean(differ)) if differ else np.nan,
        f"share of {len(differ)} biases that differ by more than three standard errors over settings",
        0.0,
        f"Deep narrow less wide shallow: {'; '.join(told)}.",
        rule="at most",
        seeds=seeds,
        safe=False,
    )


def correlations(runs: Runs) -> dict[tuple[str, str], float]:
    """Rank correlation over settings of every pair of biases at the end."""
    from scipy.stats import spearmanr

    means = {bias: table_of(runs, bias, "end").mean("seed").values.ravel() for bias in BIASES}
    found = {}
    for one, two in combinations(BIASES, 2):
        both = np.isfinite(means[one]) & np.isfinite(means[two])
        if both.sum() > 4 and means[one][both].std() > 0 and means[two][both].std() > 0:
            found[one, two] = float(spearmanr(means[one][both], means[two][both]).statistic)
    return found


def _together(runs: Runs, seeds: int) -> Claim:
    found = correlations(runs)
    ordered = sorted(found, key=lambda pair: -abs(found[pair]))[:3]
    told = "; ".join(f"{one} and {two} {found[one, two]:+.2f}" for one, two in ordered)
    return Claim(
        "Simplicity biases are one thing: a setting with more of one has more of the others",
        float(np.median(list(found.values()))) if found else np.nan,
        f"median rank correlation over settings of {len(found)} pairs of biases",
        0.5,
        f"The strongest: {told}.",
        seeds=seeds,
        safe=False,
    )


def _second_route(runs: Runs, ends: dict[str, lab.Shares], seeds: int) -> Claim:
    """The factor that matters most, found without linear contrasts."""
    told, same = [], []
    for bias, found in ends.items():
        factors = [row for row in found.rows if np.isfinite(row.even)]
        first = max(factors, key=lambda row: row.total).term
        other = largest_by_forest(with_results(table_of(runs, bias, "end"), FACTORS))
        same.append(first == other)
        if first != other:
            told.append(f"{bias}: {first}, {other}")
    return Claim(
        "A random forest names the same factor as the largest",
        float(np.mean(same)) if same else np.nan,
        f"share of {len(same)} biases for which the factor of largest total share also has the largest importance",
        0.7,
        f"Not so: {'; '.join(told)}." if told else "",
        seeds=seeds,
        safe=False,
    )


def tables(runs: Runs) -> dict[str, tm.results.page.Table]:
    """Shares by group at two clocks; when every bias shows and in which space."""
    rows = []
    for bias in BIASES:
        for moment in ("end", "matched loss"):
            found = shares_of(runs, bias, moment)
            if found is not None:
                told = [f"{row.share:.0%} ({row.low:.0%} to {row.high:.0%})" for row in found.grouped(GROUPS)]
                rows.append((bias, moment, *told))
    when = [(bias, space, *shown(runs, bias)) for bias, (_, space) in BIASES.items()]
    pairs = correlations(runs)
    pairs |= {(two, one): value for (one, two), value in pairs.items()}
    together = [(one, *(f"{pairs[one, two]:+.2f}" if (one, two) in pairs else "" for two in BIASES)) for one in BIASES]
    return {
        "Share of variance of each simplicity bias (90 % intervals)": tm.results.page.Table(
            ("bias", "read at", *GROUPS, "rest", "chance"), tuple(rows)
        ),
        "When each bias shows, and in which space: median over settings (share of them above 0)": tm.results.page.Table(
            ("bias", "space", *MOMENTS, f"first above 0 in {SHOWS:.0%} of settings"), tuple(when)
        ),
        "Which biases move together: rank correlation over settings, at the end": tm.results.page.Table(
            ("bias", *BIASES), tuple(together)
        ),
    }


def shown(runs: Runs, bias: str) -> tuple[str, ...]:
    """Median over settings and share of settings above 0 at every moment; the first moment at which it shows."""
    told, first = [], "never"
    for moment in MOMENTS:
        means = table_of(runs, bias, moment).mean("seed").values.ravel()
        means = means[np.isfinite(means)]
        if not len(means):
            told.append("-")
            continue
        above = float((means > 0).mean())
        told.append(f"{np.median(means):.2f} ({above:.0%})")
        if first == "never" and above >= SHOWS:
            first = moment
    return (*told, first)


def pictures(runs: Runs) -> dict[str, Any]:
    """What explains each bias, at the end and at matched loss."""
    drawn = {
        "Use of the shortcut at the end of training": lab.plot.cell_means(
            table_of(runs, "shortcut", "end"), x="optimiser", colour="activation"
        )
    }
    for moment in ("end", "matched loss"):
        found = [one for bias in BIASES if (one := shares_of(runs, bias, moment)) is not None]
        if found:
            by_part = [one.by_groups(GROUPS, luck="chance") for one in found]
            title = f"Which part of a training makes which simplicity bias, {moment}"
            drawn[title] = lab.plot.variance_shares(by_part, (*GROUPS, "rest", "chance"))
            drawn[f"What explains each simplicity bias, {moment}"] = lab.plot.variance_shares(found)
    return drawn
