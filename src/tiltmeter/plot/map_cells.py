"""Cells of a map: a matrix of kinds as a small number of rectangles, and one kind as hatching."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tiltmeter.plot.grid_axis import GridAxis
from tiltmeter.plot.theme import short

Rectangle = tuple[int, int, int, int, int]


def rectangles(kinds: np.ndarray) -> list[Rectangle]:
    """Rectangles (kind, row, row after, column, column after) that cover the matrix without overlap.

    >>> rectangles(np.array([[0, 0, 1], [0, 0, 1]]))
    [(0, 0, 2, 0, 2), (1, 0, 2, 2, 3)]

    Runs of one kind along a row are joined over rows where they coincide, so a map with short borders needs few
    rectangles.
    """
    found: list[Rectangle] = []
    begun: dict[tuple[int, int, int], int] = {}
    for row in range(kinds.shape[0] + 1):
        here = [(int(kinds[row, a]), a, b) for a, b in runs(kinds[row])] if row < kinds.shape[0] else []
        for run in [run for run in begun if run not in here]:
            found.append((run[0], begun.pop(run), row, run[1], run[2]))
        for run in here:
            begun.setdefault(run, row)
    return found


def runs(row: np.ndarray) -> list[tuple[int, int]]:
    """Start and end of every run of equal values.

    >>> runs(np.array([5, 5, 7]))
    [(0, 2), (2, 3)]
    """
    return list(pairwise([0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), row.size]))


def hatching(where: np.ndarray, x: GridAxis, y: GridAxis, lines: int = 80) -> list[dict[str, float | None]]:
    """Diagonal strokes over the cells that `where` selects, as pairs of points on the two axes."""
    if not where.any():
        return []
    strokes = []
    along = np.linspace(0.0, 1.0, 2 * max(where.shape) + 400)
    for offset in np.linspace(-1.0, 1.0, lines)[1:-1]:
        inside = along[(along + offset >= 0.0) & (along + offset <= 1.0)]
        across, up = x.at(inside), y.at(inside + offset)
        selected = where[y.cell(up), x.cell(across)]
        for start, stop in runs(selected):
            if selected[start] and stop - start > 1:
                last = stop - 1
                ends = {"x": across[start], "x2": across[last], "y": up[start], "y2": up[last]}
                strokes.append({name: short(value) for name, value in ends.items()})
    return strokes
