"""Equal progress: the worst group when training has got equally far, whatever the number of steps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

import tiltmeter as tm


def label(stored: Any) -> Hashable:
    """A group's label as the origin of a run stores it: a tuple is written as a list."""
    return tuple(map(label, stored)) if isinstance(stored, list) else stored


def training_shares(run: tm.Trajectory, groups: Sequence[Hashable]) -> np.ndarray:
    """The share of each group among the training points of a recorded training."""
    recorded: Any = run.origin.settings["train"]
    sizes = {label(group): float(size) for group, size in recorded["sizes"]}
    counts = np.array([sizes[group] for group in groups])
    return np.asarray(counts / counts.sum())


def losses(run: tm.Trajectory) -> np.ndarray:
    """The losses of all groups, (seed, time, group)."""
    curve = run["loss"] if "seed" in run["loss"].dims else run["loss"].expand_dims("seed")
    return np.asarray(curve.transpose("seed", "time", "group").values, dtype=float)


def part_of_fall(values: np.ndarray, shares: np.ndarray, part: float) -> float:
    """The mean loss at which this part of its fall, from the first evaluation to the lowest, is completed."""
    mean = np.nanmean(values @ shares, axis=0)
    return float(mean[0] - part * (mean[0] - np.nanmin(mean)))


def when_reached(values: np.ndarray, shares: np.ndarray, level: float) -> np.ndarray:
    """The groups of one seed, (time, group), where the mean first reaches `level`; NaN if it never does.

    >>> when_reached(np.array([[0.5, 0.5], [0.1, 0.3]]), np.array([0.5, 0.5]), 0.35).round(3)
    array([0.3, 0.4])
    """
    mean = values @ shares
    reached = np.flatnonzero(mean <= level)
    if not reached.size:
        return np.full(values.shape[1], np.nan)
    after = int(reached[0])
    if after == 0:
        return np.asarray(values[0])
    share = (mean[after - 1] - level) / (mean[after - 1] - mean[after])
    return np.asarray((1.0 - share) * values[after - 1] + share * values[after])
