"""StraightFit: values at many points from those at a few, by a straight line in the main directions of the inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

#: Principal directions of the inputs that the line follows.
DIRECTIONS = 64


class StraightFit:
    """A ridge regression on principal components, which are found once for all values to come.

    >>> x = torch.randn(300, 5, generator=torch.Generator().manual_seed(0))
    >>> line = StraightFit(x[:200])
    >>> values = x @ torch.ones(5, 1) + 3.0
    >>> bool((line.to(values[:200])(x[200:]) - values[200:]).abs().max() < 0.05)
    True
    """

    def __init__(self, x: Tensor) -> None:
        flat = x.flatten(1).double() if x.dtype == torch.float64 else x.flatten(1).float()
        self._mean = flat.mean(0)
        centred = flat - self._mean
        with torch.random.fork_rng(devices=[]):
            # Not torch.manual_seed: that would also seed the streams of other devices, which are not put back.
            torch.default_generator.manual_seed(0)
            _, *found = torch.pca_lowrank(centred.cpu(), min(DIRECTIONS, *flat.shape), center=False)
        sizes, directions = (one.to(flat) for one in found)
        kept = sizes > 1e-6 * sizes.max().clamp(min=1e-30)
        self._directions = directions[:, kept] / sizes[kept] * len(flat) ** 0.5
        self._own = self._components(flat)

    def to(self, values: Tensor) -> Callable[[Tensor], Tensor]:
        """The line through these values (points, outputs) at the points of this fit: a function of other points."""
        own = self._own.double()
        ridge = torch.full((own.shape[1],), 1e-3 * len(own), dtype=own.dtype, device=own.device)
        ridge[0] = 0.0  # the mean is no direction
        found = torch.linalg.solve(own.T @ own + torch.diag(ridge), own.T @ values.double()).to(self._mean)
        # In the inputs themselves: one product instead of one for each direction. The numbers of an output lie
        # together, because torch multiplies by a few such rows in a fourth of the time that a few columns take.
        slopes = (self._directions @ found[1:]).T.contiguous()
        start = found[0] - slopes @ self._mean
        return lambda x: nn.functional.linear(x.flatten(1).to(self._mean), slopes, start).to(values)

    def _components(self, flat: Tensor) -> Tensor:
        ones = torch.ones(len(flat), 1, dtype=flat.dtype, device=flat.device)
        return torch.cat([ones, (flat - self._mean) @ self._directions], 1)
