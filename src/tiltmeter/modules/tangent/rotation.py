"""Rotation: how far a kernel has rotated, and so how long a forecast made with it can be valid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tiltmeter.shown_text import NotebookText


@dataclass(frozen=True)
class Rotation(NotebookText):
    """The relation of one kernel to another; growth alone, K -> 2 K, is no rotation.

    `cosine` is <K, K'> divided by both norms, with the Frobenius inner product; `angle` is its angle in radians.
    `alignment` is the same after rows and columns are centred (centred kernel alignment; Cortes et al., 2012): it
    removes what all points have in common, often the largest part. `growth` is the ratio of the norms.
    """

    cosine: float
    alignment: float
    growth: float
    angle: float

    @property
    def degrees(self) -> float:
        """The angle of `cosine`, in degrees."""
        return math.degrees(self.angle)

    def __str__(self) -> str:
        return (
            f"The kernel turned by {self.degrees:.3g} degrees (centred alignment {self.alignment:.4g}) and grew by a "
            f"factor {self.growth:.4g}."
        )


def rotation(before: np.ndarray, after: np.ndarray) -> Rotation:
    """The rotation from one kernel to another of the same points.

    >>> print(rotation(np.eye(3), np.diag([3.0, 1.0, 1.0])))
    The kernel turned by 29.5 degrees (centred alignment 0.9285) and grew by a factor 1.915.

    Features that change rotate the kernel; the kernel of a linear model never rotates. A small angle does not prove
    that a forecast is valid, because a few points may rotate far.
    """
    if before.shape != after.shape or before.ndim != 2:
        raise ValueError(f"Kernels should be of the same points. Found shapes {before.shape} and {after.shape}.")
    cosine, angle, growth = _between(before, after, "kernel")
    alignment, _, _ = _between(_centred(before), _centred(after), "centred kernel")
    return Rotation(cosine, alignment, growth, angle)


def _between(before: np.ndarray, after: np.ndarray, what: str) -> tuple[float, float, float]:
    sizes = float(np.linalg.norm(before)), float(np.linalg.norm(after))
    if not all(math.isfinite(size) and size > 0 for size in sizes):
        raise ValueError(f"A {what} should be finite and not zero. Found norms {sizes[0]:.3g} and {sizes[1]:.3g}.")
    # Half the distance between the unit kernels is the sine of half the angle: precise where the cosine rounds to one.
    half = 0.5 * float(np.linalg.norm(before / sizes[0] - after / sizes[1]))
    angle = 2.0 * math.asin(min(half, 1.0))
    return math.cos(angle), angle, sizes[1] / sizes[0]


def _centred(kernel: np.ndarray) -> np.ndarray:
    centred: np.ndarray = kernel - kernel.mean(0) - kernel.mean(1, keepdims=True) + kernel.mean()
    return centred
