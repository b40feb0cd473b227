"""Blocks: fill kernels block by block, with no more memory for gradients than for the kernel itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tiltmeter.modules.tangent.factors import Factor
from tiltmeter.modules.tangent.memory import chunk_bytes
from tiltmeter.modules.tangent.plan import Plan

#: Called with the amount of work done.
Tell = Callable[[int], None]


class Crossed(NamedTuple):
    """Other points, and the array for their kernel with the first points, (other points, points)."""

    x: Tensor
    target: np.ndarray


class Block(NamedTuple):
    """Some points: first index, last index plus one, and their gradients."""

    start: int
    stop: int
    factors: list[Factor | None]

    @property
    def points(self) -> int:
        return self.stop - self.start


class _Work:
    """Adds up the work done, and reports it."""

    def __init__(self, tell: Tell | None) -> None:
        self._tell, self._done = tell, 0

    def add(self, done: int) -> None:
        self._done += done
        if self._tell is not None:
            self._tell(self._done)


def fill(
    plan: Plan,
    x: Tensor,
    symmetric: np.ndarray | None,
    crossed: Crossed | None,
    chunk: int,
    tell: Tell | None = None,
) -> None:
    """Write K(x, x) into `symmetric`, computing its upper triangle, and K(other, x) into the target of `crossed`.

    Gradients are kept for as many points as fit into the memory of the targets; the others are computed again for each
    such group. Usually all fit, and none is computed twice. `tell` is called with the amount of work done, out of 2
    len(x) (len(x) + others): all pairs, and the same amount for the gradients, which may take most of the time.
    """
    work = _Work(tell)
    size = block_size(plan, chunk)
    targets = [target for target in (symmetric, None if crossed is None else crossed.target) if target is not None]
    allowance = max(chunk_bytes(), sum(target.nbytes for target in targets))
    per_group = max(1, allowance // (plan.held * size + 1)) * size
    for first in range(0, len(x), per_group):
        last = min(first + per_group, len(x))
        group = []
        for block in _blocks(plan, x, first, last, size):
            group.append(block)
            work.add(len(x) * block.points)
        if symmetric is not None:
            for i, block in enumerate(group):
                for other in group[i:]:
                    _both(plan, symmetric, block, other)
                    work.add((1 if other is block else 2) * block.points * other.points)
            for other in _blocks(plan, x, last, len(x), size):
                for block in group:
                    _both(plan, symmetric, block, other)
                    work.add(2 * block.points * other.points)
        if crossed is not None:
            for other in _blocks(plan, crossed.x, 0, len(crossed.x), size):
                work.add(len(x) * other.points if not first else 0)
                for block in group:
                    _place(plan, crossed.target, other, block, _product(plan, other, block))
                    work.add(block.points * other.points)


def block_size(plan: Plan, chunk: int = 256) -> int:
    """How many points go through the network together."""
    return max(1, min(chunk, chunk_bytes() // (plan.held + plan.passing + 1)))


def _blocks(plan: Plan, x: Tensor, first: int, last: int, size: int) -> Iterator[Block]:
    for start in range(first, last, size):
        stop = min(start + size, last)
        yield Block(start, stop, plan.factors(x[start:stop], start))


def _both(plan: Plan, target: np.ndarray, block: Block, other: Block) -> None:
    found = _product(plan, block, other)
    if block.start == other.start:
        found = 0.5 * (found + found.T)
    else:
        _place(plan, target, other, block, found.T)
    _place(plan, target, block, other, found)


def _place(plan: Plan, target: np.ndarray, rows: Block, columns: Block, found: np.ndarray) -> None:
    side = 1 if plan.trace else plan.outputs
    target[rows.start * side : rows.stop * side, columns.start * side : columns.stop * side] = found


def _product(plan: Plan, rows: Block, columns: Block) -> np.ndarray:
    """K between two blocks; products of single-precision layers are summed in double precision."""
    total: Tensor | None = None
    for mine, theirs in zip(rows.factors, columns.factors, strict=True):
        if mine is not None and theirs is not None:
            part = mine.gram(theirs)
            total = part.double() if total is None else total.add_(part)
    side = 1 if plan.trace else plan.outputs
    if total is None:
        return np.zeros(((rows.stop - rows.start) * side, (columns.stop - columns.start) * side))
    if not torch.isfinite(total.sum()):
        raise ValueError(_blame(plan, rows, columns))
    if plan.trace:
        total /= plan.outputs
    found: np.ndarray[Any, Any] = total.cpu().numpy()
    return found


def _blame(plan: Plan, rows: Block, columns: Block) -> str:
    """The layer and the point that made a kernel non-finite, as a message."""
    side = 1 if plan.trace else plan.outputs
    for part, mine, theirs in zip(plan.parts, rows.factors, columns.factors, strict=True):
        for block, factor in ((rows, mine), (columns, theirs)):
            if factor is not None:
                bad = (~torch.isfinite(factor.gram(factor).diagonal())).nonzero().flatten()
                if len(bad):
                    point = block.start + int(bad[0]) // side
                    return f"The kernel should be finite. Found that it is not at point {point} in {part!r}."
    return f"The kernel should be finite. Found that it is not among points {rows.start} to {rows.stop - 1}."
