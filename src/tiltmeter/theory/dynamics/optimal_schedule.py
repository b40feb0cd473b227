"""optimal_schedule: the pulls of groups, piecewise constant in time, that minimise a criterion."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from tiltmeter.criteria import Criterion, WorstGroupArea
from tiltmeter.interventions.group import PullSchedule
from tiltmeter.schedules import Steps
from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.dynamics.ode import rate_at
from tiltmeter.theory.dynamics.pull_search import PullSearch
from tiltmeter.theory.problem.applied_interventions import refuse_interventions
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters
from tiltmeter.theory.problem.times import checked_times

#: The longest time step, in units of the fastest time scale.
LONGEST_STEP = 0.25


#: Relative changes below this are not reported.
NOTICEABLE = 1e-3
#: The penalty for making the worst group worse, in units of the criterion.
GUARD = 20.0


@dataclass(frozen=True)
class OptimalSchedule(NotebookText):
    """The best pulls that were found, as an intervention, and what they do.

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
        if self.levels_down:
            text += " This is levelling down: the worst group is worse off."
        return "\n".join([text, *self._pulls()])

    def _pulls(self) -> list[str]:
        """One line for each piece of time: from when on, and the pull of every group."""
        steps = {group: step for group, step in self.law.pulls.items() if isinstance(step, Steps)}
        starts = next(iter(steps.values())).starts
        ends = [f"to {end:.4g}" for end in starts[1:]] + ["on"]
        lines = []
        for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
            pulls = ", ".join(f"{group} {step.values[i]:.3f}" for group, step in steps.items())
            lines.append(f"  from t = {start:.4g} {end}: {pulls}")
        return lines


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
    >>> best = optimal_schedule(problem, tm.SGD(lr=0.2), times, tm.fairness.criteria.GapArea(), pieces=1)
    >>> round(best.law.pulls["+"](0.0), 2)
    0.58
    >>> steered = tm.predict(problem, tm.SGD(lr=0.2, interventions=(best.law,)), times)

    Gradients are exact, by the adjoint of the equations of motion.

    The schedule is for this problem, which must be known exactly. The search follows gradients, from coarse pieces to
    fine ones, and may end in a local minimum.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times from start to end of the training.
        criterion: What is to be small, one of `tm.fairness.criteria`.
        pieces: Intervals, evenly spaced in log time, in which pulls are constant.
        by: Whether pulls are applied as "weights" or as "draws".
        guard: Whether levelling down is excluded: the worst group must not be worse off than in plain training.
    """
    if not isinstance(criterion, Criterion):
        kind = f"the class {criterion.__name__}: call it" if isinstance(criterion, type) else type(criterion).__name__
        raise TypeError(f"`criterion` should be one, as WorstGroupArea(). Found {kind}.")
    if isinstance(pieces, bool) or pieces != int(pieces) or pieces < 1:
        raise ValueError(f"`pieces` should be a whole number, at least 1. Found pieces = {pieces!r}.")
    if by not in ("weights", "draws"):
        raise ValueError(f'`by` should be "weights" or "draws". Found by = {by!r}.')
    refuse_interventions(sgd, "optimal_schedule")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None), ("weights", sgd.weights)):
        if given:
            raise ValueError(f"`optimal_schedule` has no solution with {name}: leave it out.")
    evaluations = checked_times(times)
    if len(evaluations) < 2:
        raise ValueError("`times` should hold the whole training, at least two times. Found one.")
    par = parameters(problem, sgd)
    if par.grid.sizes:
        raise ValueError(
            f"`optimal_schedule` is for one problem. Found a grid over {', '.join(map(str, par.grid.sizes))}."
        )
    starts = np.concatenate([[0.0], np.geomspace(evaluations[evaluations > 0][0], evaluations[-1], pieces + 1)[1:-1]])
    search = PullSearch(
        Control.of(par, sgd, evaluations, starts, by), criterion, evaluations, guard and criterion.levels
    )
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


@dataclass(frozen=True)
class Control:
    """One problem, cut into steps that end at every evaluation and at every beginning of a piece.

    `evaluations` are places in `edges`; `piece` says in which piece of pulls a step lies.
    """

    par: Parameters
    by: Literal["weights", "draws"]
    edges: np.ndarray
    piece: np.ndarray
    evaluations: np.ndarray
    rates: np.ndarray

    @classmethod
    def of(
        cls, par: Parameters, sgd: SGD, times: np.ndarray, starts: np.ndarray, by: Literal["weights", "draws"]
    ) -> Control:
        corners = np.unique(np.concatenate([[0.0], times, starts, [b for b in sgd.breaks if b < times[-1]]]))
        lr = max(float(rate_at(sgd, par, float(t))[0]) for t in corners)
        fastest = lr * float(np.trace(par.K[0]) + par.D[0].max() + par.decay[0] + (1.0 if par.train_bias else 0.0))
        parts = [
            np.linspace(a, b, 1 + max(1, int(np.ceil(2.0 * fastest * (b - a) / LONGEST_STEP))))[1:]
            for a, b in pairwise(corners.tolist())
        ]
        edges = np.concatenate([[0.0], *parts])
        piece = np.searchsorted(starts, 0.5 * (edges[:-1] + edges[1:]), side="right") - 1
        inside = edges[:-1], 0.5 * (edges[:-1] + edges[1:]), np.nextafter(edges[1:], 0.0)
        rates = np.stack([[float(rate_at(sgd, par, float(t))[0]) for t in part] for part in inside], axis=1)
        return cls(par, by, edges, piece, np.searchsorted(edges, times), rates)

    @property
    def shares(self) -> np.ndarray:
        """How often groups are drawn."""
        return np.asarray(self.par.p[0])

    @property
    def pieces(self) -> int:
        return int(self.piece.max()) + 1

    def _fixed(self) -> tuple[np.ndarray | float | bool, ...]:
        par = self.par
        reach = np.sqrt(par.D[0]) * par.g[0]
        return par.D[0], par.m[0], reach, par.K[0], par.C[0], par.T[0], float(par.decay[0]), par.train_bias

    def _noise(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """N and dN/dP."""
        batch = float(self.par.batch[0])
        if self.by == "draws":
            return P / batch, np.full_like(P, 1.0 / batch)
        return P**2 / (self.par.p[0] * batch), 2.0 * P / (self.par.p[0] * batch)

    def losses(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return group losses (evaluations, G) for pulls P (pieces, G), and the states behind them."""
        from tiltmeter.theory.dynamics.compiled_control import forward

        par = self.par
        start = np.concatenate([par.M0[0], par.R0[0], par.Q0, par.bias0])
        P = np.ascontiguousarray(P)
        states = forward(start, self.edges, self.piece, self.rates, P, self._noise(P)[0], *self._fixed())
        seen = states[self.evaluations]
        number = len(par.groups)
        score = seen[:, :number] + seen[:, -1:]
        reach = np.sqrt(par.D[0]) * par.g[0]
        squared = score**2 + par.D[0] * seen[:, -2:-1] + 1.0
        return 0.5 * (squared - 2.0 * (par.m[0] * score + reach * seen[:, number : 2 * number])), states

    def gradient(self, P: np.ndarray, states: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the gradient in P (pieces, G) of a function with gradient `slopes` (evaluations, G) in the losses."""
        from tiltmeter.theory.dynamics.compiled_control import backward

        par, number = self.par, len(self.par.groups)
        seen = states[self.evaluations]
        given = np.zeros_like(states)
        miss = seen[:, :number] + seen[:, -1:] - par.m[0]
        at = np.zeros((len(self.evaluations), states.shape[1]))
        at[:, :number] = slopes * miss
        at[:, number : 2 * number] = -slopes * np.sqrt(par.D[0]) * par.g[0]
        at[:, -2] = 0.5 * slopes @ par.D[0]
        at[:, -1] = (slopes * miss).sum(1)
        given[self.evaluations] = at
        P = np.ascontiguousarray(P)
        found = backward(states, given, self.edges, self.piece, self.rates, P, *self._noise(P), *self._fixed())
        return np.asarray(found)
