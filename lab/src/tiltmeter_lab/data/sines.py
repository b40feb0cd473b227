"""sines: sums of sines as targets, sampled evenly or more densely in some regions (Rahaman 2019; Basri 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiltmeter.data.grouped import GroupedData


@dataclass(frozen=True)
class Sines:
    """sum_i A_i sin(2 pi (k_i u + phase_i)), where u runs from 0 to 1 as x runs from `low` to `high`.

    >>> Sines((1, 4), (1.0, 0.5))(np.array([-0.5, 0.0])).round(6).tolist()
    [1.0, -0.0]

    Frequencies count whole periods on the interval, so that each lies in one bin of a Fourier transform.

    Args:
        frequencies: Whole periods on the interval, one number per wave.
        amplitudes: Amplitude of each wave; empty: all 1.
        phases: Phase of each wave in periods; empty: all 0.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    frequencies: tuple[int, ...] = (1, 2, 4, 8)
    amplitudes: tuple[float, ...] = ()
    phases: tuple[float, ...] = ()
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not self.frequencies or any(k != int(k) or k < 1 for k in self.frequencies):
            raise ValueError(f"`frequencies` should be whole numbers from 1. Found frequencies = {self.frequencies}.")
        object.__setattr__(self, "frequencies", tuple(int(k) for k in self.frequencies))
        for name in ("amplitudes", "phases"):
            given = getattr(self, name)
            if len(given) not in (0, len(self.frequencies)):
                raise ValueError(f"`{name}` should have one number per frequency. Found {name} = {given}.")
        if not self.low < self.high:
            raise ValueError(f"`low` should lie below `high`. Found low = {self.low}, high = {self.high}.")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        u = (np.asarray(x, dtype=float) - self.low) / (self.high - self.low)
        waves = zip(
            self.frequencies,
            self.amplitudes or (1.0,) * len(self.frequencies),
            self.phases or (0.0,) * len(self.frequencies),
            strict=True,
        )
        return np.asarray(sum(a * np.sin(2.0 * np.pi * (k * u + phase)) for k, a, phase in waves))

    def grid(self, points: int) -> np.ndarray:
        """Equally spaced points without the end point, which is the same as the first after a whole period."""
        return np.asarray(self.low + (self.high - self.low) * np.arange(points) / points)


def random_phases(frequencies: Sequence[int], seed: int) -> tuple[float, ...]:
    """A phase from 0 to 1 for each frequency.

    >>> len(random_phases((1, 2, 4), seed=0))
    3

    Args:
        frequencies: Frequencies that get a phase.
        seed: Seed of the random draws.
    """
    return tuple(np.random.default_rng(seed).uniform(size=len(frequencies)).tolist())


def sines(
    target: Sines = Sines(),
    points: int = 128,
    densities: Sequence[float] = (1.0,),
    seed: int | None = None,
    circle: bool = False,
) -> GroupedData:
    """Points of the interval with the target's values as labels.

    >>> sines(points=500, densities=(4, 1)).sizes
    {'region 1': 400, 'region 2': 100}
    >>> sines(points=64, circle=True).x.shape
    (64, 2)

    The interval is divided into equal regions, one per entry of `densities`; the numbers of points are in that
    proportion. Each region is a group. Points are equally spaced in their region, or drawn at random with `seed`. On
    the `circle` a point is given as (cos, sin) of its angle, once around for the whole interval.

    Args:
        target: Function whose values are the labels.
        points: Number of points.
        densities: Relative number of points in each of the equal regions; each region is a group.
        seed: Draws points at random with this seed; None: equally spaced.
        circle: Whether a point is (cos, sin) of its angle instead of its place on the interval.
    """
    shares = np.asarray(densities, dtype=float)
    if shares.ndim != 1 or not len(shares) or not np.isfinite(shares).all() or (shares <= 0).any():
        raise ValueError(f"`densities` should be positive numbers. Found densities = {tuple(densities)}.")
    if points < len(shares):
        raise ValueError(f"`points` should be at least one per region. Found points = {points}.")
    counts = np.diff(np.round(points * np.concatenate([[0.0], np.cumsum(shares / shares.sum())])).astype(int))
    rng = None if seed is None else np.random.default_rng(seed)
    parts = [np.arange(n) / n if rng is None else np.sort(rng.uniform(size=n)) for n in counts]
    u = np.concatenate([(place + part) / len(shares) for place, part in enumerate(parts)])
    x = target.low + (target.high - target.low) * u
    inputs = np.stack([np.cos(2.0 * np.pi * u), np.sin(2.0 * np.pi * u)], 1) if circle else x[:, None]
    names = [f"region {place + 1}" for place in range(len(shares))]
    return GroupedData(inputs, target(x), np.repeat(names, counts), groups=names)
