"""calibration: whether the probabilities of a trained model match the outcomes, by group."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.arguments import A_RUN, checked_count, checked_kind, checked_share
from tiltmeter.fairness.estimate import Estimate, wilson
from tiltmeter.fairness.last_evaluation import kept_at
from tiltmeter.leaders.bands import MANY
from tiltmeter.leaders.points import FEWEST, kept_points
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name

#: Number of bins of equal size, by probability, and number of draws for the limits.
BINS, DRAWS = 10, 999
#: Numbers held in memory at once.
BLOCK = 2**22


@dataclass(frozen=True)
class Bin:
    """Points of similar probability: its mean, and the share for which it came true, with 95 % limits (Wilson)."""

    points: float
    probability: float
    share: Estimate


@dataclass(frozen=True)
class GroupCalibration:
    """One group: `error` is the expected calibration error, the mean distance between probability and share over bins.

    A calibrated model has one too, from the finite number of points: `chance` is its mean and `limit` is exceeded in a
    share `level` / groups of cases, so that over all groups a calibrated model exceeds it in at most `level`. `offset`
    is the mean probability minus the share that came true; positive: too high.
    """

    group: Hashable
    points: int
    error: float
    chance: float
    limit: float
    offset: float
    bins: tuple[Bin, ...]

    @property
    def shown(self) -> bool:
        """Whether the probabilities are shown to be miscalibrated."""
        return self.error > self.limit


@dataclass(frozen=True)
class Calibration(NotebookText):
    """All groups at one evaluation; `of` says what the probabilities are of. Groups of fewer than 20 points are left
    out."""

    groups: tuple[GroupCalibration, ...]
    of: str
    level: float
    left_out: tuple[Hashable, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"{group_name(one.group)}: off by {100 * one.error:.1f} points on average, "
            + (
                f"more than chance ({100 * one.limit:.1f})"
                if one.shown
                else f"chance alone gives {100 * one.chance:.1f}"
            )
            for one in self.groups
        ]
        return f"{'; '.join(parts) or 'No group has enough points'}."


def calibration(trajectory: Trajectory, *, level: float = 0.05, bins: int = BINS) -> Calibration | None:
    """Return how far the probabilities at the last evaluation of a run are from the outcomes; None if none were kept.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> rng = np.random.default_rng(0)
    >>> chance, groups = rng.random(4000), np.repeat(["a", "b"], 2000)
    >>> came = rng.random(4000) < np.where(groups == "a", chance, chance**2)  # those of b are too high
    >>> coords = {"time": [10], "group": ("point", groups), "positive": ("point", came)}
    >>> arrays = {"probability": chance, "loss": chance, "decided_positive": chance > 0.5}
    >>> points = {name: xr.DataArray(one[None], dims=("time", "point"), coords=coords) for name, one in arrays.items()}
    >>> print(calibration(Trajectory({}, "step", Origin("training"), points=points)))
    a: off by 2.6 points on average, chance alone gives 2.2; b: off by 16.8 points on average, more than chance (3.4).

    For two labels these are probabilities of the positive one, for several the confidence in the decision. Limits come
    from outcomes drawn with the probabilities of the model (Broecker and Smith, 2007). Several seeds share their
    points; they are averaged, with the same drawn outcomes for all of them.

    A small error does not mean that the model is useful: the base rate for everyone is calibrated.

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        level: Error rate of the limits.
        bins: Number of bins of probability, each with about as many points.
    """
    checked_count("bins", bins, 1000)
    checked_kind("trajectory", trajectory, Trajectory, A_RUN)
    checked_share("level", level)
    if bins < 1:
        raise ValueError(f"`bins` should be at least 1. Found bins = {bins}.")
    found = _answers(trajectory)
    if found is None:
        return None
    groups, codes, chance, came, of = found
    sizes = np.bincount(codes, minlength=len(groups))
    judged = [place for place, size in enumerate(sizes) if size >= FEWEST]
    parts = tuple(
        _of_group(groups[place], chance[:, codes == place], came[:, codes == place], level / max(len(judged), 1), bins)
        for place in judged
    )
    left_out = tuple(group for group, size in zip(groups, sizes, strict=True) if size < FEWEST)
    return Calibration(parts, of, level, left_out)


def _answers(
    trajectory: Trajectory,
) -> tuple[tuple[Hashable, ...], np.ndarray, np.ndarray, np.ndarray, str] | None:
    """Groups, their codes, probabilities (seeds, points), what came true, and what they are probabilities of."""
    name = next((one for one in ("probability", "confidence") if one in trajectory.points), None)
    kept = kept_points(trajectory)
    if name is None or kept is None:
        return None
    chance = kept_at(trajectory, name, float(kept.times[-1]))
    if chance is None or len(chance) != kept.seeds:
        return None
    if name == "probability":
        positive = trajectory.points[name].coords["positive"].values.astype(bool)
        came = np.broadcast_to(positive, chance.shape)
        return kept.groups, kept.codes, chance, came, "the positive label"
    wrong = kept.named(["error"])[0].values[..., -1, :]
    return kept.groups, kept.codes, chance, ~np.atleast_2d(wrong), "the decision"


def _of_group(group: Hashable, chance: np.ndarray, came: np.ndarray, level: float, bins: int) -> GroupCalibration:
    orders = np.argsort(chance, axis=1, kind="stable")
    ordered = np.take_along_axis(chance, orders, 1).astype(float)
    edges = [_edges(row, bins) for row in ordered]
    error = _error(ordered, np.take_along_axis(came, orders, 1)[None], edges)[0]
    luck = _luck(ordered, orders, edges)
    return GroupCalibration(
        group,
        chance.shape[1],
        float(error),
        float(luck.mean()),
        float(np.quantile(luck, 1.0 - level, method="higher")),
        float(chance.mean(dtype=np.float64) - came.mean()),
        _bins(chance.ravel(), came.ravel(), bins, len(chance)),
    )


def _edges(ordered: np.ndarray, bins: int) -> np.ndarray:
    """First places of bins of equal size; equal probabilities stay together."""
    wanted = np.linspace(0, len(ordered), bins + 1)[:-1].round().astype(int)
    return np.unique(np.searchsorted(ordered, ordered[wanted]))


def _error(ordered: np.ndarray, came: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """(draws,) of outcomes (draws, seeds, points): the mean over seeds of the calibration error."""
    total = np.zeros(len(came))
    for seed, first in enumerate(edges):
        expected = np.add.reduceat(ordered[seed], first)
        total += np.abs(np.add.reduceat(came[:, seed].astype(np.float32), first, axis=1) - expected).sum(1)
    return np.asarray(total / ordered.size)


def _luck(ordered: np.ndarray, orders: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """Return the calibration errors of a perfectly calibrated model, in many draws of the outcomes."""
    rng = np.random.default_rng(12)
    if len(ordered) == 1 and ordered.size >= MANY:
        # What comes true in a bin of so many points is normal, with this spread, and bins are independent.
        spread = np.sqrt(np.add.reduceat(ordered[0] * (1.0 - ordered[0]), edges[0]))
        return np.asarray(np.abs(rng.normal(size=(DRAWS, len(spread))) * spread).sum(1) / ordered.size)
    rows = max(1, BLOCK // ordered.size)
    found = []
    for start in range(0, DRAWS, rows):
        same = rng.random((min(rows, DRAWS - start), ordered.shape[1]), dtype=np.float32)
        found.append(_error(ordered, same[:, orders] < ordered, edges))
    return np.concatenate(found)


def _bins(chance: np.ndarray, came: np.ndarray, bins: int, seeds: int) -> tuple[Bin, ...]:
    order = np.argsort(chance, kind="stable")
    ordered, happened = chance[order].astype(float), came[order]
    edges = _edges(ordered, bins)
    sizes = np.diff([*edges, len(ordered)])
    mean, share = (np.add.reduceat(one.astype(float), edges) / sizes for one in (ordered, happened))
    return tuple(
        Bin(size / seeds, float(m), wilson(float(s), size / seeds))
        for size, m, s in zip(sizes, mean, share, strict=True)
    )
