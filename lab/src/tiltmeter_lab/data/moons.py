"""moons: two half circles that a straight line separates, or just does not (Pezeshki et al., 2021)."""

from __future__ import annotations

import numpy as np

from tiltmeter.data.grouped import GroupedData


def moons(margin: float = 0.1, points: int = 300, noise: float = 0.0, seed: int = 0) -> GroupedData:
    """Labels 1 (upper moon) and 0 (lower moon), `margin` apart along the second coordinate; with margin < 0 they
    overlap.

    >>> data = moons(margin=0.1, points=200)
    >>> upper = data.y == 1
    >>> round(float(data.x[upper, 1].min() - data.x[~upper, 1].max()), 6)
    0.1

    With a positive margin, the second coordinate alone separates the labels by a straight line; the curved boundary
    halfway between the moons needs both coordinates. Groups are the "tip" and the "belly" of the moons: the line passes
    close to the tips.

    Args:
        margin: Distance of the moons along the second coordinate; below 0 they overlap.
        points: Number of points.
        noise: Standard deviation of noise on both coordinates.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if points < 4 or noise < 0:
        raise ValueError(
            f"`points` should be at least 4 and `noise` not negative. Found points = {points}, noise = {noise}."
        )
    count = points // 2
    angle = np.linspace(0.0, np.pi, count)
    upper = np.stack([np.cos(angle), np.sin(angle) + margin / 2.0], axis=1)
    lower = np.stack([1.0 - np.cos(angle), -np.sin(angle) - margin / 2.0], axis=1)
    x = np.concatenate([upper, lower])
    x += noise * np.random.default_rng(seed).normal(size=x.shape)
    height = np.tile(np.sin(angle), 2)
    return GroupedData(x, np.repeat([1, 0], count), np.where(height < 0.5, "tip", "belly"))
