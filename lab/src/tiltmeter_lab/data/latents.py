"""Latents: two features that differ in how well they predict the label and how large they are (Hermann et al.,
2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from tiltmeter.data.grouped import GroupedData


@dataclass(frozen=True)
class Latents:
    """Latent features z_i ~ N(y mu_i, 1) with Phi(mu_i) = `predictivity`, amplified and embedded in `d` dimensions.

    >>> Latents((0.85, 0.9)).means.round(3).tolist()
    [1.036, 1.282]

    The first feature is the shortcut, the second the core. A point is x = availability_1 z_1 e_1 + availability_2 z_2
    e_2 with random orthonormal e_1, e_2 (drawn with `seed`). Availability changes how large a feature is in the input,
    not what it predicts: the optimal decision is the sign of mu . z at any availability.

    Args:
        predictivity: Share of labels that the sign of each feature predicts: shortcut first, then core.
        availability: How large each feature is in the input.
        d: Number of dimensions.
        seed: Seed of the directions in which the features lie.
    """

    predictivity: tuple[float, float] = (0.85, 0.9)
    availability: tuple[float, float] = (1.0, 1.0)
    d: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        if not all(0.5 < share < 1 for share in self.predictivity):
            raise ValueError(
                f"`predictivity` should lie strictly between 0.5 and 1. Found predictivity = {self.predictivity}."
            )
        if not all(size > 0 for size in self.availability):
            raise ValueError(f"`availability` should be positive. Found availability = {self.availability}.")
        if self.d < 2:
            raise ValueError(f"`d` should be at least 2. Found d = {self.d}.")

    @cached_property
    def means(self) -> np.ndarray:
        """The mean of each latent for label +1; also the direction of the optimal decision among the latents."""
        return np.asarray(ndtri(np.asarray(self.predictivity)))

    @cached_property
    def frame(self) -> np.ndarray:
        """The two orthonormal directions of the input, as rows."""
        drawn = np.random.default_rng(self.seed).normal(size=(self.d, 2))
        return np.asarray(np.linalg.qr(drawn)[0].T)

    def embed(self, z: Any) -> np.ndarray:
        """Inputs (points, d) of latents (points, 2)."""
        return np.asarray((np.asarray(z, dtype=float) * np.asarray(self.availability)) @ self.frame)

    def sample(self, points: int, seed: int = 0) -> GroupedData:
        """Points with labels -1 and +1, half each; groups say whether the signs of the two features agree.

        >>> Latents().sample(1000).groups
        ('agree', 'disagree')
        """
        rng = np.random.default_rng((seed, self.seed))
        y = np.where(np.arange(points) % 2 == 0, 1.0, -1.0)
        z = y[:, None] * self.means + rng.normal(size=(points, 2))
        return GroupedData(self.embed(z), y, np.where(z[:, 0] * z[:, 1] > 0, "agree", "disagree"))
