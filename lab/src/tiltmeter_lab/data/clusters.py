"""symmetric_clusters: four small clusters on two axes, labelled like XOR (Tsoy and Konstantinov, ICML 2024)."""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc, gammaincinv

from tiltmeter.data.grouped import GroupedData


def symmetric_clusters(
    d: int = 2, points: int = 16, spread: float = 0.005, radius: float = 0.01, seed: int = 0
) -> GroupedData:
    """Label +1 around +e1 and -e1, label -1 around +e2 and -e2; no line separates them.

    >>> data = symmetric_clusters()
    >>> data.sizes
    {'+e1': 32, '+e2': 32, '-e1': 32, '-e2': 32}

    The points around e1 are Gaussian with standard deviation `spread`, cut off at `radius`. They are reflected in e1,
    in e2 and (for d > 2) in all other coordinates together; then e1 and e2 are swapped for the other label. So the data
    are exactly symmetric, and `points` give 8 (d = 2) or 16 times as many. Groups are the four clusters. The authors'
    code has labels 0 and 1, with 0 around the first axis: the opposite sign.

    Args:
        d: Number of dimensions.
        points: Points that are drawn around e1; reflections make 8 (d = 2) or 16 times as many.
        spread: Standard deviation of the points around e1.
        radius: Distance from e1 at which they are cut off.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if d < 2:
        raise ValueError(f"`d` should be at least 2. Found d = {d}.")
    if points < 1 or spread <= 0 or not 0 < radius < 0.5:
        raise ValueError(
            "`points` should be at least 1, `spread` positive and `radius` between 0 and 0.5. "
            f"Found points = {points}, spread = {spread}, radius = {radius}."
        )
    rng = np.random.default_rng(seed)
    cloud = _cut_gaussian(points, d, spread, radius, rng)
    cloud[:, 0] += 1.0
    for axis in ([0], [1], list(range(2, d))):
        if axis:
            mirror = cloud.copy()
            mirror[:, axis] *= -1.0
            cloud = np.concatenate([cloud, mirror])
    swapped = cloud.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    x = np.concatenate([cloud, swapped])
    y = np.repeat([1.0, -1.0], len(cloud))
    along = np.where(y > 0, x[:, 0], x[:, 1])
    signs, axes = np.where(along > 0, "+", "-"), np.where(y > 0, "e1", "e2")
    return GroupedData(x, y, np.strings.add(signs, axes))


def _cut_gaussian(points: int, d: int, spread: float, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Gaussian points conditioned to lie within the radius, drawn by inverting the distribution of their length.

    Rejection sampling would take forever in many dimensions, where nearly all points lie outside.
    """
    inside = gammainc(d / 2.0, (radius / spread) ** 2 / 2.0)
    length = spread * np.sqrt(2.0 * gammaincinv(d / 2.0, inside * rng.random(points)))
    direction = rng.normal(size=(points, d))
    return np.asarray(direction * (length / np.linalg.norm(direction, axis=1))[:, None])
