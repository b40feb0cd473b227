"""Design: factors and pairs of factors as columns that are orthonormal over the whole grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import prod

import numpy as np


@dataclass(frozen=True)
class Design:
    """Which cells of a grid were seen, and the columns of every term over them.

    >>> design = make_design({"a": 2, "b": 3}, np.ones((2, 3), bool))
    >>> design.terms, design.columns.shape
    ((('a',), ('b',), ('a', 'b')), (6, 6))

    The uniform measure is that of the grid, not of the cells that happened to finish. `terms` are tuples of factors;
    pairs of which some combination of levels was never seen are left out and named in `dropped`.
    """

    sizes: dict[str, int]
    seen: np.ndarray
    terms: tuple[tuple[str, ...], ...]
    columns: np.ndarray
    slices: tuple[slice, ...]
    dropped: tuple[tuple[str, ...], ...]

    @property
    def complete(self) -> bool:
        """Whether every cell of the grid was seen."""
        return bool(self.seen.all())

    @property
    def cells(self) -> int:
        """How many cells the whole grid has."""
        return prod(self.sizes.values())

    @cached_property
    def solve(self) -> np.ndarray:
        """Least squares: coefficients = solve @ means of the cells seen."""
        return np.linalg.pinv(self.columns)

    @cached_property
    def leftover(self) -> np.ndarray:
        """The diagonal of the projection onto what no term explains."""
        return np.asarray(1.0 - np.einsum("np,pn->n", self.columns, self.solve))


def make_design(sizes: dict[str, int], seen: np.ndarray) -> Design:
    """All factors, and all pairs that the cells seen can tell."""
    where = np.nonzero(seen)
    codes = {name: where[axis] for axis, name in enumerate(sizes)}
    single = {name: effect_coding(size)[codes[name]] for name, size in sizes.items()}
    for name, size in sizes.items():
        if len(np.unique(codes[name])) < size:
            raise ValueError(f"Every level of a factor should have a result. Found none for a level of {name!r}.")
    parts = [np.ones((len(where[0]), 1)), *single.values()]
    terms: list[tuple[str, ...]] = [(name,) for name in sizes]
    known = _directions(np.empty((len(where[0]), 0)), np.hstack(parts))
    if known is None:
        raise ValueError("The results do not tell the factors apart: in the cells that have one, they vary together.")
    dropped = []
    for one, two in combinations(sizes, 2):
        pair = (single[one][:, :, None] * single[two][:, None, :]).reshape(len(where[0]), -1)
        both = len({*zip(codes[one].tolist(), codes[two].tolist(), strict=True)}) == sizes[one] * sizes[two]
        fresh = _directions(known, pair) if both else None
        if fresh is not None:
            known = np.hstack([known, fresh])
            parts.append(pair)
            terms.append((one, two))
        else:
            dropped.append((one, two))
    edges = np.cumsum([part.shape[1] for part in parts])
    slices = tuple(slice(int(a), int(b)) for a, b in pairwise(edges))
    return Design(sizes, seen, tuple(terms), np.hstack(parts), slices, tuple(dropped))


def _directions(known: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """An orthonormal basis of what these columns add to the known directions; None if they add fewer than they are."""
    if known.shape[1] + columns.shape[1] > len(columns):
        return None
    rest = columns
    for _ in range(2):  # twice: the first time leaves rounding errors
        rest = rest - known @ (known.T @ rest)
    left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    return left if sizes[-1] > 1e-9 * np.linalg.norm(columns) else None


def effect_coding(levels: int) -> np.ndarray:
    """Contrasts of a factor: mean 0 and mean square 1 over its levels, and orthogonal.

    >>> coding = effect_coding(3)
    >>> np.allclose(coding.sum(0), 0), np.allclose(coding.T @ coding / 3, np.eye(2))
    (True, True)
    """
    contrasts = np.zeros((levels, levels - 1))
    for column in range(levels - 1):
        contrasts[: column + 1, column] = 1.0
        contrasts[column + 1, column] = -(column + 1.0)
    return np.asarray(contrasts * np.sqrt(levels / (contrasts**2).sum(0)))
