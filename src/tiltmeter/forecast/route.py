"""Routes: how a forecast is calculated, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kernel:
    """The exact linearisation of the network at its initial weights, from the tangent kernel of `sample` points.

    >>> Kernel(sample=500)
    Kernel(sample=500, seed=0, horizon=True, real_steps=0)

    `seed` chooses the points. `horizon=False` skips the tests of how far to trust the forecast; `real_steps` allows
    that many steps of plain SGD on a copy, to see how fast the kernel turns.
    """

    sample: int = 2500
    seed: int = 0
    horizon: bool = True
    real_steps: int = 0
