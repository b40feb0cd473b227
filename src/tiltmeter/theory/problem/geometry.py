"""Geometry: means, teachers and students in coordinates of the span of all means and teachers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from tiltmeter.theory.problem.starts import Overlaps, Start

#: Directions shorter than this, relative to the longest, are rounding errors.
NEGLIGIBLE = 1e-12


def factor(gram: np.ndarray) -> np.ndarray:
    """Rows with this Gram matrix, with as many coordinates as its numerical rank (Cholesky would need full rank).

    >>> factor(np.ones((2, 2))).shape
    (2, 1)
    """
    values, vectors = np.linalg.eigh(gram)
    kept = values > NEGLIGIBLE * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def place(
    start: Start, groups: tuple[Hashable, ...], means: np.ndarray, teachers: np.ndarray, units: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Where `Overlaps` put the units: coordinates in the span (K, rank), a root of the Gram matrix of the rest, and
    bias.

    Any other start is at zero here: in high dimension random weights have no overlaps.
    """
    visible = np.zeros((units, means.shape[1]))
    if not isinstance(start, Overlaps):
        return visible, np.zeros((units, units)), 0.0
    for key in (*start.M, *start.R):
        if key not in groups:
            raise KeyError(f"`start` names the unknown group {key!r}. There are: {', '.join(map(repr, groups))}.")
    overlaps = np.stack([_per_unit(start, name, g, units) for name in ("M", "R") for g in groups], axis=1)
    Q = np.atleast_2d(np.asarray(start.Q, dtype=float))
    if Q.shape != (units, units):
        raise ValueError(f"`Q` of the start should be {units} x {units} for {units} units. Found Q = {start.Q!r}.")
    span = np.concatenate([means, teachers])
    visible = np.linalg.lstsq(span, overlaps.T, rcond=1e-9)[0].T
    off = float(np.abs(visible @ span.T - overlaps).max())
    if off > 1e-7:
        raise ValueError(
            "No student has these starting overlaps: they contradict the geometry of the means and teachers "
            f"by {off:.3g}."
        )
    values, vectors = np.linalg.eigh(Q - visible @ visible.T)
    if values[0] < -1e-9 * max(1.0, float(Q.max())):
        raise ValueError(
            "`Q` of the start should be at least as large as the overlaps with means and teachers require. "
            f"Found that it is too small by {-values[0]:.3g}."
        )
    return visible, vectors * np.sqrt(np.maximum(values, 0.0)), float(start.bias)


def _per_unit(start: Overlaps, name: str, group: Hashable, units: int) -> np.ndarray:
    given: Any = getattr(start, name).get(group, 0.0)
    values = np.atleast_1d(np.asarray(given, dtype=float))
    if values.shape != (units,) and given != 0.0:
        raise ValueError(
            f"`{name}` of the start should have one number for each of the {units} units. Found {name}[{group!r}] = "
            f"{given!r}."
        )
    return np.broadcast_to(values, (units,))
