"""Pulls of a group law, checked, also before every group has been seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiltmeter.interventions.group_law import GroupLaw, Seen
from tiltmeter.interventions.shared.softmax import FEW


def pulls(law: GroupLaw, z: np.ndarray, seen: Seen) -> np.ndarray:
    """Return the pulls of all groups now, divided by their sum for draws.

    >>> from tiltmeter.interventions import Tilted
    >>> seen = Seen(0.0, ("+", "-"), np.array([0.8, 0.2]), np.array([0.5, np.nan]))
    >>> pulls(Tilted(), np.zeros(2), seen)
    array([0.8, 0.2])

    As long as a group has not been seen and the law has no value for it, groups count as they are drawn.
    """
    found = np.asarray(law.pull(z, seen), dtype=float)
    if found.shape != seen.shares.shape:
        raise ValueError(
            f"`pull` of {type(law).__name__} should give one number per group, shape {seen.shares.shape}. "
            f"Found shape {found.shape}."
        )
    if unknown(found):
        blind = np.isnan(found).any(-1, keepdims=True) & np.isnan(seen.losses).any(-1, keepdims=True)
        found = np.where(blind, seen.shares, found)
    if law.by == "draws":
        if found.min() < 0.0:
            raise ValueError(f'{type(law).__name__} pulls a group negatively, which no draw can do: use by="weights".')
        found = found / np.add.reduce(found, axis=-1, keepdims=True)
    return found


def changed(law: GroupLaw, z: np.ndarray, seen: Seen, duration: float) -> np.ndarray:
    """Return the state after `duration` on the clock; unchanged as long as some group has not been seen."""
    if type(law).change is GroupLaw.change:
        return z
    moved = law.project(z + (law.change(z, seen) if duration == 1.0 else duration * law.change(z, seen)))
    if unknown(seen.losses):
        blind = np.isnan(seen.losses).any(-1)
        moved = np.where(blind.reshape(*blind.shape, *(1,) * (moved.ndim - blind.ndim)), z, moved)
    return np.asarray(moved)


def unknown(values: np.ndarray) -> bool:
    """Whether some value may be NaN; a few are added faster by Python than by NumPy."""
    total = sum(values.tolist()) if values.ndim == 1 and len(values) <= FEW else np.add.reduce(values, axis=None)
    return bool(total != total)


def gram_pulls(law: GroupLaw, z: np.ndarray, seen: Seen, present: np.ndarray) -> np.ndarray:
    """Return pulls (runs, G) of a Gram law, each run with its own batch; groups not `present` get 0.

    >>> from tiltmeter.interventions import UPGrad
    >>> gram, here = np.diag([1.0, 0.0])[None], np.array([[True, False]])
    >>> seen = Seen(0.0, ("+", "-"), np.full((1, 2), 0.5), np.zeros((1, 2)), gram=gram)
    >>> gram_pulls(UPGrad(), np.zeros((1, 2)), seen, here)
    array([[1., 0.]])
    """
    found = np.zeros(seen.shares.shape)
    assert seen.gram is not None
    for pattern in np.unique(present, axis=0):
        runs = np.flatnonzero((present == pattern).all(1))
        here = np.flatnonzero(pattern)
        if not here.size:
            continue
        cut = np.ix_(runs, here)
        part = replace(
            seen,
            groups=tuple(seen.groups[g] for g in here),
            shares=seen.shares[cut],
            losses=seen.losses[cut],
            gram=seen.gram[np.ix_(runs, here, here)],
        )
        found[cut] = law.pull(z[cut] if z.shape == seen.shares.shape else z[runs], part)
    return found
