"""optimal_schedule: the pulls of groups, piecewise constant in time, that minimise a criterion."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from scipy.optimize import minimize

from tiltmeter.interventions.pull_schedule import PullSchedule
from tiltmeter.interventions.softmax import softmax
from tiltmeter.notebook_text import NotebookText
from tiltmeter.population.criteria import Criterion, WorstGroupArea, WorstGroupLoss
from tiltmeter.problem.laws import refuse_laws
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import parameters
from tiltmeter.problem.times import checked_times
from tiltmeter.schedule import Steps
from tiltmeter.theory.control import Control
from tiltmeter.theory.smooth_criteria import smooth

#: Kinks of the criterion are smoothed over these widths, in one search after the other.
WIDTHS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
#: The smallest and largest logarithm of a pull over that of the first group.
FURTHEST = 8.0
#: Relative changes below this are not reported.
NOTICEABLE = 1e-3
#: The penalty for making the worst group worse, in units of the criterion.
GUARD = 20.0


@dataclass(frozen=True)
class OptimalSchedule(NotebookText):
    """The best pulls that were found, as a law, and what they do.

    `before` and `after` are the criterion of plain training and of the schedule; `losses` holds every group's last loss
    both ways, `worst_area` the worst group's loss averaged over training.
    """

    law: PullSchedule
    criterion: Criterion
    before: float
    after: float
    losses: dict[Hashable, tuple[float, float]]
    worst_area: tuple[float, float]

    @property
    def levels_down(self) -> bool:
        """Whether the worst group is worse off than in plain training, at the end or on the way."""
        ends = [max(pair[i] for pair in self.losses.values()) for i in (0, 1)]
        return any(after > before * (1 + NOTICEABLE) for before, after in ((ends[0], ends[1]), self.worst_area))

    def __str__(self) -> str:
        if self.after > self.before * (1 - NOTICEABLE):
            return f"No pulls improve {self.criterion.name}, which is {self.before:.4g}."
        ends = "; ".join(f"{group} {before:.4g} to {after:.4g}" for group, (before, after) in self.losses.items())
        text = f"{self.criterion.name[0].upper()}{self.criterion.name[1:]} goes from {self.before:.4g} to "
        text += f"{self.after:.4g} (final losses: {ends})."
        return f"{text} This is levelling down: the worst group is worse off." if self.levels_down else text


def optimal_schedule(
    problem: Mixture,
    sgd: SGD,
    times: Any,
    criterion: Any = WorstGroupArea(),
    *,
    pieces: int = 12,
    by: Literal["weights", "draws"] = "draws",
    guard: bool = True,
) -> OptimalSchedule:
    """Find the best pulls for a criterion, constant within `pieces` evenly spaced in log time (one piece: fixed pulls).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> times = [0.0, *np.geomspace(0.02, 60.0, 200)]
    >>> best = optimal_schedule(problem, tm.SGD(lr=0.2), times, tm.criteria.GapArea(), pieces=1)
    >>> round(best.law.pulls["+"](0.0), 2)
    0.58
    >>> steered = tm.predict(problem, tm.SGD(lr=0.2, interventions=(best.law,)), times)

    Gradients are exact, by the adjoint of the equations of motion. With `guard`, a criterion that could reward
    levelling down must not make the worst group worse off than plain training, neither at the end nor on average.

    The schedule is for this problem, which must be known exactly. The search follows gradients, from coarse pieces to
    fine ones, and may end in a local minimum.
    """
    if not isinstance(criterion, Criterion):
        kind = f"the class {criterion.__name__}: call it" if isinstance(criterion, type) else type(criterion).__name__
        raise TypeError(f"`criterion` should be one, as WorstGroupArea(). Found {kind}.")
    if isinstance(pieces, bool) or pieces != int(pieces) or pieces < 1:
        raise ValueError(f"`pieces` should be a whole number, at least 1. Found pieces = {pieces!r}.")
    if by not in ("weights", "draws"):
        raise ValueError(f'`by` should be "weights" or "draws". Found by = {by!r}.')
    refuse_laws(sgd, "optimal_schedule")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None), ("weights", sgd.weights)):
        if given:
            raise ValueError(f"`optimal_schedule` has no solution with {name}: leave it out.")
    looks = checked_times(times)
    if len(looks) < 2:
        raise ValueError("`times` should hold the whole training, at least two times. Found one.")
    par = parameters(problem, sgd)
    if par.grid.sizes:
        raise ValueError(
            f"`optimal_schedule` is for one problem. Found a grid over {', '.join(map(str, par.grid.sizes))}."
        )
    starts = np.concatenate([[0.0], np.geomspace(looks[looks > 0][0], looks[-1], pieces + 1)[1:-1]])
    search = _Search(Control.of(par, sgd, looks, starts, by), criterion, looks, guard and criterion.levels)
    P = search.best(pieces)
    steps = {g: Steps(tuple(starts), tuple(P[:, i])) for i, g in enumerate(par.groups)}
    plain, better = search.plain, search.control.losses(P)[0]
    return OptimalSchedule(
        PullSchedule(steps, by=by),
        criterion,
        search.exact(criterion, plain),
        search.exact(criterion, better),
        {g: (float(plain[-1, i]), float(better[-1, i])) for i, g in enumerate(par.groups)},
        (search.exact(WorstGroupArea(), plain), search.exact(WorstGroupArea(), better)),
    )


class _Search:
    """The criterion as a function of the logarithms of pulls, and the search for its smallest value."""

    def __init__(self, control: Control, criterion: Criterion, times: np.ndarray, guard: bool) -> None:
        self.control, self.criterion, self.times, self.guard = control, criterion, times, guard
        pieces = int(control.piece.max()) + 1
        shares = np.tile(control.par.p[0], (pieces, 1))
        self.plain = control.losses(shares)[0]
        self._bars = [self.exact(one, self.plain) for one in (WorstGroupArea(), WorstGroupLoss())]

    def exact(self, criterion: Criterion, losses: np.ndarray) -> float:
        curve = xr.DataArray(losses, dims=("time", "group"), coords={"time": self.times})
        return float(criterion.of({"loss": curve}))

    def value(self, logs: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        """Return the smoothed criterion and its gradient in the logarithms of all pulls but the first group's."""
        number = len(self.control.par.groups)
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
        number = len(self.control.par.groups)
        if number < 2:
            raise ValueError("Pulls of groups need at least two groups. Found one.")
        shares = np.log(np.maximum(self.control.par.p[0], 1e-3))
        begins = [np.tile((shares - shares[0])[1:], (pieces, 1)), np.zeros((pieces, number - 1))]
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
        for width in WIDTHS:
            done = minimize(
                cost, x, (width,), "L-BFGS-B", jac=True, bounds=[(-FURTHEST, FURTHEST)] * len(x),
                options={"maxiter": 200, "ftol": 1e-12, "gtol": 1e-9},
            )  # fmt: skip
            x = done.x
        return np.asarray(x.reshape(parts, free)[part])
