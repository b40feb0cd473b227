"""Pre-training: how much irrelevant prior knowledge removes crossings, and the gap's parabola at small rates."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.theory.centred_pair import CentredPair, G, centred_pair

#: An x this close to 1 is the start itself.
START = 1e-12


@dataclass(frozen=True)
class CriticalLength:
    """Crossings of the losses after irrelevant pre-training of squared length Q.

    From zero there are `from_zero`; for 0 < Q < `length` there are `below`, above it `above`. An infinite `length`
    means that `below` holds for every Q.
    """

    groups: tuple[Hashable, Hashable]
    length: float
    from_zero: int
    below: int
    above: int

    def crossings(self, Q: float) -> int:
        """Return how often the losses cross after irrelevant pre-training of squared length Q."""
        if not Q >= 0:
            raise ValueError(f"`Q` is a squared length and should not be negative. Found Q = {Q:g}.")
        return self.from_zero if Q == 0 else self.below if self.length > Q else self.above

    def __str__(self) -> str:
        words = ("never cross", "cross once", "cross twice")
        a, b = self.groups
        if np.isinf(self.length):
            return (
                f"The losses of {a} and {b} {words[self.from_zero]} from zero and {words[self.below]} after irrelevant "
                "pre-training of any length: there is no critical length."
            )
        return (
            f"The losses of {a} and {b} {words[self.from_zero]} from zero, {words[self.below]} after irrelevant "
            f"pre-training of squared length below {self.length:.6g}, and {words[self.above]} above it."
        )


def critical_length(problem: tm.theory.Mixture, sgd: tm.SGD) -> CriticalLength:
    """Return the squared length of irrelevant prior knowledge above which two centred groups no longer cross.

    >>> problem, sgd, _ = tm.theory.cases.centred_crossing()
    >>> print(critical_length(problem, sgd))
    The losses of + and - cross once from zero, cross twice after irrelevant pre-training of squared length below
    0.0227883, and never cross above it.

    Irrelevant means a student of squared length Q (over d) without overlap with either teacher. It first adds half the
    variance of a group times Q to its loss, so it costs the group of larger variance more.

    It does not cover pre-training that has learnt something of a teacher: use `gap_parabola` or `crossing_bound`.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
    """
    if not isinstance(sgd.start, tm.theory.starts.Zero):
        raise ValueError("`critical_length` varies the start itself. Found a start in `sgd`; use `crossing_bound`.")
    pair = centred_pair(problem, sgd, "critical_length")
    end, slow, fast, slope = gap_coefficients(pair)
    first = slow * -pair.gamma + fast * -pair.q  # the gap is 0 at t = 0, so its derivative decides who leads first
    from_zero = int(end * first < 0)
    names = (pair.groups[0], pair.groups[1])
    if slope == 0.0:
        return CriticalLength(names, np.inf, from_zero, from_zero, from_zero)
    if slope * end < 0:  # pre-training helps the group that loses in the end: it leads first, once
        return CriticalLength(names, np.inf, from_zero, 1, 1)
    if not from_zero:
        return CriticalLength(names, np.inf, 0, 0, 0)
    return CriticalLength(names, _tangent(pair, end, slow, fast, slope), 1, 2, 0)


def gap_coefficients(pair: CentredPair) -> tuple[float, float, float, float]:
    """The gap is end + slow e^{-gamma t} + fast e^{-qt}; slope is how much `fast` grows with Q at the start."""
    D, p, lr = pair.D, pair.p, pair.lr
    dR = pair.R0 - pair.R_limit
    c9 = 2.0 * lr * p * np.sqrt(D) * G * (1.0 - lr * D)
    half = 0.5 * float(D[0] - D[1])
    k = float(c9 @ dR) / (pair.q - pair.gamma)
    moved = np.sqrt(D) * dR
    losses = pair.losses(pair.R_limit, pair.Q_limit)
    slow = half * k - G * float(moved[0] - moved[1])
    return float(losses[0] - losses[1]), slow, half * (pair.Q0 - pair.Q_limit - k), half


def _tangent(pair: CentredPair, end: float, slow: float, fast: float, slope: float) -> float:
    """Return the length at which end + slow u + f u^p, u = e^{-gamma t}, touches zero from the side of its end."""
    power = pair.q / pair.gamma
    touch = -end * power / (slow * (power - 1.0))
    needed = -slow / (power * touch ** (power - 1.0))
    return float((needed - fast) / slope)


@dataclass(frozen=True)
class GapParabola:
    """Gap in loss, first group minus second: end + linear x + quadratic x^2, with x = exp(-mean variance * lr * t).

    `overlap` is delta.Delta and `distance` delta.delta, with delta = start - end of the student and Delta = best
    student of the second group minus best student of the first. Only these two numbers of the prior knowledge matter.
    """

    groups: tuple[Hashable, Hashable]
    end: float
    linear: float
    quadratic: float
    overlap: float
    distance: float
    rate: float

    def gap(self, lr_t: float | np.ndarray) -> np.ndarray:
        """The gap at the time lr * t."""
        x = np.exp(-self.rate * np.asarray(lr_t, dtype=float))
        return np.asarray(self.end + self.linear * x + self.quadratic * x**2)

    @property
    def crossings(self) -> tuple[float, ...]:
        """The values of lr * t at which the losses cross."""
        roots = np.roots([self.quadratic, self.linear, self.end])
        inside = [x.real for x in roots if abs(x.imag) < 1e-12 and 0.0 < x.real < 1.0 - START]
        return tuple(sorted(float(-np.log(x) / self.rate) for x in inside))

    def __str__(self) -> str:
        times = ", ".join(f"{time:.4g}" for time in self.crossings)
        said = f"cross at lr t = {times}" if times else "never cross"
        return (
            f"At small learning rates the losses of {self.groups[0]} and {self.groups[1]} {said}: the prior overlaps "
            f"by {self.overlap:.4g} with what the groups disagree on, and is {np.sqrt(self.distance):.4g} away from "
            "where training ends."
        )


def gap_parabola(problem: tm.theory.Mixture, sgd: tm.SGD) -> GapParabola:
    """Return the gap in loss of two centred groups in the limit lr -> 0, from the start of `sgd`.

    >>> problem, sgd, _ = tm.theory.cases.centred_crossing()
    >>> print(gap_parabola(problem, sgd))
    At small learning rates the losses of + and - cross at lr t = 0.8066: the prior overlaps by 0.4932 with what the
    groups disagree on, and is 0.8208 away from where training ends.

    At a finite learning rate use `crossing_bound`, which is exact.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained; its learning rate only needs to be stable.
    """
    pair = centred_pair(problem, sgd, "gap_parabola")
    D, p, Dmix = pair.D, pair.p, pair.Dmix
    best = np.stack([pair.optimum(0), pair.optimum(1)])  # overlaps of w*_g with both teachers
    disagreement = G / np.sqrt(D[1]) * np.array([0.0, 1.0]) - G / np.sqrt(D[0]) * np.array([1.0, 0.0])
    end = p * D @ (G / np.sqrt(D)[:, None] * np.eye(2)) / Dmix  # coordinates of the end along the teachers
    squared = float(disagreement @ pair.gram @ disagreement)
    limit = (p * D) @ best / Dmix
    overlap = float(disagreement @ (pair.R0 - limit))
    distance = float(pair.Q0 - 2.0 * end @ pair.R0 + end @ pair.gram @ end)
    both = float(D[0] * D[1])
    return GapParabola(
        groups=(pair.groups[0], pair.groups[1]),
        end=both / (2.0 * Dmix**2) * squared * float(p[1] ** 2 * D[1] - p[0] ** 2 * D[0]),
        linear=both / Dmix * overlap,
        quadratic=0.5 * float(D[0] - D[1]) * distance,
        overlap=overlap,
        distance=distance,
        rate=Dmix,
    )
