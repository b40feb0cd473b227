"""Two looks in one training: points that choose and points that judge, as one record that is taken apart later."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.experiments.shared.cell_tasks import Parts
from tiltmeter.record import Trajectory

CHOOSE, JUDGE = "chooses: ", "judges: "


def both_looks(parts: Parts) -> GroupedData:
    """The points of both parts, whose groups say to which part they belong."""
    halves = ((CHOOSE, parts.choose), (JUDGE, parts.judge))
    names = [f"{kind}{group}" for kind, part in halves for group in part.groups]
    members = [f"{kind}{part.groups[code]}" for kind, part in halves for code in part.codes]
    x = np.concatenate([part.x for _, part in halves])
    y = np.concatenate([part.y for _, part in halves])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cells are small on purpose
        return GroupedData(x, y, members, groups=names)


def of_both_looks(attribute: Mapping[Hashable, Hashable]) -> dict[Hashable, Hashable]:
    """The attribute of groups, told also of their names in both looks."""
    return {f"{kind}{group}": value for kind in ("", CHOOSE, JUDGE) for group, value in attribute.items()}


def looked(run: Trajectory, kind: str) -> Trajectory:
    """The curves of one of the two parts, under the groups' own names."""
    found = {}
    for name, curve in run.items():
        groups = [str(group) for group in curve.coords["group"].values]
        own = [group for group in groups if group.startswith(kind)]
        found[name] = curve.sel(group=own).assign_coords(group=[group.removeprefix(kind) for group in own])
    return Trajectory(found, run.clock, run.origin, run.diverged)
