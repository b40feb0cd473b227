"""Shares: how much groups count, computed from their losses."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import exp, inf
from typing import Any

import numpy as np


def capped_shares(shares: np.ndarray, losses: np.ndarray, strength: float, cap: float = np.inf) -> np.ndarray:
    """P = p clip(1 + strength (L - level), 0, cap) with the level at which P sums to one; exact, over the last axis.

    >>> capped_shares(np.array([0.5, 0.5]), np.array([1.0, 0.0]), strength=1.0)
    array([0.75, 0.25])
    >>> capped_shares(np.array([0.5, 0.5]), np.array([9.0, 0.0]), strength=1.0, cap=1.5)
    array([0.75, 0.25])

    It maximises sum P L - sum (P - p)^2 / (2 strength p) under 0 <= P <= cap p and sum P = 1.
    """
    mean = (shares * losses).sum(-1, keepdims=True)
    # The sum is piecewise linear and decreasing in the level, with kinks at these levels.
    levels = [losses + 1.0 / strength, mean]
    if np.isfinite(cap):
        levels.append(losses + (1.0 - cap) / strength)
    corners = np.sort(np.concatenate(levels, axis=-1), axis=-1)

    def pulls(level: np.ndarray) -> np.ndarray:
        return np.asarray(shares * np.clip(1.0 + strength * (losses - level), 0.0, cap))

    totals = np.stack([pulls(corners[..., i : i + 1]).sum(-1) for i in range(corners.shape[-1])], axis=-1)
    last = np.clip((totals >= 1.0).sum(-1, keepdims=True) - 1, 0, corners.shape[-1] - 2)
    low, high = (np.take_along_axis(corners, last + i, -1) for i in (0, 1))
    above, below = (np.take_along_axis(totals, last + i, -1) for i in (0, 1))
    fall = np.where(above > below, above - below, 1.0)
    found = pulls(low + np.clip((above - 1.0) / fall, 0.0, 1.0) * (high - low))
    return np.asarray(found / found.sum(-1, keepdims=True))


#: Up to this many numbers Python's own arithmetic is faster than six calls of NumPy.
FEW = 16


def softmax(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """exp(values), times `weights`, that sums to one over the last axis.

    >>> softmax(np.array([1000.0, 1000.0])), softmax(np.zeros((1, 2)), np.array([[3.0, 1.0]]))
    (array([0.5, 0.5]), array([[0.75, 0.25]]))
    """
    if values.ndim == 1 and len(values) <= FEW:
        few = values.tolist()
        top = max(few)
        if -inf < top < inf and all(one == one for one in few):
            raw = [exp(one - top) for one in few]
            if weights is not None:
                raw = [one * weight for one, weight in zip(raw, weights.tolist(), strict=True)]
            whole = sum(raw)
            return np.array([one / whole for one in raw])
    # This is called often with few groups: reductions along a short last axis would cost more than all else.
    flat = values.ndim <= 2
    raised = values.T.copy() if flat else np.moveaxis(values, -1, 0).copy()
    raised -= np.maximum.reduce(raised)
    np.exp(raised, out=raised)
    if weights is not None:
        raised *= weights.T if flat else np.moveaxis(weights, -1, 0)
    raised /= np.add.reduce(raised)
    return raised.T if flat else np.moveaxis(raised, 0, -1)


def checked_per_group(value: Any, name: str, least: float, strict: bool = False) -> Any:
    """A number, or numbers by group as a plain dict; each at least `least`."""
    given: dict[Hashable, Any] = dict(value) if isinstance(value, Mapping) else {None: value}
    if not given:
        raise ValueError(f"`{name}` should name groups. Found none.")
    for group, one in given.items():
        place = name if group is None else f"{name}[{group!r}]"
        if isinstance(one, bool) or not isinstance(one, (int, float, np.integer, np.floating)) or np.isnan(one):
            raise TypeError(f"`{place}` should be a number. Found {place} = {one!r}.")
        if one < least or (strict and one == least):
            word = f"above {least:g}" if strict else f"at least {least:g}"
            raise ValueError(f"`{place}` should be {word}. Found {place} = {one:g}.")
    return {g: float(v) for g, v in given.items()} if isinstance(value, Mapping) else float(value)


def by_group(value: float | Mapping[Hashable, Any], groups: tuple[Hashable, ...], name: str, law: str) -> list[Any]:
    """One value for each group, in their order.

    >>> by_group({"-": 0.1, "+": 0.2}, ("+", "-"), "bound", "DualAscent")
    [0.2, 0.1]
    """
    if not isinstance(value, Mapping):
        return [value] * len(groups)
    listed = ", ".join(map(repr, groups))
    for group in value:
        if group not in groups:
            raise KeyError(f"`{name}` of {law} names the unknown group {group!r}. There are: {listed}.")
    for group in groups:
        if group not in value:
            raise KeyError(f"`{name}` of {law} should name every group; {group!r} is missing. There are: {listed}.")
    return [value[group] for group in groups]
