"""Crossings from prior knowledge: how many are possible, what pre-training removes them, and the gap's parabola."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.applied_interventions import refuse_interventions
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import Parameters, parameters
from tiltmeter.problem.starts import Zero
from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.modes import Modes, modes
from tiltmeter.theory.prior.centred_pair import CentredPair, G, centred_pair
from tiltmeter.theory.stability import divergence

#: An x this close to 1 is the start itself.
START = 1e-12


#: Rates closer than this, relative to the larger, count as equal.
SAME = 1e-9
#: Coefficients below this share of the largest are rounding errors.
NOTHING = 1e-12
#: If a rate equals q, t e^{-qt} is written as a difference of two exponentials with this relative distance.
APART = 1e-6


@dataclass(frozen=True)
class CrossingBound(NotebookText):
    """At most `most` crossings of the losses of `pair`, and an odd number of them iff `odd`.

    The gap, first minus second, is the sum of `coefficients` times exp(-rate t), the first rate being 0.
    """

    pair: tuple[Hashable, Hashable]
    most: int
    odd: bool
    rates: tuple[float, ...]
    coefficients: tuple[float, ...]

    @property
    def least(self) -> int:
        """The smallest possible number of crossings."""
        return int(self.odd)

    def __str__(self) -> str:
        a, b = self.pair
        if not any(self.coefficients):
            return f"The losses of {a} and {b} are equal at all times."
        if self.most == self.least:
            return f"The losses of {a} and {b} cross {('never', 'exactly once')[self.most]}."
        kind = "an odd number of times" if self.odd else "an even number of times, perhaps never"
        return f"The losses of {a} and {b} cross at most {self.most} times, {kind}."


def crossing_bound(problem: Mixture, sgd: SGD, pair: tuple[Hashable, Hashable] | None = None) -> CrossingBound:
    """Bound how often the losses of two groups cross after the start, from the signs of a few coefficients.

    >>> from tiltmeter.problem import cases, starts
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> print(crossing_bound(problem, sgd))
    The losses of + and - cross exactly once.
    >>> print(crossing_bound(problem, SGD(lr=0.1, start=starts.Overlaps(Q=0.015))))
    The losses of + and - cross at most 2 times, an even number of times, perhaps never.

    The gap of the linear student is a sum of exponentials, so by Descartes' rule of signs it has at most as many zeros
    as its coefficients, ordered by rate, have changes of sign. The number is odd if and only if both ends differ in
    sign. A start from zero has one of these zeros at t = 0, so centred groups then cross at most once; from any other
    start at most twice.

    This is a bound; `crossings` counts. It is for losses only, because errors are not sums of exponentials.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        pair: Two groups to compare; None: the only two there are.
    """
    refuse_interventions(sgd, "crossing_bound")
    if sgd.scheduled:
        raise ValueError("`crossing_bound` needs constant settings. With schedules use `predict` and `leaders`.")
    par = parameters(problem, sgd)
    if par.grid.sizes:
        raise ValueError(
            f"`crossing_bound` is for one problem; it has a grid over {', '.join(map(str, par.grid.sizes))}."
        )
    divergence(par)
    one, two = _places(par, pair)
    terms = _gap_terms(par, modes(par), one, two)
    rates, values = np.array(sorted(terms)), np.array([terms[rate] for rate in sorted(terms)])
    scale = np.abs(values).max(initial=0.0)
    values = np.where(np.abs(values) > NOTHING * max(scale, 1e-3), values, 0.0)
    first, last = _sign_at_start(rates, values, scale), _first_sign(values)
    kept = values[values != 0.0]
    changes = int((np.sign(kept[1:]) != np.sign(kept[:-1])).sum()) if kept.size else 0
    level = abs(values.sum()) <= NOTHING * max(scale, 1.0) * 10.0
    most = max(0, changes - int(level))
    odd = first * last < 0
    # Bound and parity together: the largest number not above the bound with the right parity.
    most -= (most - int(odd)) % 2
    names = (par.groups[one], par.groups[two])
    return CrossingBound(names, max(most, int(odd)), bool(odd), tuple(rates.tolist()), tuple(values.tolist()))


def _places(par: Parameters, pair: tuple[Hashable, Hashable] | None) -> tuple[int, int]:
    if pair is None:
        if len(par.groups) != 2:
            raise ValueError(f"This compares two groups; there are {len(par.groups)}. Pass pair=.")
        return 0, 1
    for group in pair:
        if group not in par.groups:
            raise KeyError(f"No group {group!r}. There are: {', '.join(map(repr, par.groups))}.")
    return par.groups.index(pair[0]), par.groups.index(pair[1])


def _gap_terms(par: Parameters, solved: Modes, one: int, two: int) -> dict[float, float]:
    """Rate -> coefficient of the gap in loss."""
    rate, q = solved.rates[0], float(solved.q[0])
    found: list[tuple[float, float]] = []
    for g, sign in ((one, 1.0), (two, -1.0)):
        score = solved.M[0, :, g] + solved.bias[0]
        reach = float(np.sqrt(par.D[0, g]) * par.g[0, g])
        for i in range(len(rate)):
            found.append((rate[i], -sign * (par.m[0, g] * score[i] + reach * solved.R[0, i, g])))
            found += [(rate[i] + rate[j], 0.5 * sign * score[i] * score[j]) for j in range(len(rate))]
    half = 0.5 * float(par.D[0, one] - par.D[0, two])
    found.append((q, half * float(solved.Q0[0])))
    for (i, j), source in zip(solved.pairs, solved.sources[0], strict=True):
        s = float(rate[i] + rate[j])
        if abs(q - s) < APART * q:
            s = q * (1.0 - APART)
        found += [(s, half * source / (q - s)), (q, -half * source / (q - s))]
    return _merged(found)


def _merged(found: list[tuple[float, float]]) -> dict[float, float]:
    merged: dict[float, float] = {}
    last = None
    for rate, value in sorted((float(r), float(v)) for r, v in found):
        if last is not None and abs(rate - last) <= SAME * max(rate, 1e-300):
            merged[last] += value
        else:
            merged[rate] = value
            last = rate
    return merged


def _first_sign(values: np.ndarray) -> float:
    """Return the sign of the slowest non-zero term: who leads in the end."""
    kept = values[values != 0.0]
    return float(np.sign(kept[0])) if kept.size else 0.0


def _sign_at_start(rates: np.ndarray, values: np.ndarray, scale: float) -> float:
    """Return the sign of the gap right after t = 0: of its value, or of its first non-zero derivative."""
    for order in range(len(rates)):
        terms = values * (-rates) ** order
        size = np.abs(terms).max(initial=0.0)
        if abs(terms.sum()) > NOTHING * 10.0 * max(size, scale if order == 0 else 0.0):
            return float(np.sign(terms.sum()))
    return 0.0


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


@dataclass(frozen=True)
class GapParabola(NotebookText):
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


def gap_parabola(problem: Mixture, sgd: SGD) -> GapParabola:
    """Return the gap in loss of two centred groups in the limit lr -> 0, from the start of `sgd`.

    >>> from tiltmeter.problem import cases
    >>> problem, sgd, _ = cases.centred_crossing()
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
