"""permute: what a factor would get if it had no effect at all."""

from __future__ import annotations

import numpy as np


def permute(values: np.ndarray, axis: int, shared: bool, generator: np.random.Generator) -> np.ndarray:
    """Runs of a grid (factors..., seeds) with one factor shuffled wherever all other factors are equal.

    >>> grid = np.arange(12.0).reshape(2, 3, 2)
    >>> shuffled = permute(grid, 0, False, np.random.default_rng(0))
    >>> sorted(shuffled[:, 1].ravel()) == sorted(grid[:, 1].ravel())
    True

    If the factor has no effect, runs that differ in nothing else are exchangeable, whatever the other factors do: the
    shuffled grid is as likely as the one seen, so a test by it keeps its level exactly. With shared seeds, runs are
    shuffled among those of the same seed. Missing runs stay where they are.
    """
    moved = np.moveaxis(values, axis, -2)  # others..., factor, seed
    if shared:
        moved = np.swapaxes(moved, -1, -2)
    rows = moved.reshape(-1, moved.shape[-1] if shared else moved.shape[-1] * moved.shape[-2]).copy()
    # Sorting random keys shuffles every row; missing runs get keys that sort them to the end, in both places.
    there = np.isfinite(rows)
    keys = np.where(there, generator.random(rows.shape), 2.0)
    drawn = np.take_along_axis(rows, np.argsort(keys, -1), -1)
    target = np.argsort(~there, -1, kind="stable")
    np.put_along_axis(rows, target, drawn, -1)
    found = rows.reshape(moved.shape)
    return np.moveaxis(np.swapaxes(found, -1, -2) if shared else found, -2, axis)


def paired_often(values: np.ndarray, axis: int) -> bool:
    """Whether most runs have another that differs in this factor alone: without such pairs, shuffling changes nothing.

    >>> paired_often(np.ones((2, 3, 1)), 0), paired_often(np.array([[[1.0], [np.nan]], [[np.nan], [1.0]]]), 0)
    (True, False)
    """
    there = np.moveaxis(np.isfinite(values).any(-1), axis, -1)
    several = there.sum(-1) > 1
    return bool(there[several].sum() >= 0.5 * there.sum())
