"""Comparison of several runs: who leads, when the lead changes, who is worst off, how large the gap is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.analysis.crossings import Crossings, crossings
from tiltmeter.analysis.pairs import groups_of, leader_sign, resolution
from tiltmeter.names import NOBODY
from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.visible_text import group_name


@dataclass(frozen=True)
class Compared:
    """One run. The leaders are those of its `crossings`, "" if none is shown (see `standing`).

    `worst_group` is the group that is shown to be the worst off at the last look, "" if none is; `could_be_worst` names
    all groups that may be. `worst` is the worst value seen there, `mean` the mean over groups with equal weights.
    `area` is the largest gap between any two groups, integrated over the logarithm (base 10) of time.
    """

    name: str
    first_leader: Hashable
    last_leader: Hashable
    crossings: Crossings
    worst_group: Hashable
    could_be_worst: tuple[Hashable, ...]
    worst: float
    mean: float
    gap: float
    area: float


@dataclass(frozen=True)
class Comparison(NotebookText):
    """The runs in the order given; as text, one sentence each."""

    rows: tuple[Compared, ...]
    curve: str

    def __str__(self) -> str:
        lines = []
        for row in self.rows:
            times = ", ".join(f"{crossing.time:.4g}" for crossing in row.crossings)
            changes = f"the lead changes at {times}" if times else "no change of leader is shown"
            lines.append(
                f"{row.name}: {self._leads(row)}; {changes}; {self._worst(row)}; area under the gap {row.area:.4g}."
            )
        return "\n".join(lines)

    def _leads(self, row: Compared) -> str:
        if row.last_leader == NOBODY:
            return "no leader is shown"
        standing = row.crossings.standing
        if standing is None or any(one.leader[-1] == row.last_leader for one in standing.of(self.curve)):
            return f"{row.last_leader} leads last"
        return f"no leader is shown at the end (the last that is shown is {row.last_leader})"

    def _worst(self, row: Compared) -> str:
        if row.worst_group != NOBODY:
            return f"worst group {group_name(row.worst_group)} ({self.curve} {row.worst:.4g})"
        if not row.could_be_worst:
            return f"worst group not judged ({self.curve} up to {row.worst:.4g})"
        names = ", ".join(map(group_name, row.could_be_worst))
        return f"could be worst: {names} (worst {self.curve} seen {row.worst:.4g})"


def comparison(
    trajectories: Sequence[Trajectory], names: Sequence[str], curve: str = "loss", level: float = 0.05
) -> Comparison:
    """Compare runs in one curve; leaders and crossings of each run hold at the error rate `level`.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> runs = [predict(*case()) for case in (cases.centred_crossing, cases.three_phases)]
    >>> print(comparison(runs, ["one", "two"]))
    one: + leads last; the lead changes at 5.643; worst group - (loss 0.4416); area under the gap 0.2108.
    two: + leads last; the lead changes at 1.128, 11.88; worst group - (loss 0.3158); area under the gap 0.08243.
    """
    if not trajectories:
        raise ValueError("`comparison` needs at least one run. Found none.")
    return Comparison(tuple(_row(t, name, curve, level) for t, name in zip(trajectories, names, strict=True)), curve)


def _row(trajectory: Trajectory, name: str, curve: str, level: float) -> Compared:
    found = crossings(trajectory, curve, level=level)
    values = trajectory[curve]
    values = (values.mean("seed") if "seed" in values.dims else values).transpose("time", "group")
    groups = groups_of(values)
    last = values.values[-1]
    worst = int(np.nanargmax(last * leader_sign(curve, values)))
    possible = _could_be_worst(found, curve, groups, last * leader_sign(curve, values), resolution(values))
    return Compared(
        name=name,
        first_leader=found.first_leader,
        last_leader=found.last_leader,
        crossings=found,
        worst_group=possible[0] if len(possible) == 1 else NOBODY,
        could_be_worst=possible,
        worst=float(last[worst]),
        mean=float(np.nanmean(last)),
        gap=float(np.nanmax(last) - np.nanmin(last)),
        area=_area(values),
    )


def _could_be_worst(
    found: Crossings, curve: str, groups: list[Hashable], badness: np.ndarray, resolution: float
) -> tuple[Hashable, ...]:
    """The groups that may be the worst: of exact curves, those of the largest value; none where nothing is judged."""
    if found.standing is None:
        largest = np.nanmax(badness)
        return tuple(group for group, value in zip(groups, badness, strict=True) if value >= largest - resolution)
    return found.standing.could_be_worst(curve)


def _area(values: xr.DataArray) -> float:
    positive = values.isel(time=values.coords["time"].values > 0)
    gap = positive.max("group") - positive.min("group")
    return float(np.trapezoid(gap.values, np.log10(gap.coords["time"].values)))
