"""Draws: which points each run trains on, from one generator per run."""

from __future__ import annotations

import torch
from torch import Tensor


class Draws:
    """Batches drawn with replacement, those of a run from a generator of its own.

    What a run draws depends only on its seed: neither on the other runs nor on how many steps are drawn at a time.

    >>> alone, together = Draws([3], points=100, batch=2), Draws([8, 3], points=100, batch=2)
    >>> bool((alone.take(5)[:, 0] == together.take(5)[:, 1]).all())
    True
    """

    def __init__(self, seeds: list[int], points: int, batch: int, shares: Tensor | None = None) -> None:
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._points = points
        self._batch = batch
        # With shares, point i is drawn with probability shares[i]: where a uniform number falls in their running sum.
        self._upper = None if shares is None else (shares.double() / shares.double().sum()).cumsum(0)

    def take(self, steps: int) -> Tensor:
        """The next batches of all runs: indices of shape (steps, runs, batch)."""
        return torch.stack([self._one(generator, steps) for generator in self._generators], dim=1)

    def _one(self, generator: torch.Generator, steps: int) -> Tensor:
        size = (steps, self._batch)
        if self._upper is None:
            return torch.randint(self._points, size, generator=generator)
        places = torch.searchsorted(self._upper, torch.rand(size, generator=generator, dtype=torch.float64), right=True)
        return places.clamp_(max=self._points - 1)
