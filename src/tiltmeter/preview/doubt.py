"""Doubt: how far a training may differ from a preview, and when a preview does not hold.

The band of a rate is calibrated on tables that no judgement uses. Its half width is

    factor sqrt(floor^2 + points^2 p (1 - p) / n + spread^2 d^2)

with the rate p, the people n in its denominator, and the *disagreement* d: the root mean square difference of the end
rates by the columns alone and by columns and units. For a gap p (1 - p) / n is that of both groups together. Groups of
20 to 200 people have a factor of their own; smaller ones have no band.

The *gain* of a quick non-linear model (gradient boosting on a few thousand rows) is what it has over the preview, as a
share of the fall of the held-out loss from the constant answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.preview.inputs import Inputs

#: The calibrated numbers, written by `python benchmarks/preview.py calibrate`.
BANDS = Path(__file__).with_name("bands.json")
#: People in the denominator of a rate: fewer have no band; from `LARGE` on the band is the narrow one.
FEWEST, LARGE = 20, 200
#: Rows on which the quick non-linear model is fitted and judged, at most.
FITTED, JUDGED = 5000, 3600
#: The largest gain, and the largest disagreement, at which a preview holds.
MOST_GAIN, MOST_DISAGREEMENT = 0.08, 0.10
RATES = ("positive_rate", "tpr", "fpr", "error")


@cache
def calibrated() -> Mapping[str, Any]:
    """The numbers of the band and the tasks that they come from."""
    table: dict[str, Any] = json.loads(BANDS.read_text(encoding="utf-8"))
    return table


@dataclass(frozen=True)
class Doubt:
    """What speaks against a preview; `holds` says whether it may name anybody, `why` the reason where it may not."""

    gain: float
    disagreement: float
    holds: bool
    why: str = ""


def doubt_of(gain: float, disagreement: float, tabular: bool) -> Doubt:
    """The doubt from its two measurements.

    >>> doubt_of(0.01, 0.02, True).holds, doubt_of(0.5, 0.02, True).why
    (True, 'a quick non-linear model learns 50 % more of the labels than the preview does')
    """
    why = ""
    if not tabular:
        why = "these points are not the rows of a table, so rates are not previewed, only causes and their signs"
    elif gain > MOST_GAIN:
        why = f"a quick non-linear model learns {100 * gain:.0f} % more of the labels than the preview does"
    elif disagreement > MOST_DISAGREEMENT:
        why = f"by the columns alone the rates are {100 * disagreement:.0f} points away from the preview's"
    return Doubt(gain, disagreement, not why, why)


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


def gain_of(inputs: Inputs, least_loss: float) -> float:
    """What gradient boosting has over the preview's least held-out loss, as a share of the fall from a constant.

    Fixed numbers of rows keep this a size and not a test: a z-value would grow with the table.
    """
    if inputs.kind == "classes" or not inputs.tabular:
        return 0.0
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    fitted = rng.permutation(len(inputs.train.labels))[:FITTED]
    judged = np.random.default_rng(0).permutation(len(inputs.held_out.labels))[:JUDGED]
    mass, labels = inputs.train.mass[fitted], inputs.train.labels[fitted]
    held, share = inputs.held_out.labels[judged], inputs.held_out.mass[judged]
    x, seen = inputs.train.x[fitted], inputs.held_out.x[judged]
    options: dict[str, Any] = {"max_iter": 60, "max_leaf_nodes": 15, "early_stopping": False, "random_state": 0}
    if len(np.unique(labels)) < 2 or mass.sum() <= 0 or share.sum() <= 0:
        return 0.0
    if inputs.kind == "binary":
        made = HistGradientBoostingClassifier(**options).fit(x, labels > 0.5, sample_weight=mass)
        chance = np.clip(made.predict_proba(seen)[:, 1], 1e-6, 1.0 - 1e-6)
        quick = np.average(-np.where(held > 0.5, np.log(chance), np.log1p(-chance)), weights=share)
        always = float(np.clip(np.average(labels, weights=mass), 1e-6, 1.0 - 1e-6))
        constant = np.average(-np.where(held > 0.5, np.log(always), np.log1p(-always)), weights=share)
    else:
        made = HistGradientBoostingRegressor(**options).fit(x, labels, sample_weight=mass)
        quick = np.average(0.5 * (made.predict(seen) - held) ** 2, weights=share)
        constant = np.average(0.5 * (np.average(labels, weights=mass) - held) ** 2, weights=share)
    fall = constant - min(quick, least_loss)
    return float((least_loss - quick) / fall) if fall > 1e-12 else 0.0
