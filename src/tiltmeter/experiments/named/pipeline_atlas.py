"""Pipeline atlas: of the group bias that a training ends with, how much each part of the pipeline makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter import plot
from tiltmeter.analysis.variance.shares import Shares, shares
from tiltmeter.data.public.presence import is_present
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.shared.atlas_study import study_run, with_results
from tiltmeter.experiments.shared.pipeline_cell import PRUNING, RESPONSES, pipeline_cell
from tiltmeter.experiments.shared.second_route import largest_by_forest
from tiltmeter.report.page import Table

TITLE = "Of the group bias that a training ends with, how much comes from each part of the pipeline"
PAPER = (
    "A question of Bell and Sagun (2023) and others; single claims of Sagawa et al. (2020), Francazi et al. (2023), "
    "Ganesh et al. (2023), Iofinova et al. (2023), Jain et al. (2024)"
)
NEEDS: tuple[str, ...] = ()
DATA, ARCHITECTURE = ("share", "variance", "noise"), ("depth", "width", "activation", "scale")
OPTIMISER, COMPRESSION = ("optimiser", "lr", "decay", "stop"), ("pruning",)
FACTORS = (*DATA, *ARCHITECTURE, *OPTIMISER, *COMPRESSION)
GROUPS = {"data": DATA, "architecture": ARCHITECTURE, "optimiser": OPTIMISER, "compression": COMPRESSION}
SHOWN = ("final_gap", "gap_area", "worst_loss", "crossings")


@dataclass(frozen=True)
class Setting:
    """Two levels of every factor, four of pruning; `fraction` of that grid, all seeds of a cell together."""

    steps: int = 200
    fraction: float = 1 / 48
    orders: int = 6
    real_fraction: float = 0.5
    seeds: int = 3


QUICK = Setting()
FULL = Setting(steps=1000, fraction=1 / 8, orders=20, real_fraction=1.0, seeds=10)

LEVELS: dict[str, list[Any]] = {
    "data": ["mixture"],
    "share": [0.5, 0.8],
    "variance": [1, 4],
    "noise": [0.0, 0.2],
    "depth": [1, 3],
    "width": [16, 128],
    "activation": ["relu", "tanh"],
    "scale": [0.5, 1.5],
    "optimiser": ["SGD", "AdamW"],
    "lr": [0.03, 0.1],
    "decay": [0.0, 0.03],
    "stop": ["end", "best look"],
    "pruning": list(PRUNING),
    "order": [None],
}
#: The setting around which one thing at a time is changed, and the middle of the road for real data.
PLAIN: dict[str, list[Any]] = {name: [values[0]] for name, values in LEVELS.items()}
BASE = {**PLAIN, "share": [0.8], "variance": [4], "width": [128], "scale": [1.0]}


def run(setting: Setting, keep: Keep) -> Runs:
    """The mixture over all factors; orders and initial weights crossed; digits and, where it is present, Adult."""
    steps: dict[str, list[Any]] = {"steps": [setting.steps]}
    digits = {**BASE, "data": ["digits"], "share": [0.5, 0.9], "variance": [1, 6], "width": [16, 128]}
    digits = {**digits, "optimiser": LEVELS["optimiser"], "pruning": list(PRUNING)}
    found = {
        "mixture": study_run(keep, "mixture", pipeline_cell, LEVELS | steps, setting.seeds, setting.fraction),
        "orders": study_run(
            keep, "orders", pipeline_cell, BASE | steps | {"order": list(range(setting.orders))}, setting.orders
        ),
        "digits": study_run(keep, "digits", pipeline_cell, digits | steps, setting.seeds, setting.real_fraction),
    }
    if is_present("adult"):
        adult = {**BASE, "data": ["adult"], "width": [16, 128], "depth": [1, 3], "optimiser": LEVELS["optimiser"]}
        adult = {**adult, "pruning": list(PRUNING)}
        found["adult"] = study_run(keep, "adult", pipeline_cell, adult | steps, setting.seeds, setting.real_fraction)
    return found


def table_of(runs: Runs, name: str, response: str) -> xr.DataArray:
    """One response of one study, over the factors that vary and the seeds."""
    curve = runs[name][response].isel(time=0, drop=True)
    fixed = [dim for dim in curve.dims if dim != "seed" and curve.sizes[dim] == 1]
    return curve.squeeze(fixed, drop=True).rename(f"{response.replace('_', ' ')}, {name}")


def shares_of(runs: Runs, name: str, response: str) -> Shares | None:
    """None where there is nothing to explain, or one seed only."""
    array = table_of(runs, name, response)
    factors = [str(dim) for dim in array.dims if dim != "seed"]
    try:
        return shares(with_results(array, factors), draws=200, permutations=0)
    except ValueError:
        return None


def contrast(array: xr.DataArray, factor: str, low: Any, high: Any) -> tuple[float, float]:
    """The mean at one level less that at another, over settings, and its standard error.

    >>> grid = xr.DataArray([[[1.0], [1.2]], [[2.0], [2.2]]], dims=("a", "b", "seed"), coords={"a": [0, 1]})
    >>> round(contrast(grid, "a", 0, 1)[0], 6)
    1.0
    """
    means = array.mean("seed")
    two = [one[np.isfinite(one)] for one in (means.sel({factor: level}).values.ravel() for level in (low, high))]
    if not min(map(len, two)):
        return np.nan, np.nan
    error = float(np.sqrt(sum(one.var(ddof=1) / len(one) for one in two))) if min(map(len, two)) > 1 else np.nan
    return float(two[1].mean() - two[0].mean()), error


def claims(runs: Runs) -> tuple[Claim, ...]:
    """One for each published claim, then where the bias comes from. Bars were fixed before the runs."""
    seeds = len(runs["mixture"].origin.seeds)

    def moved(
        sentence: str, response: str, factor: str, low: Any, high: Any, sign: float = 1.0, name: str = "mixture"
    ) -> Claim:
        array = table_of(runs, name, response)
        size, error = contrast(
            abs(array) if response == "final_gap" and factor == "pruning" else array, factor, low, high
        )
        what = f"change of {RESPONSES[response]}, from {factor} {low} to {high}"
        return Claim(sentence, sign * size, what, 0.0, error=error, seeds=seeds, safe=False)

    tuned = ("nine tenths", "nine tenths, tuned")
    return (
        moved("The less a group is represented, the worse it ends", "final_gap", "share", 0.5, 0.8),
        moved("The group of larger variance is ahead early", "early_gap", "variance", 1, 4, -1.0),
        moved("Wider networks are worse for the worst group", "worst_loss", "width", 16, 128),
        moved("Label noise hurts the worst group", "worst_loss", "noise", 0.0, 0.2),
        moved("Pruning makes the gap larger", "final_gap", "pruning", "none", "nine tenths"),
        moved("Pruning makes the gap larger on digits", "final_gap", "pruning", "none", "nine tenths", name="digits"),
        moved("Training on after pruning makes the gap smaller again", "final_gap", "pruning", *tuned, -1.0),
        moved("Stopping early spares the worst group", "worst_loss", "stop", "end", "best look", -1.0),
        moved("Untrained ReLU networks guess one class more than tanh networks", "initial_guess", "activation",
              "tanh", "relu"),
        _order(runs),
        _from_data(runs, seeds),
        _luck(runs, seeds),
        _second_route(runs, seeds),
    )  # fmt: skip


def _order(runs: Runs) -> Claim:
    """Runs with all pairs of initial weights and orders: the variance among orders at equal weights, over all of it."""
    gaps = table_of(runs, "orders", "final_gap")
    values = gaps.transpose("seed", "order").values
    within = values.var(axis=1, ddof=1).mean()
    weights, whole = values.var(axis=0, ddof=1).mean(), values.var(ddof=1)
    return Claim(
        "The order of the batches alone decides at least half of the luck in the final gap",
        float(within / whole),
        f"variance among {values.shape[1]} orders with the same initial weights over that of all {values.size} runs",
        0.5,
        f"Among initial weights with the same order it is {weights / whole:.2f} of it.",
        seeds=len(runs["mixture"].origin.seeds),
        safe=False,
    )


def _from_data(runs: Runs, seeds: int) -> Claim:
    found = shares_of(runs, "mixture", "final_gap")
    data = None if found is None else found.grouped(GROUPS)[0]
    return Claim(
        "At least half of the final gap comes from the data",
        np.nan if data is None else data.share,
        "share of its variance on the mixture that goes with the group's share, its variance and label noise",
        0.5,
        "" if data is None or found is None else f"90 % interval {data.low:.2f} to {data.high:.2f}. {found}",
        seeds=seeds,
        safe=False,
    )


def _luck(runs: Runs, seeds: int) -> Claim:
    told = {name: found for name in runs if name != "orders" and (found := shares_of(runs, name, "final_gap"))}
    return Claim(
        "Luck decides at most a tenth of the final gap",
        max((found["seed"].share for found in told.values()), default=np.nan),
        "largest share of seeds in its variance, over the data sets",
        0.1,
        "; ".join(f"{name} {one['seed'].share:.0%} ({one['seed'].low:.0%} to {one['seed'].high:.0%})"
                  for name, one in told.items()) + ".",
        rule="at most",
        seeds=seeds,
        safe=False,
    )  # fmt: skip


def _second_route(runs: Runs, seeds: int) -> Claim:
    same, told = [], []
    for response in SHOWN:
        found = shares_of(runs, "mixture", response)
        if found is not None:
            first = max((row for row in found.rows if np.isfinite(row.even)), key=lambda row: row.total).term
            other = largest_by_forest(table_of(runs, "mixture", response))
            same.append(first == other)
            told.append(f"{response.replace('_', ' ')}: {first}, {other}")
    return Claim(
        "A random forest names the same factor as the largest",
        float(np.mean(same)) if same else np.nan,
        f"share of {len(same)} responses for which the factor of largest total share also has the largest importance",
        0.7,
        f"Shares and forest: {'; '.join(told)}." if told else "It takes two seeds.",
        seeds=seeds,
        safe=False,
    )


def tables(runs: Runs) -> dict[str, Table]:
    """Where the group bias is made: shares by part of the pipeline."""
    rows = []
    for response in SHOWN:
        found = shares_of(runs, "mixture", response)
        if found is not None:
            told = [f"{row.share:.0%} ({row.low:.0%} to {row.high:.0%})" for row in found.grouped(GROUPS)]
            rows.append((response.replace("_", " "), *told))
    header = ("response", *GROUPS, "rest", "luck")
    return {
        "Where the group bias of the mixture is made (share of variance, 90 % interval)": Table(header, tuple(rows))
    }


def pictures(runs: Runs) -> dict[str, Any]:
    """What explains the group bias; the gap by share of the group and pruning."""
    drawn = {
        "Final gap by pruning and width (digits)": plot.cell_means(
            table_of(runs, "digits", "final_gap"), x="pruning", colour="width"
        )
    }
    found = [one for response in SHOWN if (one := shares_of(runs, "mixture", response)) is not None]
    if found:
        drawn["What explains the group bias on the mixture"] = plot.variance_shares(found)
    return drawn
