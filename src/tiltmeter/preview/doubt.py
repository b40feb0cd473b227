"""Doubt: how far a training may differ from a preview, and when a preview does not hold.

The band of a rate is calibrated on tables that no judgement uses. Its half width is

    factor sqrt(floor^2 + points^2 p (1 - p) / n + spread^2 d^2)

with the rate p, the people n in its denominator, and the *disagreement* d: the root mean square difference of the end
rates by the columns alone and by columns and units. For a gap p (1 - p) / n is that of both groups together. Groups of
20 to 200 people have a factor of their own; smaller ones have no band.

Where the two disagree by more than `MOST_DISAGREEMENT`, the preview does not hold and names nobody; nor where the
pooled held-out loss does not clearly fall, since decisions then follow noise. Another rule, the gain of a quick
non-linear model over the preview, was tried and judged on the same fresh tables: previews that it refused were no worse
than those it kept, so it is not here (benchmarks/preview.py has both).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.leaders.promised_gaps import pair_names
from tiltmeter.preview.inputs import Inputs
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory

#: The calibrated numbers, written by `python benchmarks/preview.py calibrate`.
BANDS = Path(__file__).with_name("bands.json")
#: People in the denominator of a rate: fewer have no band; from `LARGE` on the band is the narrow one.
FEWEST, LARGE = 20, 200
#: The largest disagreement at which a preview holds, and the least fall of the held-out loss in standard errors.
MOST_DISAGREEMENT, LEAST_FALL = 0.10, 3.0
RATES = ("positive_rate", "tpr", "fpr", "error")


@cache
def calibrated() -> Mapping[str, Any]:
    """The numbers of the band and the tasks that they come from."""
    table: dict[str, Any] = json.loads(BANDS.read_text(encoding="utf-8"))
    return table


@dataclass(frozen=True)
class Doubt:
    """What speaks against a preview; `holds` says whether it may name anybody, `why` the reason where it may not.

    `fall` is the fall of the pooled held-out loss from the untrained answer, in standard errors.
    """

    disagreement: float
    holds: bool
    why: str = ""
    fall: float = float("inf")


def doubt_of(disagreement: float, tabular: bool, fall: float = float("inf")) -> Doubt:
    """The doubt from what was measured.

    >>> doubt_of(0.02, True).holds, doubt_of(0.14, True).why
    (True, 'by the columns alone its rates would be 14 points away')
    """
    why = ""
    if not tabular:
        why = "these points are not the rows of a table, so rates are not previewed, only causes and their signs"
    elif not fall >= LEAST_FALL:
        why = "the held-out loss does not clearly fall, so the columns say too little about the label"
    elif disagreement > MOST_DISAGREEMENT:
        why = f"by the columns alone its rates would be {100 * disagreement:.0f} points away"
    return Doubt(disagreement, not why, why, fall)


def fall_of(before: np.ndarray, after: np.ndarray, mass: np.ndarray) -> float:
    """The mean fall of the losses of points over its standard error; masses sum to one.

    >>> round(fall_of(np.array([1.0, 1.0, 1.0]), np.array([0.4, 0.5, 0.6]), np.full(3, 1 / 3)), 1)
    10.6
    """
    fallen = before - after
    mean = float(mass @ fallen)
    error = float(np.sqrt((mass**2) @ (fallen - mean) ** 2))
    return mean / error if error > 0 else (0.0 if mean <= 0 else 1e9)


def half_width(what: str, people: np.ndarray, variance: np.ndarray, disagreement: float) -> np.ndarray:
    """Half the width of the 90 % band of a "rate" or a "gap"; NaN for too few people.

    `people` is the smaller denominator, `variance` the sum of p (1 - p) / n.
    """
    numbers = calibrated()[what]
    size = np.sqrt(numbers["floor"] ** 2 + numbers["points"] ** 2 * variance + numbers["spread"] ** 2 * disagreement**2)
    factor = np.where(people >= LARGE, numbers["large"], numbers["small"])
    return np.asarray(np.where(people >= FEWEST, factor * size, np.nan))


def rate_variance(rate: np.ndarray, people: np.ndarray) -> np.ndarray:
    """p (1 - p) / n, with two more yes and two more no, so that 0 of n is not certain."""
    middle = (rate * people + 2.0) / (people + 4.0)
    return np.asarray(middle * (1.0 - middle) / (people + 4.0))


def denominators(inputs: Inputs) -> dict[str, np.ndarray]:
    """How many held-out people count in every rate, by group."""
    codes, count = inputs.held_out.codes, len(inputs.groups)
    every = np.bincount(codes, minlength=count).astype(float)
    if len(inputs.classes) != 2:
        return {"error": every}
    yes = np.bincount(codes, inputs.held_out_data.y == inputs.classes[1], count)
    return {"positive_rate": every, "tpr": yes, "fpr": every - yes, "error": every}


def disagreement_of(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], inputs: Inputs) -> float:
    """The root mean square difference of two sets of end rates, over groups with many people (or all, if none has)."""
    people = denominators(inputs)
    names = [name for name in RATES if name in people and name in one and name in other]
    for least in (LARGE, FEWEST, 1):
        away = [(one[name] - other[name])[people[name] >= least] for name in names]
        values = np.concatenate(away) if away else np.zeros(0)
        values = values[np.isfinite(values)]
        if values.size:
            return float(np.sqrt(np.mean(values**2)))
    return 0.0


def with_band(run: Trajectory, inputs: Inputs, doubt: Doubt) -> Trajectory:
    """The run with the 90 % band of every gap at its end; as it is where the preview does not hold."""
    groups = list(inputs.groups)
    if not doubt.holds or len(groups) < 2:
        return run
    first, second = (np.array(side) for side in zip(*combinations(range(len(groups)), 2), strict=True))
    curves: dict[str, xr.DataArray] = dict(run)
    for name, people in denominators(inputs).items():
        if name not in run:
            continue
        values = run[name].values
        variance = rate_variance(values[-1], people)
        fewer = np.minimum(people[first], people[second])
        half = half_width("gap", fewer, variance[first] + variance[second], doubt.disagreement)
        gap = values[-1, first] - values[-1, second]
        coords = {"time": run[name].time.values, "pair": pair_names(groups)}
        attrs = {"better": "neither", "long_name": f"limit of the gap in {name} in nine of ten trainings"}
        for word, edge in (("low", np.maximum(gap - half, -1.0)), ("high", np.minimum(gap + half, 1.0))):
            whole = np.full((len(values), len(gap)), np.nan)
            whole[-1] = edge
            curves[f"{name}_gap_{word}"] = xr.DataArray(whole, coords, ("time", "pair"), attrs=attrs)
    if len(curves) == len(run):
        return run
    end = float(run["loss"].time[-1])
    promise: dict[str, Any] = {
        "from": end,
        "level": 0.1,
        "method": "Preview",
        "copies": 0,
        "reliable_until": end,
        "sentence": "Computed from the table, 90 % band for the end of the training",
    }
    origin = Origin(run.origin.source, run.origin.problem, {**run.origin.settings, "promise": promise})
    return Trajectory(curves, run.clock, origin, run.diverged, points=run.points)
