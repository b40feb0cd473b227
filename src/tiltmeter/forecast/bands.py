"""Bands: the limits that a forecast promises for the gaps between groups, and where it promises none.

Rehearsals promise by their own spread. With k copies and the gap g of a pair at an evaluation, the gap of one more
training lies within

    mean(g) +- c sqrt(v (1 + 1/k)),        v = max(variance at the evaluation, its mean over two evaluations each side)

at all promised evaluations and for all pairs together, in 90 % of trainings. The factor c is the 90 % quantile of the
largest such t of normal runs whose evaluations are correlated (0.5 from one to the next), simulated, times a number
near 1 that was calibrated on other tasks, since real runs have longer tails. The variance of a rate is at least that of
one other decision in each group.

One narrow copy, and one or two rehearsals, promise by a factor that was calibrated on other tasks. Their scale is
sqrt(se^2 + (0.1 moved)^2): the standard error of the held-out points, and how far the gap has moved so far.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from tiltmeter.leaders.promised_gaps import pair_names
from tiltmeter.record import Trajectory
from tiltmeter.record.labelled import label_from_json
from tiltmeter.record.origin import Origin

#: Curves whose gaps are promised.
CURVES = ("loss", "error", "positive_rate", "tpr", "fpr")
#: The share of trainings that leave a band somewhere.
LEVEL = 0.1
#: Of a gap's movement, the part that counts in the scale of a calibrated band.
MOVED = 0.1
#: Correlation of neighbouring evaluations, and how many runs are simulated.
CORRELATION, DRAWS = 0.5, 4000
#: The calibrated factors, written by `python -m tiltmeter_lab.calibrate_twins` and `calibrate_spread`.
FACTORS = Path(__file__).with_name("twin_factors.json")

#: How a band is found: from the spread of copies, by a calibrated factor, or not at all, because copy and run are one.
Kind = Literal["spread", "calibrated", "exact"]


@dataclass(frozen=True)
class Promise:
    """What a forecast promises: gaps from a share of the training on (`since`; 1: the end alone), and how it knows.

    `sentence` is the second line of what is said about a forecast. `level` is the share of trainings that leave a band
    of the kind "spread" somewhere; of the calibrated kind it lies in the factor.
    """

    kind: Kind
    since: float
    sentence: str
    factor: float = 0.0
    level: float = LEVEL


def where(since: float) -> str:
    """From when on a promise holds, in words.

    >>> where(0.0), where(0.5), where(1.0)
    ('over all evaluations', 'over the second half of the training', 'for the end of the training')
    """
    if since == 0.0:
        return "over all evaluations"
    if since == 1.0:
        return "for the end of the training"
    return "over the second half of the training" if since == 0.5 else f"from {100 * since:g} % of the training on"


@cache
def calibrated() -> Mapping[str, Any]:
    """The factors of calibrated promises with the tasks that they come from."""
    table: dict[str, Any] = json.loads(FACTORS.read_text(encoding="utf-8"))
    return table


def with_promise(runs: Trajectory, promise: Promise | None, steps: int, method: str, copies: int) -> Trajectory:
    """The mean over copies with the promised limits as curves `X_gap_low` and `X_gap_high` (time, pair).

    `runs` may have a dimension `seed` of copies. Without a promise there are no limits. `origin.settings["promise"]`
    says what is promised.
    """
    curves = {
        name: curve.mean("seed", keep_attrs=True) if "seed" in curve.dims else curve for name, curve in runs.items()
    }
    ended = runs.diverged
    if ended is not None and "seed" in ended.dims:
        ended = ended.min("seed")
    told: dict[str, Any] | None = None
    if promise is not None and ended is None:
        first = promise.since * steps
        limits: dict[str, xr.DataArray] = {}
        for name in CURVES:
            if name in runs and set(runs[name].dims) - {"seed"} == {"time", "group"}:
                limits |= _limits(name, runs, promise, first)
        curves |= limits
        times = np.asarray(runs["loss"].coords["time"].values, dtype=float)
        told = {
            "from": float(times[times >= first - 1e-9][0]),
            "level": promise.level,
            "method": method,
            "copies": copies,
            "reliable_until": float(times[-1]),
            "sentence": promise.sentence,
            "crossings": {name: found for name in CURVES if (found := _crossing_of_copies(name, runs)) is not None},
        }
    origin = replace(runs.origin, settings={**runs.origin.settings, "promise": told})
    return Trajectory(curves, runs.clock, origin, ended, points=runs.points)


def _pairs(count: int) -> list[tuple[int, int]]:
    return list(combinations(range(count), 2))


def _limits(name: str, runs: Trajectory, promise: Promise, first: float) -> dict[str, xr.DataArray]:
    given = runs[name] if "seed" in runs[name].dims else runs[name].expand_dims("seed")
    each = np.asarray(given.transpose("seed", "time", "group").values, dtype=float)
    times, groups = given.coords["time"].values, given.coords["group"].values.tolist()
    if len(groups) < 2:
        return {}
    gaps = np.stack([each[..., a] - each[..., b] for a, b in _pairs(len(groups))], axis=2)
    inside = times >= first - 1e-9
    if promise.kind == "exact":
        half = np.zeros(gaps.shape[1:])
    elif promise.kind == "spread":
        floor = _one_decision(runs, name, groups)
        half = calibrated()["spread"]["factor"] * spread_limits(
            gaps, int(inside.sum()), len(groups), promise.level, floor
        )
    else:
        half = promise.factor * calibrated_scale(gaps.mean(0), _errors(runs, name, len(times), len(groups)))
    half = np.where(inside[:, None], half, np.nan)
    middle = gaps.mean(0)
    least, most = (-np.inf, np.inf) if name == "loss" else (-1.0, 1.0)
    coords = {"time": times, "pair": pair_names(groups)}
    attrs = {"better": "neither", "long_name": f"promised limit of the gap in {name}"}
    return {
        f"{name}_gap_low": xr.DataArray(np.maximum(middle - half, least), coords, ("time", "pair"), attrs=attrs),
        f"{name}_gap_high": xr.DataArray(np.minimum(middle + half, most), coords, ("time", "pair"), attrs=attrs),
    }


def _crossing_of_copies(name: str, runs: Trajectory) -> dict[str, float] | None:
    """When the gap of two groups changes its sign in the copies for the last time; None where no copy's does."""
    if name not in runs or set(runs[name].dims) - {"seed"} != {"time", "group"} or runs[name].sizes["group"] != 2:
        return None
    given = runs[name] if "seed" in runs[name].dims else runs[name].expand_dims("seed")
    values = given.transpose("seed", "time", "group").values.astype(float)
    trained = given.coords["time"].values > 0
    return crossing_of_copies((values[..., 0] - values[..., 1])[:, trained], given.coords["time"].values[trained])


def crossing_of_copies(gaps: np.ndarray, times: np.ndarray) -> dict[str, float] | None:
    """The last change of sign of gaps (copies, times) after which the leader of the end stays; None without any.

    >>> times = np.array([1.0, 10.0, 100.0])
    >>> crossing_of_copies(np.array([[-1.0, 1.0, 1.0], [-2.0, 1.0, 1.0], [-1.0, 2.0, 1.0]]), times)["low"] > 1.0
    True

    With three and more copies that cross, the limits are those of the 90 % prediction interval of log time (Student's
    t), for one more training.
    """
    end = np.sign(gaps[:, -1].mean())
    logs = []
    for gap in gaps:
        against = np.flatnonzero(np.sign(gap) == -end)
        if not against.size or against[-1] + 1 >= len(gap) or np.sign(gap[-1]) != end:
            continue
        k = int(against[-1])
        share = gap[k] / (gap[k] - gap[k + 1])
        logs.append(float(np.log(times[k] + share * (times[k + 1] - times[k]))))
    if not logs or end == 0:
        return None
    found = {"crossed": len(logs), "copies": len(gaps), "time": float(np.exp(np.mean(logs)))}
    if len(logs) >= 3:
        from scipy.special import stdtrit

        half = float(stdtrit(len(logs) - 1, 0.95) * np.std(logs, ddof=1) * np.sqrt(1.0 + 1.0 / len(logs)))
        found |= {"low": float(np.exp(np.mean(logs) - half)), "high": float(np.exp(np.mean(logs) + half))}
    return found


def spread_limits(
    gaps: np.ndarray, promised: int, groups: int, level: float = LEVEL, floor: np.ndarray | float = 0.0
) -> np.ndarray:
    """Half the width of the band of gaps (copies, evaluations, pairs), of which the last evaluations are promised.

    `floor` is the least variance of each pair: copies that decide alike by chance do not promise that all will.
    """
    copies = len(gaps)
    factor = spread_factor(copies, promised, groups, level)
    return np.asarray(factor * np.sqrt(np.maximum(_variance(gaps), floor) * (1.0 + 1.0 / copies)))


def _one_decision(runs: Trajectory, name: str, groups: list[Hashable]) -> np.ndarray | float:
    """The variance that one other decision in each group makes in the gap of every pair; 0 where it is not known."""
    problem: Any = runs.origin.problem
    facts = problem.get("held_out") if isinstance(problem, Mapping) else None
    if name == "loss" or not isinstance(facts, Mapping) or "sizes" not in facts:
        return 0.0
    counts = {label_from_json(group): float(size) for group, size in facts["sizes"]}
    if name in ("tpr", "fpr"):
        rates = {label_from_json(group): rate for group, rate in facts.get("label_rates") or []}
        if any(len(rates.get(group, ())) != 2 for group in groups):
            return 0.0
        counts = {group: counts[group] * float(rates[group][name == "tpr"][1]) for group in groups}
    least = np.array([1.0 / max(counts.get(group, np.inf), 1.0) for group in groups])
    return np.array([least[a] ** 2 + least[b] ** 2 for a, b in _pairs(len(groups))])


def calibrated_scale(gap: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """sqrt(se^2 + (0.1 moved)^2) at every evaluation, for gaps and their standard errors (evaluations, pairs)."""
    moved = np.maximum.accumulate(np.nan_to_num(np.abs(gap - gap[:1])), axis=0)
    return np.asarray(np.hypot(errors, MOVED * moved))


def _errors(runs: Trajectory, name: str, times: int, groups: int) -> np.ndarray:
    """The standard errors of gaps by the held-out points, (evaluations, pairs); NaN where they are not known."""
    curve = runs.get(f"{name}_se")
    if curve is None:
        return np.full((times, len(_pairs(groups))), np.nan)
    values = (curve.mean("seed") if "seed" in curve.dims else curve).transpose("time", "group").values
    return np.stack([np.hypot(values[:, a], values[:, b]) for a, b in _pairs(groups)], axis=1)


def _variance(gaps: np.ndarray) -> np.ndarray:
    """The variance of every evaluation, or its mean over two evaluations each side where that is larger."""
    alone = gaps.var(axis=0, ddof=1)
    padded = np.pad(alone, ((2, 2), *((0, 0),) * (alone.ndim - 1)), constant_values=np.nan)
    near = np.nanmean(np.stack([padded[shift : shift + len(alone)] for shift in range(5)]), axis=0)
    return np.asarray(np.maximum(alone, near))


@cache
def spread_factor(copies: int, evaluations: int, groups: int, level: float = LEVEL) -> float:
    """The factor of the band of `copies` rehearsals, for so many promised evaluations and groups.

    >>> 4.0 < spread_factor(3, 40, 2) < 5.5 and 3.2 < spread_factor(5, 40, 2) < 4.1
    True
    """
    rng = np.random.default_rng(0)
    largest = []
    rows, columns = zip(*_pairs(groups), strict=True)
    for first in range(0, DRAWS, 500):
        count = min(500, DRAWS - first)
        noise = rng.standard_normal((evaluations, copies + 1, count, groups))
        for step in range(1, evaluations):
            noise[step] = CORRELATION * noise[step - 1] + np.sqrt(1.0 - CORRELATION**2) * noise[step]
        gaps = (noise[..., list(rows)] - noise[..., list(columns)]).transpose(1, 0, 2, 3)
        scale = np.sqrt(_variance(gaps[:copies]) * (1.0 + 1.0 / copies))
        largest.append((np.abs(gaps[copies] - gaps[:copies].mean(0)) / scale).max(axis=(0, 2)))
    return float(np.quantile(np.concatenate(largest), 1.0 - level))


def promise_sentence(ahead: Trajectory) -> str | None:
    """What a forecast promises, in one sentence; None where it promises nothing."""
    promise = ahead.origin.settings.get("promise")
    return str(promise["sentence"]) if isinstance(promise, dict) else None


def nowcast_step(origin: Origin) -> float | None:
    """The step from which a nowcast goes on; None for a forecast from the beginning and for any other run.

    >>> nowcast_step(Origin("forecast", settings={"calculation": {"from_step": 40}}))
    40.0
    """
    account = origin.settings.get("calculation")
    step = account.get("from_step") if isinstance(account, Mapping) else None
    return float(step) if origin.source == "forecast" and isinstance(step, (int, float)) else None
