"""Pairs of groups: which two are compared, and who leads."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations, permutations
from typing import TypeAlias

import xarray as xr

from tiltmeter.names import better_of

Pair: TypeAlias = tuple[Hashable, Hashable]
#: A pair as it may be asked for: two groups, or the label that curves of pairs give it, "north vs south".
AskedPair: TypeAlias = Pair | str

#: A gap counts as decided if it exceeds this many standard errors.
SURE = 2.0
#: Smaller gaps of exact curves are rounding errors.
ROUNDING = 1e-12


def groups_of(curve: xr.DataArray) -> list[Hashable]:
    """The groups of a curve, in order."""
    if "group" not in curve.dims:
        raise ValueError(f"Curve {curve.name!r} has no groups to compare.")
    return list(curve.coords["group"].values.tolist())


def the_pair(curve: xr.DataArray, pair: AskedPair | None) -> Pair:
    """The pair asked for, or the only one there is."""
    groups = groups_of(curve)
    if pair is None:
        if len(groups) == 1:
            raise ValueError(f"This compares two groups; there is one: {groups[0]!r}.")
        if len(groups) != 2:
            raise ValueError(
                f"This compares two groups; there are {len(groups)}: {', '.join(map(repr, groups))}. "
                f"Pass pair=({groups[0]!r}, {groups[1]!r}) or another pair. `leaders` answers for all pairs."
            )
        return groups[0], groups[1]
    if isinstance(pair, str):
        named = [one for one in permutations(groups, 2) if f"{one[0]} vs {one[1]}" == pair]
        if len(named) != 1:
            known = ", ".join(f'"{a} vs {b}"' for a, b in combinations(groups, 2))
            raise ValueError(f"`pair` should name two groups, as in {known}. Found pair = {pair!r}.")
        return named[0]
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"`pair` should name two different groups. Found pair = {pair!r}.")
    for group in pair:
        if group not in groups:
            raise KeyError(f"No group {group!r}. There are: {', '.join(map(repr, groups))}.")
    return pair[0], pair[1]


def resolution(curve: xr.DataArray) -> float:
    """The size below which gaps of an exact curve are errors: of rounding, or of the integration where it has one."""
    return max(ROUNDING, float(curve.attrs.get("resolution", 0.0)))


def leader_sign(name: str, curve: xr.DataArray) -> int:
    """+1 if the smaller value leads, -1 if the larger one does."""
    better = better_of(name, curve)
    if better == "neither":
        raise ValueError(f"Curve {name!r} is neither better high nor better low, so no group leads in it.")
    return 1 if better == "lower" else -1
