"""The equations of motion under a group intervention, whose state is integrated together with the student.

With pulls P_g from the intervention (docs/interventions.md),

    dw/dt = -lr sum_g P_g [D_g w + mean_g (w.mean_g + b - m_g) - sqrt(D_g) g_g teacher_g] - lr decay w
    dQ/dt = drift with the same P_g + lr^2 sum_g N_g D_g 2 loss_g,       dz/dt = change(z, losses)

and N_g = P_g^2 / (p_g batch) by weights, P_g / batch by draws. Fixed loss weights s multiply: P s and N s^2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen, pulls, refuse_unreachable
from tiltmeter.theory.dynamics.ode import HUGE, Diverged, Solution, by_pieces, rate_at, velocity, weights_at
from tiltmeter.theory.population.labelled_curves import OverlapCurves, losses
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters

#: Tolerances; a hundred times larger for interventions that are not smooth.
RTOL, ATOL = 1e-10, 1e-12
#: Errors of losses stay below this many RTOL: interventions that react strongly amplify those of the integration.
AMPLIFIED = 1e4
#: If an integration fails with overlaps beyond this, the student has diverged.
LARGE = 1e3


@dataclass(frozen=True)
class SteeredODE:
    """All grid points of a problem under one intervention: (M, R, Q, bias, z) per point, in one system.

    Interventions of gradients see diag(2 D_g loss_g / n_g) with n_g = batch p_g points: their limit for 1 << batch <<
    d."""

    par: Parameters
    sgd: SGD
    law: GroupIntervention
    start: np.ndarray

    @classmethod
    def of(cls, problem: Mixture, sgd: SGD, law: GroupIntervention) -> SteeredODE:
        rest = tuple(one for one in sgd.interventions if one is not law)
        par = parameters(problem, replace(sgd, interventions=rest))
        refuse_unreachable(law, par.groups, par.p)
        z = law.start(par.p).reshape(par.size, -1)
        start = np.concatenate([par.M0, par.R0, par.Q0[:, None], par.bias0[:, None], z], axis=1)
        return cls(par, sgd, law, start)

    def seen(self, t: float, state: np.ndarray) -> tuple[np.ndarray, Seen]:
        """Return the intervention's state and what it sees, from states of shape (N, ...)."""
        par, number = self.par, len(self.par.groups)
        M, R, Q, bias = _student(state, number)
        loss = losses(par, M[:, None], R[:, None], Q[:, None], bias[:, None])[:, 0]
        gram = None
        if self.law.sees_gram:
            noise = 2.0 * par.D * loss / (par.batch[:, None] * par.p)
            gram = noise[:, :, None] * np.eye(number)
        z = state[:, 2 * number + 2 :].reshape(self.law.start(par.p).shape)
        return z, Seen(t, par.groups, par.p, loss, gram=gram)

    def velocity(self, t: float, state: np.ndarray) -> np.ndarray:
        par, number = self.par, len(self.par.groups)
        z, seen = self.seen(t, state)
        P = pulls(self.law, z, seen)
        if not np.isfinite(P).all():
            raise ValueError(f"`pull` of {type(self.law).__name__} is not a number at t = {t:.4g}.")
        N = (P if self.law.by == "draws" else P**2 / par.p) / par.batch[:, None]
        s = weights_at(self.sgd, par, t)
        moved = velocity(par, *_student(state, number), rate_at(self.sgd, par, t), P * s, N * s**2)
        dM, dR, dQ, dbias = moved
        dz = self.law.change(z, seen).reshape(par.size, -1)
        return np.concatenate([dM, dR, dQ[:, None], dbias[:, None], dz], axis=1)

    @property
    def tolerance(self) -> tuple[float, float]:
        return (RTOL, ATOL) if self.law.smooth else (1e2 * RTOL, 1e2 * ATOL)

    @property
    def resolution(self) -> float:
        """Smaller differences between curves may be errors of the integration."""
        return AMPLIFIED * self.tolerance[0]

    def states(self, times: np.ndarray, keep: bool = False) -> tuple[np.ndarray, Solution | None]:
        """States (T, N, ...) at these times, and as a function of time if that should be kept."""
        shape, latest = self.start.shape, (0.0, self.start.ravel())
        rtol, atol = self.tolerance

        def rhs(t: float, y: np.ndarray) -> np.ndarray:
            nonlocal latest
            latest = t, y
            return self.velocity(t, y.reshape(shape)).ravel()

        try:
            found, kept = by_pieces(rhs, self.start.ravel(), times, self.sgd, "DOP853", rtol, atol, keep)
        except Diverged as error:
            # Pulls that grow with the loss diverge within a finite time, before the bound is reached.
            error.time, error.state = latest
            raise
        return found.reshape(len(times), *shape), kept

    def among(self, points: np.ndarray) -> SteeredODE:
        """The same intervention at some of the grid points."""
        cut = {
            name: value[points]
            for name, value in vars(self.par).items()
            if isinstance(value, np.ndarray) and len(value) == self.par.size
        }
        return replace(self, par=replace(self.par, **cut), start=self.start[points])

    def curves(self, times: np.ndarray, states: np.ndarray) -> tuple[OverlapCurves, np.ndarray]:
        """Overlaps and pulls (N, T, G) of states (T, N, ...)."""
        number = len(self.par.groups)
        P = np.stack([pulls(self.law, *self.seen(float(t), y)) for t, y in zip(times, states, strict=True)], axis=1)
        over = states.transpose(1, 0, 2)
        M, R, Q, bias = (np.ascontiguousarray(part) for part in _student(over, number))
        P[np.isnan(Q)] = np.nan  # diverged
        return OverlapCurves(M, R, Q, bias, losses(self.par, M, R, Q, bias)), P


def _student(state: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return state[..., :number], state[..., number : 2 * number], state[..., 2 * number], state[..., 2 * number + 1]


def solve_grid(flow: SteeredODE, times: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """States at these times, and when each grid point diverged (NaN: never; None: no point did).

    A single problem that diverges raises an error; in a grid its states are NaN, and the others are integrated without
    it.
    """
    size = flow.par.size
    alive, ended = np.arange(size), np.full(size, np.nan)
    while True:
        try:
            found, _ = flow.among(alive).states(times)
            break
        except Diverged as error:
            grown = np.abs(np.nan_to_num(np.asarray(error.state).reshape(len(alive), -1), nan=np.inf)).max(1)
            if not flow.par.grid.sizes or grown.max() < LARGE:
                raise
            worst = ~(grown < np.sqrt(min(grown.max(), HUGE)))  # much larger than the others, or NaN
            ended[alive[worst]] = error.time
            alive = alive[~worst]
            if not len(alive):
                return np.full((len(times), *flow.start.shape), np.nan), ended
    if len(alive) == size:
        return found, None
    whole = np.full((len(times), *flow.start.shape), np.nan)
    whole[:, alive] = found
    return whole, ended
