"""Two evaluations in one training: points that choose and points that judge, as one record that is taken apart
later."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.shared.cell_tasks import Parts

CHOOSE, JUDGE = "chooses: ", "judges: "


def both_held_out(parts: Parts) -> tm.GroupedData:
    """The points of both parts, whose groups say to which part they belong."""
    halves = ((CHOOSE, parts.choose), (JUDGE, parts.judge))
    names = [f"{kind}{group}" for kind, part in halves for group in part.groups]
    members = [f"{kind}{part.groups[code]}" for kind, part in halves for code in part.codes]
    x = np.concatenate([part.x for _, part in halves])
    y = np.concatenate([part.y for _, part in halves])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cells are small on purpose
        return tm.GroupedData(x, y, members, groups=names)


def of_both_held_out(attribute: Mapping[Hashable, Hashable]) -> dict[Hashable, Hashable]:
    """The attribute of groups, told also of their names in both evaluations."""
    return {f"{kind}{group}": value for kind in ("", CHOOSE, JUDGE) for group, value in attribute.items()}


def evaluated(run: tm.Trajectory, kind: str) -> tm.Trajectory:
    """The curves of one of the two parts, under the groups' own names."""
    found = {}
    for name, curve in run.items():
        groups = [str(group) for group in curve.coords["group"].values]
        own = [group for group in groups if group.startswith(kind)]
        found[name] = curve.sel(group=own).assign_coords(group=[group.removeprefix(kind) for group in own])
    return tm.Trajectory(found, run.clock, run.origin, run.diverged)
