"""critical_length: how much irrelevant pre-training removes the crossing of two groups."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.starts import Zero
from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.prior.centred_pair import CentredPair, G, centred_pair


@dataclass(frozen=True)
class CriticalLength(NotebookText):
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


def critical_length(problem: Mixture, sgd: SGD) -> CriticalLength:
    """Return the squared length of irrelevant prior knowledge above which two centred groups no longer cross.

    >>> from tiltmeter.problem import cases
    >>> problem, sgd, _ = cases.centred_crossing()
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
    if isinstance(sgd, SGD) and not isinstance(sgd.start, Zero):
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
