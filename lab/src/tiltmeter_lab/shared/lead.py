"""Lead: who leads over time in a measured run, for the claims of several experiments."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.shared.over_seeds import jackknife_error, mean_and_error

Pair = tuple[Hashable, Hashable]


def leaders(run: tm.Trajectory, curve: str = "loss") -> str:
    """Return the groups in the order in which they lead, such as "-+"; "" if nobody leads.

    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> leaders(predict(*cases.three_phases()))
    '+-+'
    """
    return "".join(map(str, tm.leaders(run, curve).order))


def final_gap(run: tm.Trajectory, curve: str = "loss") -> tuple[float, float]:
    """Return the mean over seeds of the last gap (first group minus second) and its standard error."""
    last = run[curve].isel(time=-1)
    return mean_and_error(last.isel(group=0) - last.isel(group=1))


def changes(
    run: tm.Trajectory, curve: str = "loss", pair: Pair | None = None, level: float = 0.05
) -> tuple[tm.results.Crossing, ...]:
    """Return the lead changes that are clear in one curve."""
    return tm.leaders(run, curve, groups=pair, level=level).changes


def crossing_distance(run: tm.Trajectory, exact: Sequence[float], order: str) -> tuple[float, float]:
    """Return how far the crossings of the mean loss are from these times, and the jackknife error of that.

    It is the largest relative distance, from each time to the nearest crossing. Where the groups do not lead in the
    expected order it is 1, without an error.
    """
    if leaders(run) != order:
        return 1.0, float("nan")
    curve = run["loss"].where(run["loss"]["time"] > 0, drop=True).transpose("time", "seed", "group")
    times, gaps = np.log(curve.coords["time"].values), curve.values[..., 0] - curve.values[..., 1]

    def distances(places: np.ndarray) -> np.ndarray:
        gap = gaps[:, places].mean(1)
        before = np.flatnonzero(gap[:-1] * gap[1:] < 0)
        crossings = times[before] + np.diff(times)[before] * gap[before] / (gap[before] - gap[before + 1])
        away = np.exp(crossings[:, None] - np.log(exact)) - 1.0
        return np.asarray(away[np.abs(away).argmin(0), np.arange(len(exact))])

    seeds = gaps.shape[1]
    size, error = np.abs(distances(np.arange(seeds))), jackknife_error(distances, seeds)
    return float(size.max()), float(error[size.argmax()])


def claim(run: tm.Trajectory, curve: str = "loss") -> str:
    """Return who leads when, in a sentence."""
    return tm.leaders(run, curve).headline.line


def of_each_seed(run: tm.Trajectory, curve: str = "loss", pair: Pair | None = None) -> list[tm.results.Leaders]:
    """Return who leads in every seed alone, by its held-out points."""

    def alone(seed: int) -> tm.Trajectory:
        return run.replace({n: c.sel(seed=[seed]) if "seed" in c.dims else c for n, c in run.items()})

    return [tm.leaders(alone(int(seed)), curve, groups=pair) for seed in run[curve].coords["seed"].values]
