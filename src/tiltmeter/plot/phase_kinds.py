"""Kinds of grid point: which group leads at the end, with or without a crossing before, or why no group does."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from tiltmeter.analysis.grids import crossing_count, leader_of
from tiltmeter.analysis.pairs import groups_of
from tiltmeter.plot.theme import SHADES, group_name
from tiltmeter.record.trajectory import Trajectory


class Kinds(NamedTuple):
    """The kind of every point as an index into `names`; rows are along the second dimension given."""

    names: list[str]
    colours: list[str]
    matrix: np.ndarray
    tie: int
    valueless: int


def kinds_of(trajectory: Trajectory, curve: str, across: str, up: str) -> Kinds:
    """The kind of every point of a two-dimensional grid.

    A point without a value at the last time has diverged, unless the trajectory records that it has not.
    """
    values = trajectory[curve]
    groups = groups_of(values)
    final = values.isel(time=-1, drop=True)
    leads = leader_of(final, curve).transpose(up, across)
    matrix = np.full(leads.shape, 2 * len(groups))
    ahead = {group: _equal(leads.values, group) for group in groups}
    for i, group in enumerate(groups):
        matrix[ahead[group]] = 2 * i
    crossed = np.zeros(leads.shape, dtype=bool)
    for a, b in combinations(groups, 2):
        count = crossing_count(trajectory, curve, (a, b)).transpose(up, across).values
        crossed |= (count > 0) & (ahead[a] | ahead[b])
    matrix[crossed] += 1
    empty = final.isnull().all("group").transpose(up, across)
    matrix[empty.values] = 2 * len(groups) + 1
    known = trajectory.diverged
    explained = known is None or bool(known.notnull().broadcast_like(empty).where(empty, True).all())
    names: list[str] = []
    colours: list[str] = []
    for i, group in enumerate(groups):
        names += [f"{group_name(group)} leads, no crossing", f"{group_name(group)} leads after a crossing"]
        colours += SHADES[i % len(SHADES)]
    return Kinds(
        [*names, "tie", "diverged" if explained else "no value"],
        [*colours, "#FFFFFF", "#FFFFFF"],
        matrix,
        2 * len(groups),
        2 * len(groups) + 1,
    )


def _equal(labels: np.ndarray, group: Hashable) -> np.ndarray:
    """Where a label occurs; compared one by one, because a label may be a tuple."""
    return np.array([label == group for label in labels.flat], dtype=bool).reshape(labels.shape)
