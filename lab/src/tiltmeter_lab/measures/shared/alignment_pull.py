"""Pull: the function G that turns the neurons of a tiny network before the loss changes, and its maximisers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Number of random starts and steps of the ascent in more than two dimensions.
STARTS, STEPS = 64, 200
#: Directions closer than this count as one maximiser; heights closer than this (relative) count as equal.
DEGREES, LEVEL = 1.0, 1e-9
#: Pairs of a direction and a point that are processed together.
BLOCK = 2**22


@dataclass(frozen=True)
class Pull:
    """G(v) = mean_i r_i relu(v . x_i) on the unit sphere, with r_i = -l'(0) for point i (y_i / 2 for logistic loss).

    >>> from tiltmeter_lab.data.clusters import symmetric_clusters
    >>> data = symmetric_clusters()
    >>> top = Pull(data.x, data.y / 2).extremes()
    >>> (np.degrees(np.arctan2(*top.direction.T[::-1])).round(6) % 360).tolist(), top.sign.tolist()
    ([0.0, 90.0, 180.0, 270.0], [1.0, -1.0, 1.0, -1.0])

    While a network is tiny its scores are near 0, so each neuron depends only on G. Neurons with u > 0 turn towards
    maxima of G, those with u < 0 towards minima, and sizes grow as exp(lambda t) with lambda = max abs(G).

    Args:
        x: Points, one per row.
        r: For every point, minus the slope of its loss at score 0.
    """

    x: np.ndarray
    r: np.ndarray

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """G of every row of v."""
        return self._in_blocks(v, lambda part: np.maximum(part @ self.x.T, 0.0) @ self.r / len(self.r))

    def gradient(self, v: np.ndarray) -> np.ndarray:
        """The gradient of G at every row of v (on a kink, the one of the side where the point is inactive)."""
        return self._in_blocks(v, lambda part: ((part @ self.x.T > 0) * self.r) @ self.x / len(self.r))

    def _in_blocks(self, v: np.ndarray, work: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        rows = max(1, BLOCK // len(self.r))
        return np.concatenate([work(v[start : start + rows]) for start in range(0, len(v), rows)])

    def extremes(self, seed: int = 0) -> Extremes:
        """All local maxima of abs(G): exact in two dimensions, by projected ascent from random starts in more."""
        found = self._in_plane() if self.x.shape[1] == 2 else self._by_ascent(seed)
        value = self(found)
        top = np.abs(value).max(initial=0.0)
        kept = np.abs(value) > LEVEL * max(top, 1.0)
        return Extremes(found[kept], value[kept])

    def _in_plane(self) -> np.ndarray:
        """Between neighbouring kinks G is a . v with one vector a. The candidates are the kinks, and +-a where it lies
        between them.
        """
        angle = np.arctan2(self.x[:, 1], self.x[:, 0])
        kinks = np.unique(np.concatenate([angle + np.pi / 2, angle - np.pi / 2]) % (2 * np.pi))
        ends = np.append(kinks, kinks[0] + 2 * np.pi)
        middle = (ends[:-1] + ends[1:]) / 2.0
        slope = self.gradient(_unit(middle))
        inner = np.arctan2(slope[:, 1], slope[:, 0])
        inside = []
        for turn in (0.0, np.pi):
            start = ends[:-1] + (inner + turn - ends[:-1]) % (2 * np.pi)
            inside.append(start[(start < ends[1:]) & (np.linalg.norm(slope, axis=1) > 0)])
        every = np.concatenate([kinks, *inside]) % (2 * np.pi)
        # Kinks of mirrored points are equal up to rounding: keep one of each, with 0 and 2 pi the same.
        every = np.unique(every.round(10) % round(2 * np.pi, 10))
        height = np.abs(self(_unit(every)))
        slack = LEVEL * height.max(initial=0.0)
        peak = (height >= np.roll(height, 1) - slack) & (height >= np.roll(height, -1) - slack)
        # A rounded kink next to a maximiser makes a flat top: keep one of its points.
        chosen = _unit(every[peak])
        order = np.argsort(-height[peak], kind="stable")
        kept = _apart(chosen[order], np.sign(self(chosen[order])))
        return np.asarray(chosen[np.sort(order[kept])])

    def _by_ascent(self, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        v = rng.normal(size=(STARTS, self.x.shape[1]))
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        sign = np.where(np.arange(STARTS) % 2 == 0, 1.0, -1.0)
        best, height = v.copy(), sign * self(v)
        # Steps get shorter: at a kink, steps of a fixed length would oscillate for ever.
        for length in np.geomspace(1.0, 1e-6, STEPS):
            slope = sign[:, None] * self.gradient(v)
            size = np.linalg.norm(slope, axis=1, keepdims=True)
            v = v + length * np.divide(slope, size, out=np.zeros_like(slope), where=size > 0)
            v /= np.linalg.norm(v, axis=1, keepdims=True)
            now = sign * self(v)
            better = now > height
            best[better], height[better] = v[better], now[better]
        order = np.argsort(-height, kind="stable")
        order = order[height[order] > 0]
        return np.asarray(best[order][_apart(best[order], sign[order])])


@dataclass(frozen=True)
class Extremes:
    """Local maxima of abs(G): directions (rows) and the value of G there.

    >>> from tiltmeter_lab.data import symmetric_clusters
    >>> data = symmetric_clusters()
    >>> top = Pull(data.x, data.y / 2).extremes()
    >>> top.direction.shape, top.sign.tolist(), round(top.rate, 3)
    ((4, 2), [1.0, -1.0, 1.0, -1.0], 0.124)

    Args:
        direction: One unit vector per row.
        value: Value of G there.
    """

    direction: np.ndarray
    value: np.ndarray

    @property
    def sign(self) -> np.ndarray:
        """+1 for a maximum of G, which attracts neurons with u > 0, -1 for a minimum."""
        return np.asarray(np.sign(self.value))

    @property
    def rate(self) -> float:
        """lambda: the rate at which an aligned neuron grows; 0 if G is zero."""
        return float(np.abs(self.value).max(initial=0.0))

    def cosine(self, direction: np.ndarray, sign: np.ndarray) -> np.ndarray:
        """The cosine of each direction with the nearest extreme of its sign; -1 if there is none."""
        beside = np.where(sign[:, None] == self.sign, direction @ self.direction.T, -1.0)
        return np.asarray(beside.max(1, initial=-1.0))


def _unit(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _apart(direction: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Indices of directions, leaving out those that are close to an earlier one of the same sign."""
    kept: list[int] = []
    near = np.cos(np.radians(DEGREES))
    for i in range(len(direction)):
        if not any(sign[i] == sign[j] and direction[i] @ direction[j] > near for j in kept):
            kept.append(i)
    return np.asarray(kept, dtype=np.int64)
