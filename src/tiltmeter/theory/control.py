"""Control: group losses as a function of the pulls in every piece of time, with exact gradients."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import Parameters
from tiltmeter.theory.ode import rate_at

#: The longest time step, in units of the fastest time scale.
LONGEST_STEP = 0.25


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
        from tiltmeter.theory.compiled_control import forward

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
        from tiltmeter.theory.compiled_control import backward

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
