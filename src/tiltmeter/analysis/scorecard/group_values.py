"""Group values: one curve of several runs as plain arrays over the stretch of training that all of them have."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from tiltmeter.analysis.exact import exact_curve
from tiltmeter.analysis.pairs import ROUNDING, groups_of, leader_sign, resolution
from tiltmeter.record.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class GroupValues:
    """One curve of one run: `values` of shape (seed, time, group) at the run's own looks.

    `exact` says that they come from theory: there is no scatter, and none is missing. Differences below `resolution`
    are errors of rounding or integration.
    """

    times: np.ndarray
    values: np.ndarray
    seeds: tuple[Hashable, ...]
    groups: tuple[Hashable, ...]
    exact: bool
    resolution: float = ROUNDING

    def until(self, end: float) -> GroupValues:
        """The part up to a time, with the value there interpolated between looks if none is."""
        if end >= self.times[-1]:
            return self
        inside = self.times < end
        after = int(inside.sum())
        low, high = self.times[after - 1], self.times[after]
        share = (end - low) / (high - low)
        at_end = (1.0 - share) * self.values[:, after - 1] + share * self.values[:, after]
        return GroupValues(
            np.append(self.times[inside], end),
            np.concatenate([self.values[:, inside], at_end[:, None]], axis=1),
            self.seeds,
            self.groups,
            self.exact,
            self.resolution,
        )

    def over_training(self, per_look: np.ndarray) -> np.ndarray:
        """The mean over time of something with shape (seed, time), linear between looks."""
        length = float(self.times[-1] - self.times[0]) or 1.0
        return np.asarray(np.trapezoid(per_look, self.times, axis=1) / length)

    def spacing_error(self, per_look: np.ndarray) -> float:
        """How far this mean is off because looks are few: its change if every second look is left out."""
        half = np.unique(np.append(np.arange(0, len(self.times), 2), len(self.times) - 1))
        length = float(self.times[-1] - self.times[0]) or 1.0
        fewer = np.trapezoid(per_look[:, half], self.times[half], axis=1) / length
        return float(np.abs(self.over_training(per_look) - fewer).max())


def group_values(trajectory: Trajectory, curve: str, groups: tuple[Hashable, ...] | None = None) -> GroupValues:
    """One curve of a run, with the groups in the order asked for."""
    values = trajectory[curve]
    found = groups_of(values)
    if leader_sign(curve, values) < 0:
        raise ValueError(f"A scorecard needs a curve for which lower is better. Found {curve!r}.")
    extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra:
        raise ValueError(f"A scorecard is for single runs and their seeds: select one point of {', '.join(extra)}.")
    if not values.sizes["time"]:
        raise ValueError(f"Curve {curve!r} has no looks: nothing is recorded yet.")
    if groups is not None and set(groups) != set(found):
        raise ValueError(
            f"Runs of a scorecard should have the same groups. Found {', '.join(map(repr, found))} beside "
            f"{', '.join(map(repr, groups))}."
        )
    order = [found.index(group) for group in groups or found]
    seeds: tuple[Hashable, ...] = tuple(values.coords["seed"].values.tolist()) if "seed" in values.dims else (None,)
    full = values if "seed" in values.dims else values.expand_dims("seed")
    array = full.transpose("seed", "time", "group").values[:, :, order].astype(float)
    exact = "seed" not in values.dims and exact_curve(trajectory, curve) is not None
    times = values.coords["time"].values.astype(float)
    return GroupValues(times, array, seeds, tuple(groups or found), exact, resolution(values))


def every_group_values(runs: Mapping[str, Trajectory], curve: str) -> dict[str, GroupValues]:
    """The curve of every run at its own looks, groups in the order of the first run; they must overlap in time."""
    clocks = {run.clock for run in runs.values()}
    if len(clocks) > 1:
        raise ValueError(f"Runs of a scorecard should count time alike. Found the clocks {', '.join(sorted(clocks))}.")
    groups: tuple[Hashable, ...] | None = None
    found = {}
    for name, run in runs.items():
        found[name] = group_values(run, curve, groups)
        groups = found[name].groups
    start = max(one.times[0] for one in found.values())
    end = min(one.times[-1] for one in found.values())
    if start > end:
        raise ValueError("Runs of a scorecard should overlap in time. Found runs that do not.")
    return found


def on_common_stretch(runs: Mapping[str, Trajectory], curve: str) -> dict[str, GroupValues]:
    """The curve of every run at its own looks up to the earliest end: for pictures."""
    found = every_group_values(runs, curve)
    end = min(one.times[-1] for one in found.values())
    return {name: one.until(end) for name, one in found.items()}
