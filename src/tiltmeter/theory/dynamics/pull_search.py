"""PullSearch: the pulls of groups, piece by piece in time, under which a criterion is smallest, by exact gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import xarray as xr
from scipy.optimize import minimize

from tiltmeter.criteria import Criterion, FinalGap, GapArea, WorstGroupArea, WorstGroupLoss
from tiltmeter.interventions.shared.shares import softmax
from tiltmeter.progress import Progress


def smooth(criterion: Criterion, losses: np.ndarray, times: np.ndarray, width: float) -> tuple[float, np.ndarray]:
    """Return the criterion of losses (T, G) and its gradient, with maxima and minima smoothed over `width`.

    >>> value, slope = smooth(WorstGroupLoss(), np.array([[0.5, 0.5], [0.1, 0.4]]), np.array([0.0, 1.0]), width=1e-6)
    >>> round(value, 6), slope[-1].tolist()
    (0.4, [0.0, 1.0])
    """
    measure = np.zeros(len(times))
    if isinstance(criterion, (WorstGroupArea, GapArea)):
        gaps = np.diff(times)
        measure[:-1] += 0.5 * gaps
        measure[1:] += 0.5 * gaps
        measure /= measure.sum() or 1.0
    elif isinstance(criterion, FinalGap) or (isinstance(criterion, WorstGroupLoss) and criterion.step is None):
        measure[-1] = 1.0
    else:
        raise TypeError(
            "`criterion` should be WorstGroupArea(), WorstGroupLoss(), GapArea() or FinalGap() here. "
            f"Found {criterion.name}."
        )
    value, slope = _largest(losses, width)
    if isinstance(criterion, (GapArea, FinalGap)):
        least, down = _largest(-losses, width)
        value, slope = value + least, slope - down
    return float(measure @ value), measure[:, None] * slope


def _largest(values: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean under softmax(values / width), a little below the maximum, and its gradient."""
    top = values.max(1, keepdims=True)
    q = np.exp((values - top) / width)
    q /= q.sum(1, keepdims=True)
    mean = (q * values).sum(1)
    return mean, q * (1.0 + (values - mean[:, None]) / width) + 0.0  # no negative zeros


#: Kinks of the criterion are rounded over these widths, one search after the other.
WIDTHS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
#: The smallest and largest logarithm of a pull over that of the first group.
FURTHEST = 8.0
#: How strongly a worse worst group is held against a schedule, in units of the criterion.
GUARD = 20.0


class Controlled(Protocol):
    """Group losses (evaluations, G) as a function of pulls (pieces, G), with exact gradients."""

    @property
    def shares(self) -> np.ndarray:
        """The pulls of plain training."""

    @property
    def pieces(self) -> int:
        """How many pieces of time have pulls of their own."""

    def losses(self, P: np.ndarray) -> tuple[np.ndarray, Any]:
        """The losses, and the states they come from."""

    def gradient(self, P: np.ndarray, states: Any, slopes: np.ndarray) -> np.ndarray:
        """What a function with gradient `slopes` (evaluations, G) in the losses changes with P."""


class PullSearch:
    """The criterion as a function of the logarithms of pulls, and the search for its smallest value."""

    def __init__(
        self,
        control: Controlled,
        criterion: Criterion,
        times: np.ndarray,
        guard: bool,
        rounds: int = 200,
        widths: Sequence[float] = WIDTHS,
    ) -> None:
        self.control, self.criterion, self.times, self.guard = control, criterion, times, guard
        self._rounds, self._widths = rounds, widths
        self._searched = 0
        self._told: Progress | None = None
        shares = np.tile(control.shares, (control.pieces, 1))
        self.plain = control.losses(shares)[0]
        self._bars = [self.exact(one, self.plain) for one in (WorstGroupArea(), WorstGroupLoss())]

    def exact(self, criterion: Criterion, losses: np.ndarray) -> float:
        curve = xr.DataArray(losses, dims=("time", "group"), coords={"time": self.times})
        return float(criterion.of({"loss": curve}))

    def value(self, logs: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        """Return the smoothed criterion and its gradient in the logarithms of all pulls but the first group's."""
        number = len(self.control.shares)
        given = np.concatenate([np.zeros((len(logs) // (number - 1), 1)), logs.reshape(-1, number - 1)], axis=1)
        P = softmax(given)
        losses, states = self.control.losses(P)
        if not np.isfinite(losses).all():
            return 1e6, np.zeros_like(logs)
        found, slopes = smooth(self.criterion, losses, self.times, width)
        if self.guard:
            for one, bar in zip((WorstGroupArea(), WorstGroupLoss()), self._bars, strict=True):
                worst, slope = smooth(one, losses, self.times, width)
                if worst > bar:
                    found, slopes = found + GUARD * (worst - bar), slopes + GUARD * slope
        pulled = self.control.gradient(P, states, slopes)
        inner = P * (pulled - (P * pulled).sum(1, keepdims=True))
        return found, inner[:, 1:].ravel()

    def best(self, pieces: int) -> np.ndarray:
        """Return pulls (pieces, G): the best fixed ones, refined piece by piece, or all pieces at once."""
        number = len(self.control.shares)
        if number < 2:
            raise ValueError("Pulls of groups need at least two groups. Found one.")
        shares = np.log(np.maximum(self.control.shares, 1e-3))
        begins = [np.tile((shares - shares[0])[1:], (pieces, 1)), np.zeros((pieces, number - 1))]
        total = (len(begins) + max(0, pieces - 1).bit_length() + (pieces > 2)) * len(self._widths)
        with Progress(total, lambda done: f"search {done} of {total}") as told:
            self._told = told
            fixed = found = min((self._descend(one, 1) for one in begins), key=self._judged)
            parts = 1
            while parts < pieces:
                parts = min(2 * parts, pieces)
                found = min((found, self._descend(found, parts)), key=self._judged)
            if pieces > 2:
                found = min((found, self._descend(fixed, pieces)), key=self._judged)
        return softmax(np.concatenate([np.zeros((pieces, 1)), found], axis=1))

    def _judged(self, logs: np.ndarray) -> float:
        return self.value(logs.ravel(), 1e-6)[0]

    def _descend(self, logs: np.ndarray, parts: int) -> np.ndarray:
        """Run L-BFGS with less and less smoothing; the pieces move in this many parts, each as one."""
        pieces, free = logs.shape
        part = np.arange(pieces) * parts // pieces
        middle = np.stack([logs[part == i].mean(0) for i in range(parts)])

        def cost(x: np.ndarray, width: float) -> tuple[float, np.ndarray]:
            found, slope = self.value(x.reshape(parts, free)[part].ravel(), width)
            summed = np.zeros((parts, free))
            np.add.at(summed, part, slope.reshape(pieces, free))
            return found, summed.ravel()

        x = middle.ravel()
        for width in self._widths:
            done = minimize(
                cost, x, (width,), "L-BFGS-B", jac=True, bounds=[(-FURTHEST, FURTHEST)] * len(x),
                options={"maxiter": self._rounds, "ftol": 1e-12, "gtol": 1e-9},
            )  # fmt: skip
            x = done.x
            self._searched += 1
            if self._told is not None:
                self._told(self._searched)
        return np.asarray(x.reshape(parts, free)[part])
