"""rectangles: two classes that differ in mean, covariance and shape, and Gaussians with the same two moments."""

from __future__ import annotations

import math

import numpy as np

from tiltmeter.data.grouped import GroupedData


def rectangles(
    points: int,
    centre: tuple[float, float] = (1.0, 1.0),
    sides: tuple[float, float] = (6.0, 1.0),
    angle: float = 0.0,
    extra: int = 0,
    gaussian: bool = False,
    seed: int = 0,
) -> GroupedData:
    """Two labels, -1 and +1, uniform on rectangles with these `sides` around `centre` and its opposite.

    >>> data = rectangles(4000, extra=2)
    >>> data.x.shape, data.x[data.y > 0, :2].mean(0).round(1).tolist()
    ((4000, 4), [1.0, 1.0])

    The first side makes `angle` (degrees) with the first axis. `extra` coordinates of unit Gaussian noise come after
    the two that matter. With `gaussian` both classes are Gaussians with the means and covariances of the rectangles, so
    any difference in what a model learns comes from moments beyond the second. A perceptron with a small start is
    expected to learn first the difference of means, then Fisher's direction, then a correction for the shape (Refinetti
    et al., 2023). Groups are the labels.

    Args:
        points: Number of points.
        centre: Centre of the points with label +1; those with label -1 are opposite.
        sides: Lengths of the sides.
        angle: Angle of the first side with the first axis, in degrees.
        extra: Coordinates of unit Gaussian noise after the two that matter.
        gaussian: Whether both classes are Gaussians with the same means and covariances.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if points < 2:
        raise ValueError(f"`points` should be at least 2. Found points = {points}.")
    if min(sides) <= 0:
        raise ValueError(f"`sides` should be positive. Found sides = {sides}.")
    if extra < 0:
        raise ValueError(f"`extra` should not be negative. Found extra = {extra}.")
    rng = np.random.default_rng(seed)
    y = rng.permutation(2 * (np.arange(points) % 2) - 1)
    # A uniform side of length s has variance s^2 / 12.
    within = rng.normal(size=(points, 2)) / math.sqrt(12.0) if gaussian else rng.random((points, 2)) - 0.5
    a = math.radians(angle)
    turn = np.array([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
    x = y[:, None] * np.asarray(centre) + (within * np.asarray(sides)) @ turn
    return GroupedData(np.hstack([x, rng.normal(size=(points, extra))]).astype(np.float32), y, y)
