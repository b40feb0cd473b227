"""MaxEntropyCube: the maximum-entropy points of a cube with the class means (Belrose et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.clones.by_class import fitted_to, redrawn

#: Means closer than this to a face of the unit cube are moved to this distance: their density would be a spike.
NEAREST = 0.003


@dataclass(frozen=True)
class MaxEntropyCube:
    """Independent coordinates between `low` and `high` with densities exp(-b x) that have the class means.

    >>> data = GroupedData(np.full((4000, 1), 0.1), [0] * 4000, [0] * 4000)
    >>> MaxEntropyCube()(data).x.mean().round(2).item()
    0.1
    """

    low: float = 0.0
    high: float = 1.0

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        if not self.low < self.high:
            raise ValueError(f"`low` should be below `high`. Found low = {self.low}, high = {self.high}.")
        sources = fitted_to(data, fit)
        seen = [float(part.min()) for part in sources.values()] + [float(part.max()) for part in sources.values()]
        if min(seen) < self.low or max(seen) > self.high:
            raise ValueError(
                f"Points should lie between `low` and `high`. Found {min(seen):g} to {max(seen):g} for low = "
                f"{self.low:g}, high = {self.high:g}."
            )
        rng = np.random.default_rng(seed)

        def draw(rows: np.ndarray, count: int) -> np.ndarray:
            mean = (rows.mean(axis=0) - self.low) / (self.high - self.low)
            return self.low + (self.high - self.low) * _sample(tilt(mean), count, rng)

        return redrawn(data, sources, draw)


def tilt(mean: np.ndarray) -> np.ndarray:
    """The b for which the density exp(-b x) on [0, 1] has this mean: 1/b - 1/(e^b - 1) = mean.

    >>> tilt(np.array([0.5, 0.1, 0.9])).round(3).tolist()
    [0.0, 9.995, -9.995]
    """
    inside = np.clip(mean, NEAREST, 1 - NEAREST)
    # The mean falls from 1/2 to 0 as b grows from 0; for means above 1/2 the density is mirrored.
    folded = np.minimum(inside, 1 - inside)
    low, high = np.zeros_like(folded), np.full_like(folded, 1 / NEAREST)
    for _ in range(60):
        middle = (low + high) / 2
        above = _mean(middle) > folded
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.where(inside <= 0.5, low, -low))


def _mean(b: np.ndarray) -> np.ndarray:
    safe = np.maximum(b, 1e-3)
    return np.where(b > 1e-3, 1 / safe - 1 / np.expm1(safe), 0.5 - b / 12)


def _sample(b: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    uniform = rng.random((count, len(b)))
    steep = np.maximum(np.abs(b), 1e-9)
    falling = np.where(np.abs(b) > 1e-9, -np.log1p(uniform * np.expm1(-steep)) / steep, uniform)
    return np.where(b >= 0, falling, 1 - falling)
