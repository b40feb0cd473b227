"""Scores of a forecast by any route against a run, pair by pair of groups; and of baselines that cost nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm

#: Crossings before this step are not scored.
EARLIEST = 10.0
#: A crossing is told if it is within this factor of the interval in which it was found.
FACTOR = 1.25
#: The pilot: what is seen after this share of the training, extended by a line through its last evaluations.
PILOT, LAST = 0.05, 4.0


@dataclass(frozen=True)
class PairScore:
    """One pair of groups of one run. `right` is None where no final leader is shown.

    `off` is the root mean square distance of the gaps over the range of the real one; `level` the ratio of final
    losses, forecast over real, averaged over groups as logarithms.
    """

    right: bool | None
    correlation: float
    off: float
    level: float
    told: tuple[bool, ...]


@dataclass(frozen=True)
class Truth:
    """What a run shows of one pair: the gap over evaluations, the sign of the final leader (None: none shown),
    crossings."""

    pair: tuple[Any, Any]
    gap: xr.DataArray
    final: int | None
    crossings: tuple[tm.results.Crossing, ...]


def truths(run: tm.Trajectory) -> list[Truth]:
    """Every pair of groups; leaders and crossings are those shown over all evaluations (`standing`)."""
    groups = [label.item() for label in run["loss"].coords["group"]]
    found = []
    for pair in combinations(groups, 2):
        led = tm.leaders(run, "loss", groups=pair)
        judged = led.differences
        sign = int(judged[0].sign[-1]) if judged else 0
        late = tuple(one for one in led.changes if one.time > EARLIEST)
        found.append(Truth(pair, gap(run, pair), sign or None, late))
    return found


def gap(run: tm.Trajectory, pair: tuple[Any, Any]) -> xr.DataArray:
    """The difference of losses after step 0, averaged over replicas."""
    loss = run["loss"].mean("seed") if "seed" in run["loss"].dims else run["loss"]
    return (loss.sel(group=pair[0], drop=True) - loss.sel(group=pair[1], drop=True)).sel(time=slice(1, None))


def pair_score(ahead: tm.Trajectory, run: tm.Trajectory, truth: Truth) -> PairScore:
    """Compare the forecast with what the run shows of one pair."""
    told = gap(ahead, truth.pair).interp(time=truth.gap.time).values
    real = truth.gap.values
    known = np.isfinite(told)
    right = None if truth.final is None else bool(np.sign(told[-1]) == truth.final) if known[-1] else False
    varied = known.sum() > 3 and np.ptp(real[known]) > 0 and np.ptp(told[known]) > 0
    correlation = float(np.corrcoef(real[known], told[known])[0, 1]) if varied else float("nan")
    off = float(np.sqrt(np.mean((real - told)[known] ** 2)) / max(np.ptp(real), 1e-12))
    passed = tuple(_told(one, ahead, truth) for one in truth.crossings)
    return PairScore(right, correlation, off, _level(ahead, run), passed)


def _level(ahead: tm.Trajectory, run: tm.Trajectory) -> float:
    loss = ahead["loss"].mean("seed") if "seed" in ahead["loss"].dims else ahead["loss"]
    ratio = np.log(loss.isel(time=-1).values / run["loss"].isel(time=-1).values)
    return float(np.exp(ratio.mean()))


def _told(found: tm.results.Crossing, ahead: tm.Trajectory, truth: Truth) -> bool:
    """Whether the forecast gap changes sign the same way within the factor of the interval."""
    course = gap(ahead, truth.pair)
    values, times = course.values, course.time.values
    change = (values[:-1] < 0) != (values[1:] < 0)
    for i in np.flatnonzero(change & ((values[1:] < 0) == _falling(found, truth))):
        part = values[i] / (values[i] - values[i + 1])
        at = float(np.exp((1 - part) * np.log(times[i]) + part * np.log(times[i + 1])))
        if _near(at, found):
            return True
    return False


def pilot_told(truth: Truth) -> tuple[bool, ...]:
    """Which crossings the first twentieth of the same training tells: those that it shows, or that a line through its
    last evaluations, in the logarithm of steps, leads to."""
    end = PILOT * float(truth.gap.time[-1])
    late = truth.gap.sel(time=slice(end / LAST, end))
    zero = float("nan")
    if late.sizes["time"] > 1:
        slope, start = np.polyfit(np.log(late.time.values), late.values, 1)
        with np.errstate(all="ignore"):
            zero = float(np.exp(np.clip(-start / slope, -50.0, 50.0))) if slope else zero

    def told(found: tm.results.Crossing) -> bool:
        return found.high <= end or (zero > end and (slope < 0) == _falling(found, truth) and _near(zero, found))

    return tuple(told(one) for one in truth.crossings)


def _falling(found: tm.results.Crossing, truth: Truth) -> bool:
    return bool(found.leader_after == truth.pair[0])


def _near(at: float, found: tm.results.Crossing) -> bool:
    return found.low / FACTOR <= at <= found.high * FACTOR


def baselines(
    sizes: Mapping[Any, float], rates: Mapping[Any, Mapping[Any, float]], truth: Truth
) -> dict[str, bool | None]:
    """Whether cheap guesses name the final leader: after 5 % of the steps, the larger group, the purer labels."""
    if truth.final is None:
        return dict.fromkeys(("5 % of the training", "larger group", "label entropy"), None)
    first, second = truth.pair
    last = float(truth.gap.time[-1])
    early = float(truth.gap.sel(time=PILOT * last, method="nearest"))

    def entropy(group: Any) -> float:
        shares = np.asarray([share for share in rates[group].values() if share > 0])
        return float(-(shares * np.log(shares)).sum())

    return {
        "5 % of the training": bool(np.sign(early) == truth.final),
        "larger group": bool(np.sign(sizes[second] - sizes[first]) == truth.final),
        "label entropy": bool(np.sign(entropy(first) - entropy(second)) == truth.final),
    }
