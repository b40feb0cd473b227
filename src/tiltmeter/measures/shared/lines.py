"""lines: segments through inputs, within a class, between classes or in random directions."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

Path: TypeAlias = Literal["within", "between", "random"]
PATHS: tuple[Path, ...] = ("within", "between", "random")


def line_ends(
    x: np.ndarray, y: np.ndarray, path: Path, lines: int, length: float | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of each line, each (lines, inputs); the start is one of the points.

    >>> start, end = line_ends(np.eye(4), np.array([0, 0, 1, 1]), "within", 3, None, seed=0)
    >>> ((end - start) ** 2).sum(1).tolist()
    [2.0, 2.0, 2.0]

    The line ends at another point of the same class ("within"), at a point of another class ("between"), or in a random
    direction at the mean distance between two points ("random"). With `length`, it goes that far in the same direction.
    """
    rng = np.random.default_rng(seed)
    if path == "random":
        first, second = rng.integers(0, len(x), (2, lines))
        direction = rng.normal(size=(lines, x.shape[1]))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        if length is None:
            apart = np.linalg.norm(x[first] - x[second], axis=1)[first != second]
            if not len(apart) or not apart.mean() > 0:
                raise ValueError(
                    "`length` should be given for random lines where no two points differ. Found length = None."
                )
            length = float(apart.mean())
        return x[first], x[first] + length * direction
    first, second = _pairs(y, path, lines, rng)
    start, end = x[first], x[second]
    if length is not None:
        apart = np.linalg.norm(end - start, axis=1, keepdims=True)
        end = start + length * (end - start) / np.where(apart > 0, apart, 1.0)
    return start, end


def _pairs(y: np.ndarray, path: Path, lines: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices of two different points with equal or with different labels; any point that has such a partner may be a
    start.
    """
    labels, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes)
    partners = counts[codes] - 1 if path == "within" else len(y) - counts[codes]
    able = np.flatnonzero(partners > 0)
    if not len(able):
        wanted = "two points of one class" if path == "within" else "points of two classes"
        raise ValueError(f"Paths {path!r} should have {wanted}. Found {len(y)} points of {len(labels)} classes.")
    first = rng.choice(able, lines)
    order = np.argsort(codes, kind="stable")
    begins = np.concatenate([[0], np.cumsum(counts)])
    place = np.empty(len(y), dtype=np.int64)
    place[order] = np.arange(len(y))
    # The nth partner in an order in which each class is contiguous: skip the point itself, or its whole class.
    nth = (rng.random(lines) * partners[first]).astype(np.int64)
    own = begins[codes[first]]
    if path == "within":
        return first, order[own + nth + (own + nth >= place[first])]
    return first, order[nth + np.where(nth >= own, counts[codes[first]], 0)]
