"""energy: how the variation of signals along lines is distributed over frequencies."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

Path: TypeAlias = Literal["within", "between", "random"]
PATHS: tuple[Path, ...] = ("within", "between", "random")


def line_ends(
    x: np.ndarray, y: np.ndarray, path: Path, lines: int, length: float | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of each line, each (lines, inputs); the start is one of the points.

    >>> start, end = line_ends(np.eye(4), np.array([0, 0, 1, 1]), "within", 3, None, seed=0)
    >>> ((end - start) ** 2).sum(1).tolist()
    [2.0, 2.0, 2.0]

    The line ends at another point of the same class ("within"), at a point of another class ("between"), or in a random
    direction at the mean distance between two points ("random"). With `length`, it goes that far in the same direction.
    """
    rng = np.random.default_rng(seed)
    if path == "random":
        first, second = rng.integers(0, len(x), (2, lines))
        direction = rng.normal(size=(lines, x.shape[1]))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        if length is None:
            apart = np.linalg.norm(x[first] - x[second], axis=1)[first != second]
            if not len(apart) or not apart.mean() > 0:
                raise ValueError(
                    "`length` should be given for random lines where no two points differ. Found length = None."
                )
            length = float(apart.mean())
        return x[first], x[first] + length * direction
    first, second = _pairs(y, path, lines, rng)
    start, end = x[first], x[second]
    if length is not None:
        apart = np.linalg.norm(end - start, axis=1, keepdims=True)
        end = start + length * (end - start) / np.where(apart > 0, apart, 1.0)
    return start, end


def _pairs(y: np.ndarray, path: Path, lines: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices of two different points with equal or with different labels; any point that has such a partner may be a
    start.
    """
    labels, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes)
    partners = counts[codes] - 1 if path == "within" else len(y) - counts[codes]
    able = np.flatnonzero(partners > 0)
    if not len(able):
        wanted = "two points of one class" if path == "within" else "points of two classes"
        raise ValueError(f"Paths {path!r} should have {wanted}. Found {len(y)} points of {len(labels)} classes.")
    first = rng.choice(able, lines)
    order = np.argsort(codes, kind="stable")
    begins = np.concatenate([[0], np.cumsum(counts)])
    place = np.empty(len(y), dtype=np.int64)
    place[order] = np.arange(len(y))
    # The nth partner in an order in which each class is contiguous: skip the point itself, or its whole class.
    nth = (rng.random(lines) * partners[first]).astype(np.int64)
    own = begins[codes[first]]
    if path == "within":
        return first, order[own + nth + (own + nth >= place[first])]
    return first, order[nth + np.where(nth >= own, counts[codes[first]], 0)]


Window: TypeAlias = Literal["none", "hann"]
Detrend: TypeAlias = Literal["none", "mean", "linear"]

#: Smaller shares of the energy are rounding errors and are set to this value, to avoid the logarithm of zero.
ROUNDING = float(np.finfo(np.float64).eps) ** 2
#: The logarithm that means no energy.
FLOOR = float(np.log(ROUNDING))


def line_energy(signals: np.ndarray, window: Window = "none", detrend: Detrend = "none") -> np.ndarray:
    """A_k for k = 0 ... N/2: squared magnitude of the Fourier transform along the last axis, averaged over all others.

    >>> t = np.arange(64) / 64
    >>> line_energy(np.cos(2 * np.pi * 5 * t))[[0, 5]].round(6).tolist()
    [0.0, 0.25]

    One-sided: every pair of frequencies k and -k counts once. Signals are first detrended, then windowed.
    """
    values = np.asarray(signals, dtype=float)
    count = values.shape[-1]
    before = float((values**2).mean())
    if detrend == "mean":
        values = values - values.mean(-1, keepdims=True)
    elif detrend == "linear":
        t = np.arange(count) - (count - 1) / 2.0
        slope = (values * t).sum(-1, keepdims=True) / (t**2).sum()
        values = values - values.mean(-1, keepdims=True) - slope * t
    if window == "hann":
        values = values * (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(count) / count))
    energy = (np.abs(np.fft.rfft(values, axis=-1) / count) ** 2).reshape(-1, count // 2 + 1).mean(0)
    # Where detrending should have removed everything, only rounding errors are left; their spectrum has no meaning.
    return np.where(energy > ROUNDING * before, energy, 0.0)


def energy_ratio(energy: np.ndarray, constant: bool = True) -> np.ndarray:
    """R_k = log(A_k / sum_j A_j), from k = 0; if `constant` is false, k = 0 is left out of both the ratio and the sum.

    >>> t = np.arange(128) / 128
    >>> energy_ratio(line_energy(1.0 + 3.0 * t))[:3].round(2).tolist()
    [-0.06, -3.36, -4.75]

    The result is always finite: energies below rounding error, and all energies of a zero signal, give `FLOOR`, about
    -72.
    """
    kept = np.asarray(energy, dtype=float)[..., 0 if constant else 1 :]
    total = kept.sum(-1, keepdims=True)
    share = kept / np.where(total > 0, total, 1.0)
    return np.asarray(np.log(np.maximum(share, ROUNDING)))


def mean_frequency(energy: np.ndarray) -> np.ndarray:
    """Mean of k weighted by A_k, for k >= 1, in periods per line; 0 if the signal is constant.

    >>> t = np.arange(64) / 64
    >>> round(float(mean_frequency(line_energy(np.sin(2 * np.pi * 3 * t) + np.sin(2 * np.pi * 5 * t)))), 6)
    4.0
    """
    varying = np.asarray(energy, dtype=float)[..., 1:]
    total = varying.sum(-1)
    k = np.arange(1, varying.shape[-1] + 1)
    return np.asarray((varying * k).sum(-1) / np.where(total > 0, total, 1.0))
