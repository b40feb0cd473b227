"""crossing_bound: how often the losses of two groups can cross, from any start."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.dynamics.modes import Modes, modes
from tiltmeter.theory.dynamics.stability import divergence
from tiltmeter.theory.problem.applied_interventions import refuse_interventions
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters

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

    >>> from tiltmeter.theory import cases, starts
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
