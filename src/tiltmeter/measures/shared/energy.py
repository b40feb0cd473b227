"""energy: how the variation of signals along lines is spread over frequencies."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

Window: TypeAlias = Literal["none", "hann"]
Detrend: TypeAlias = Literal["none", "mean", "linear"]

#: Parts of the energy below this are rounding of double precision, and are set to it: no logarithm of zero.
ROUNDING = float(np.finfo(np.float64).eps) ** 2
#: The logarithm that stands for no energy.
FLOOR = float(np.log(ROUNDING))


def line_energy(signals: np.ndarray, window: Window = "none", detrend: Detrend = "none") -> np.ndarray:
    """A_k for k = 0 ... N/2: squared size of the Fourier transform along the last axis, averaged over all others.

    One-sided: every pair of frequencies k and -k counts once. Signals are detrended, then windowed.

    >>> t = np.arange(64) / 64
    >>> line_energy(np.cos(2 * np.pi * 5 * t))[[0, 5]].round(6).tolist()
    [0.0, 0.25]
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
    # What detrending should have removed whole leaves rounding, whose spectrum means nothing.
    return np.where(energy > ROUNDING * before, energy, 0.0)


def energy_ratio(energy: np.ndarray, constant: bool = True) -> np.ndarray:
    """R_k = log(A_k / sum_j A_j), from k = 0, or from k = 1 in ratio and sum alike where the constant is left out.

    Finite always: what is below rounding is `FLOOR`, about -72, and so is everything where there is no energy.

    >>> t = np.arange(128) / 128
    >>> energy_ratio(line_energy(1.0 + 3.0 * t))[:3].round(2).tolist()
    [-0.06, -3.36, -4.75]
    """
    kept = np.asarray(energy, dtype=float)[..., 0 if constant else 1 :]
    total = kept.sum(-1, keepdims=True)
    share = kept / np.where(total > 0, total, 1.0)
    return np.asarray(np.log(np.maximum(share, ROUNDING)))


def mean_frequency(energy: np.ndarray) -> np.ndarray:
    """Mean of k under A_k, k from 1: where the variation lies, in periods per line; 0 where nothing varies.

    >>> t = np.arange(64) / 64
    >>> round(float(mean_frequency(line_energy(np.sin(2 * np.pi * 3 * t) + np.sin(2 * np.pi * 5 * t)))), 6)
    4.0
    """
    varying = np.asarray(energy, dtype=float)[..., 1:]
    total = varying.sum(-1)
    k = np.arange(1, varying.shape[-1] + 1)
    return np.asarray((varying * k).sum(-1) / np.where(total > 0, total, 1.0))
