"""Pipeline atlas: of the group bias that a training ends with, how much each part of the pipeline makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, Rule
from tiltmeter_lab.shared.atlas_study import study_run, with_results
from tiltmeter_lab.shared.curriculum import CURRICULA
from tiltmeter_lab.shared.pipeline_cell import RESPONSES, pipeline_cell
from tiltmeter_lab.shared.second_route import largest_by_forest

TITLE = "Of the group bias that a training ends with, how much comes from each part of the pipeline"
PAPER = (
    "A question of Bell and Sagun (2023) and others; single claims of these and of Sagawa et al. (2020), Francazi et "
    "al. (2023), Ganesh et al. (2023), Iofinova et al. (2023), Jain et al. (2024), Kolahdouzi et al. (2025), Barsbey "
    "et al. (2025)"
)
NEEDS: tuple[str, ...] = ()
#: The parts of the pipeline and the factors of each.
GROUPS: dict[str, tuple[str, ...]] = {
    "data": ("share", "variance", "noise"),
    "architecture": ("depth", "width", "activation", "scale"),
    "optimiser": ("optimiser", "lr", "decay", "stop"),
    "order": ("curriculum",),
    "compression": ("pruning",),
}
SHOWN = ("final_gap", "gap_area", "worst_loss", "crossings")
#: Factors that are decided after training, and those that an untrained network does not know.
AFTERWARDS, LATER = ("stop", "pruning"), ("noise", "optimiser", "lr", "decay", "curriculum")
#: Of the cells of a study: to be changed when the function of a cell changes its meaning.
VERSION = "2"


@dataclass(frozen=True)
class Setting:
    """Two levels of most factors; `fraction` of that grid, all seeds of a cell together, on the mixture."""

    steps: int = 200
    fraction: float = 1 / 20
    orders: int = 10
    real_fraction: float = 1.0
    seeds: int = 5


QUICK = Setting()
FULL = Setting(fraction=1 / 8, orders=16)

#: The stopping rule and pruning are two more factors: every network is stopped and pruned in all ways.
LEVELS: dict[str, list[Any]] = {
    "data": ["mixture"],
    "share": [0.5, 0.8],
    "variance": [1, 4],
    "noise": [0.0, 0.2],
    "depth": [1, 3],
    "width": [16, 64],
    "activation": ["relu", "tanh"],
    "scale": [0.5, 1.5],
    "optimiser": ["SGD", "AdamW"],
    "lr": [0.03, 0.1],
    "decay": [0.0, 0.03],
    "curriculum": list(CURRICULA),
    "order": [None],
}
#: The setting around which one thing at a time is changed, and the middle of the road for real data.
PLAIN: dict[str, list[Any]] = {name: [values[0]] for name, values in LEVELS.items()}
BASE = {**PLAIN, "share": [0.8], "variance": [4], "width": [64], "scale": [1.0]}
VARIED = {name: LEVELS[name] for name in ("width", "optimiser", "curriculum")}


def run(setting: Setting, keep: Keep) -> Runs:
    """The mixture over all factors; digits and, where it is present, Adult over some; orders crossed with weights."""
    steps: dict[str, list[Any]] = {"steps": [setting.steps]}
    studies = {
        "mixture": LEVELS,
        "digits": {**BASE, **VARIED, "data": ["digits"], "share": [0.5, 0.9], "variance": [1, 6]},
    }
    if tm.data.is_present("adult"):
        studies["adult"] = {**BASE, **VARIED, "data": ["adult"], "noise": LEVELS["noise"], "depth": LEVELS["depth"]}
    found = {}
    for name, factors in studies.items():
        part = setting.fraction if name == "mixture" else setting.real_fraction
        found[name] = study_run(keep, name, pipeline_cell, factors | steps, setting.seeds, part, VERSION)
    orders = BASE | steps | {"data": list(studies), "order": list(range(setting.orders))}
    found["orders"] = study_run(keep, "orders", pipeline_cell, orders, setting.orders, None, VERSION)
    return found


def table_of(runs: Runs, name: str, response: str) -> xr.DataArray:
    """One response of one study, over the factors that vary and the seeds."""
    curve = runs[name][response].isel(time=0, drop=True)
    fixed = [dim for dim in curve.dims if dim != "seed" and curve.sizes[dim] == 1]
    curve = curve.squeeze(fixed, drop=True).rename(f"{response.replace('_', ' ')}, {name}")
    return curve.mean([dim for dim in curve.dims if dim in LATER]) if response == "initial_guess" else curve


def data_sets(runs: Runs) -> list[str]:
    """The studies that vary the pipeline."""
    return [name for name in runs if name != "orders"]


def shares_of(runs: Runs, name: str, response: str) -> lab.Shares | None:
    """None where there is nothing to explain, or one seed only."""
    array = table_of(runs, name, response)
    factors = [str(dim) for dim in array.dims if dim != "seed"]
    try:
        # Seed 3 is the same weights and batches in every cell, and all ways to stop and prune share one network.
        return lab.shares(with_results(array, factors), draws=200, permutations=0, shared_seeds=True)
    except ValueError:
        return None


def contrast(array: xr.DataArray, factor: str, low: Any, high: Any) -> tuple[float, float]:
    """The mean at one level less that at another, over settings, and its standard error.

    What is decided after training is compared within every network; other factors, between settings.

    >>> grid = xr.DataArray([[[1.0], [1.2]], [[2.0], [2.2]]], dims=("a", "b", "seed"), coords={"a": [0, 1]})
    >>> round(contrast(grid, "a", 0, 1)[0], 6)
    1.0
    """
    means = array.mean([dim for dim in array.dims if dim == "seed" or (dim in AFTERWARDS and dim != factor)])
    two = [means.sel({factor: level}).values.ravel() for level in (low, high)]
    if factor in AFTERWARDS:
        change = two[1] - two[0]
        change = change[np.isfinite(change)]
        error = float(change.std(ddof=1) / np.sqrt(len(change))) if len(change) > 1 else np.nan
        return float(change.mean()) if len(change) else np.nan, error
    two = [one[np.isfinite(one)] for one in two]
    if not min(map(len, two)):
        return np.nan, np.nan
    error = float(np.sqrt(sum(one.var(ddof=1) / len(one) for one in two))) if min(map(len, two)) > 1 else np.nan
    return float(two[1].mean() - two[0].mean()), error


def claims(runs: Runs) -> tuple[Claim, ...]:
    """One for each published claim, then where the bias comes from. Bars were fixed before the runs."""
    seeds = len(runs["mixture"].origin.seeds)

    def moved(
        sentence: str, response: str, factor: str, low: Any, high: Any, rule: Rule = "at least", name: str = "mixture"
    ) -> Claim:
        array = table_of(runs, name, response)
        size, error = contrast(
            abs(array) if response == "final_gap" and factor == "pruning" else array, factor, low, high
        )
        size_of = "the size of the " if response == "final_gap" and factor == "pruning" else ""
        what = f"change of {size_of}{RESPONSES[response]}, from {factor} {low} to {high}"
        return Claim(sentence, size, what, 0.0, rule=rule, error=error, seeds=seeds, safe=False, freedom=np.inf)

    tuned = ("nine tenths", "nine tenths, tuned")
    return (
        moved("The less a group is represented, the worse it ends", "final_gap", "share", 0.5, 0.8),
        moved("The group of larger variance is ahead early", "early_gap", "variance", 1, 4, "at most"),
        moved("Wider networks are worse for the worst group", "worst_loss", "width", 16, 64),
        moved("Deeper networks leave a larger gap", "final_gap", "depth", 1, 3),
        moved("AdamW leaves a smaller gap than SGD", "final_gap", "optimiser", "SGD", "AdamW", "at most"),
        moved("A larger learning rate leaves a smaller gap", "final_gap", "lr", 0.03, 0.1, "at most"),
        moved("Weight decay spares the worst group", "worst_loss", "decay", 0.0, 0.03, "at most"),
        moved("Label noise hurts the worst group", "worst_loss", "noise", 0.0, 0.2),
        moved("Pruning makes the gap larger", "final_gap", "pruning", "none", "nine tenths"),
        moved("Pruning makes the gap larger on digits", "final_gap", "pruning", "none", "nine tenths", name="digits"),
        moved("Training on after pruning makes the gap smaller again", "final_gap", "pruning", *tuned, "at most"),
        moved("Stopping early spares the worst group", "worst_loss", "stop", "end", "best evaluation", "at most"),
        moved("Untrained ReLU networks guess one class more than tanh networks", "initial_guess", "activation",
              "tanh", "relu"),
        _guess_by_depth(runs, seeds),
        _guess_by_scale(runs, seeds),
        *(_order(runs, name, seeds) for name in data_sets(runs)),
        _curriculum(runs, seeds),
        _from_data(runs, seeds),
        _luck(runs, seeds),
        _second_route(runs, seeds),
    )  # fmt: skip


def _guess_by_depth(runs: Runs, seeds: int) -> Claim:
    """Francazi et al.: each ReLU layer adds to the imbalance of what an untrained network answers."""
    guess = table_of(runs, "mixture", "initial_guess")
    size, error = contrast(guess.sel(activation="relu"), "depth", 1, 3)
    return Claim(
        "The more layers an untrained ReLU network has, the more it guesses one class",
        size,
        f"change of {RESPONSES['initial_guess']}, from depth 1 to 3",
        0.0,
        f"With tanh: {contrast(guess.sel(activation='tanh'), 'depth', 1, 3)[0]:+.3f}.",
        error=error,
        seeds=seeds,
        safe=False,
    )


def _guess_by_scale(runs: Runs, seeds: int) -> Claim:
    """Francazi et al.; exact without biases: multiplying all weights of a ReLU network then changes no decision."""
    guess = table_of(runs, "mixture", "initial_guess")
    size, error = contrast(guess.sel(activation="relu"), "scale", 0.5, 1.5)
    tanh = contrast(guess.sel(activation="tanh"), "scale", 0.5, 1.5)[0]
    return Claim(
        "The initial guess of a ReLU network comes from its architecture, not from the scale of its weights",
        abs(size),
        f"size of the change of {RESPONSES['initial_guess']}, from scale 0.5 to 1.5",
        0.05,
        f"With tanh: {tanh:+.3f}.",
        rule="at most",
        error=error,
        seeds=seeds,
        safe=False,
    )


def crossed_gaps(runs: Runs, name: str) -> np.ndarray:
    """Final gaps (initial weights, orders) of unpruned networks."""
    gaps = runs["orders"]["final_gap"].isel(time=0, drop=True).sel(data=name, stop="end", pruning="none")
    return np.asarray(gaps.squeeze(drop=True).transpose("seed", "order").values)


def luck_of(values: np.ndarray) -> tuple[float, float]:
    """Of the variance over all pairs of initial weights (rows) and orders, what is left if only one of them varies.

    >>> luck_of(np.array([[1.0, 3.0], [1.0, 3.0]]))[1]
    0.0

    First orders with the same weights, then weights with the same order: the mean variance over that of all runs.
    """
    whole = values.var(ddof=1)
    return float(values.var(axis=1, ddof=1).mean() / whole), float(values.var(axis=0, ddof=1).mean() / whole)


def luck_by_order(runs: Runs, name: str) -> tuple[float, float, float]:
    """`luck_of` the final gap, and the standard error of the share of orders (jackknife over weights and orders)."""
    values = crossed_gaps(runs, name)
    square = 0.0
    for axis, count in enumerate(values.shape):
        without = [luck_of(np.delete(values, place, axis))[0] for place in range(count)] if count > 2 else []
        square += (count - 1) ** 2 / count * np.var(without, ddof=1) if without else np.nan
    return (*luck_of(values), float(np.sqrt(square)))


def _order(runs: Runs, name: str, seeds: int) -> Claim:
    order, weights, error = luck_by_order(runs, name)
    count = runs["orders"]["final_gap"].sizes["order"]
    return Claim(
        f"The order of the batches alone decides at least half of the luck in the final gap ({name})",
        order,
        f"variance among {count} orders with the same initial weights over that of all {count**2} runs",
        0.5,
        f"Among initial weights with the same order it is {weights:.2f} of it.",
        error=error,
        seeds=seeds,
        safe=False,
    )


def _curriculum(runs: Runs, seeds: int) -> Claim:
    """Systematic order against accidental order."""
    told = {}
    for name in data_sets(runs):
        found = shares_of(runs, name, "final_gap")
        if found is not None:
            told[name] = found["curriculum"].total, found["seed"].share
    return Claim(
        "Which examples come first, easy or hard, matters no more for the final gap than luck",
        max((total - luck for total, luck in told.values()), default=np.nan),
        "largest excess of the curriculum's total share over that of seeds, over the data sets",
        0.0,
        "; ".join(f"{name} {total:.0%} against {luck:.0%}" for name, (total, luck) in told.items()) + ".",
        rule="at most",
        seeds=seeds,
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
    told = {name: found for name in data_sets(runs) if (found := shares_of(runs, name, "final_gap"))}
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


def tables(runs: Runs) -> dict[str, tm.results.page.Table]:
    """Where the group bias is made: shares by part of the pipeline; how luck divides."""
    rows = []
    for name in data_sets(runs):
        for response in SHOWN:
            found = shares_of(runs, name, response)
            if found is not None:
                varied = {factor for term in found.draws for factor in term.split(" x ")}
                told = [
                    "not varied"
                    if row.term in GROUPS and not varied & set(GROUPS[row.term])
                    else f"{row.share:.0%} ({row.low:.0%} to {row.high:.0%})"
                    for row in found.grouped(GROUPS)
                ]
                rows.append((name, response.replace("_", " "), *told))
    luck = [(name, *(f"{one:.2f}" for one in luck_by_order(runs, name)[:2])) for name in data_sets(runs)]
    return {
        "Where the group bias is made (share of variance, 90 % interval)": tm.results.page.Table(
            ("data set", "response", *GROUPS, "rest", "luck"), tuple(rows)
        ),
        "Luck in the final gap: variance among runs that differ in one thing, over that of all": tm.results.page.Table(
            ("data set", "order of the batches", "initial weights"), tuple(luck)
        ),
    }


def pictures(runs: Runs) -> dict[str, Any]:
    """Where the group bias is made; by factors; the gap by pruning and width, and by curriculum and optimiser."""
    gaps = table_of(runs, "digits", "final_gap")
    by_part = [
        one.by_groups(GROUPS, luck="luck")
        for response in SHOWN
        for name in data_sets(runs)
        if (one := shares_of(runs, name, response)) is not None
    ]
    drawn = (
        {"Where the group bias is made": lab.plot.variance_shares(by_part, (*GROUPS, "rest", "luck"))}
        if by_part
        else {}
    )
    drawn |= {
        "Final gap by pruning and width (digits)": lab.plot.cell_means(gaps, x="pruning", colour="width"),
        "Final gap by curriculum and optimiser (digits)": lab.plot.cell_means(gaps, x="curriculum", colour="optimiser"),
    }
    for name in data_sets(runs):
        found = [one for response in SHOWN if (one := shares_of(runs, name, response)) is not None]
        if found:
            drawn[f"What explains the group bias on {name}"] = lab.plot.variance_shares(found)
    return drawn
