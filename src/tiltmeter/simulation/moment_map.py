"""MomentMap: one step of the first and second moments of the linear student, exact at any d.

The student is w (its coordinates in the span of means and teachers, and its bias, whose input is always 1) and s, the
length of the rest. In group g inputs have mean m, covariance V, second moment X = V + m m', and labels y. With
e = w.x + s z - y the error, h = lr / d and B the batch, w <- w - h (mean of e x over the batch) and so on, and

    E[x x' (w.x)^2] = tr(X C) X + 2 X C X - 2 (m'C m) m m',   C = E[w w']
    E[y x x' (w.x)] = a polynomial in E[y nu^k], k = 0..3, with nu the normal part of the label's field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import erf

from tiltmeter.simulation.setting import Setting


class State(NamedTuple):
    """One, E[w], E[w w'] and E[s^2]; the recursion is linear in all of them."""

    one: float
    mean: np.ndarray
    square: np.ndarray
    rest: float


@dataclass(frozen=True)
class MomentMap:
    """Constants of all groups: shares p, variances D, means m (G, n), second moments X (G, n, n), E[y x] (G, n)."""

    p: np.ndarray
    D: np.ndarray
    m: np.ndarray
    X: np.ndarray
    yx: np.ndarray
    pull: np.ndarray  # sqrt(D) times the teacher
    across: np.ndarray  # covariance of what is orthogonal to the teacher
    y: np.ndarray  # E[y nu^k], k = 0..3
    learns: np.ndarray  # 1 where a coordinate of w is trained
    decay: np.ndarray  # decay of each coordinate of w
    batch: int
    d: int

    @classmethod
    def of(cls, chosen: Setting) -> MomentMap:
        D, rank, groups = chosen.par.D[0], chosen.rank, len(chosen.shares)
        m = np.concatenate([chosen.means, np.ones((groups, 1))], axis=1)
        teachers = np.concatenate([chosen.teachers, np.zeros((groups, 1))], axis=1)
        inputs = np.diag([1.0] * rank + [0.0])
        a = chosen.par.a[0]
        phi = np.exp(-0.5 * a**2) / np.sqrt(2.0 * np.pi)
        y0 = erf(a / np.sqrt(2.0))
        y = np.stack([y0, 2.0 * phi, y0 - 2.0 * a * phi, 2.0 * phi * (a**2 + 2.0)])
        pull = np.sqrt(D)[:, None] * teachers
        return cls(
            p=chosen.shares,
            D=D,
            m=m,
            X=D[:, None, None] * inputs + m[:, :, None] * m[:, None, :],
            yx=m * y[0][:, None] + pull * y[1][:, None],
            pull=pull,
            across=D[:, None, None] * inputs - pull[:, :, None] * pull[:, None, :],
            y=y,
            learns=np.array([1.0] * rank + [float(chosen.sgd.train_bias)]),
            decay=np.array([float(chosen.sgd.weight_decay)] * rank + [0.0]),  # type: ignore[arg-type]
            batch=chosen.batch,
            d=chosen.d,
        )

    def squared_errors(self, state: State) -> np.ndarray:
        """E[e^2] in every group."""
        quadratic = np.einsum("gab,ab->g", self.X, state.square) + self.D * state.rest
        return np.asarray(quadratic - 2.0 * self.yx @ state.mean + state.one)

    def change(self, state: State, weights: np.ndarray) -> tuple[State, State]:
        """What one step adds to the moments: the parts in h and in h^2."""
        one, mean, C, S = state
        P, P2, B = self.p * weights, self.p * weights**2, self.batch
        A, beta = np.einsum("g,gab->ab", P, self.X), P @ self.yx
        L, fade, D_bar = self.learns, self.decay, P @ self.D
        T, tau = L[:, None] * A + np.diag(fade), L * beta
        crossed = T @ C - np.outer(tau, mean)
        decay = fade[0]
        first = State(0.0, one * tau - T @ mean, -(crossed + crossed.T), -2.0 * (D_bar + decay) * S)

        error = self.squared_errors(state)
        XCX = np.einsum("gab,bc,gcd->gad", self.X, C, self.X)
        mCm = np.einsum("ga,ab,gb->g", self.m, C, self.m)
        fourth = np.einsum("gab,ab->g", self.X, C)[:, None, None] * self.X + 2.0 * XCX
        fourth -= 2.0 * mCm[:, None, None] * self.m[:, :, None] * self.m[:, None, :]
        fourth += (self.D * S + one)[:, None, None] * self.X - 2.0 * self._labelled(mean)
        noise = np.einsum("g,gab->ab", P2, fourth) / B
        drift = A @ C @ A - np.outer(A @ mean, beta) - np.outer(beta, A @ mean) + one * np.outer(beta, beta)
        mixed = (L[:, None] * (A @ C - np.outer(beta, mean))) * fade
        square = np.outer(L, L) * (noise + (1.0 - 1.0 / B) * drift) + mixed + mixed.T + np.outer(fade, fade) * C
        dimensions = self.d - len(mean) + 1  # d - rank; the bias is no dimension
        rest = P2 @ (self.D * (dimensions * error + 2.0 * self.D * S)) / B
        rest += ((1.0 - 1.0 / B) * D_bar**2 + 2.0 * decay * D_bar + decay**2) * S
        return first, State(0.0, np.zeros_like(mean), square, float(rest))

    def step(self, state: State, rate: float, weights: np.ndarray) -> State:
        """The moments after one step at rate h = lr / d."""
        first, second = self.change(state, weights)
        mean = state.mean + rate * first.mean
        square = state.square + rate * first.square + rate**2 * second.square
        return State(state.one, mean, square, state.rest + rate * first.rest + rate**2 * second.rest)

    def matrices(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The parts in h and in h^2 as matrices that act on flattened moments."""
        n = len(self.learns)
        columns = [self.change(self.unflatten(unit), weights) for unit in np.eye(2 + n + n * n)]
        first, second = (np.stack([self.flatten(parts[i]) for parts in columns], axis=1) for i in (0, 1))
        return first, second

    def flatten(self, state: State) -> np.ndarray:
        return np.concatenate([[state.one], state.mean, state.square.ravel(), [state.rest]])

    def unflatten(self, flat: np.ndarray) -> State:
        n = len(self.learns)
        return State(float(flat[0]), flat[1 : n + 1], flat[n + 1 : -1].reshape(n, n), float(flat[-1]))

    def _labelled(self, u: np.ndarray) -> np.ndarray:
        """E[y x x' (x.u)] in every group: x = m + pull nu + the part across, of covariance `across`."""
        y0, y1, y2, y3 = (row[:, None, None] for row in self.y)
        m, t = self.m, self.pull
        mm, tt = m[:, :, None] * m[:, None, :], t[:, :, None] * t[:, None, :]
        mt = m[:, :, None] * t[:, None, :]
        mt = mt + mt.swapaxes(1, 2)
        mu, tu = (m @ u)[:, None, None], (t @ u)[:, None, None]
        cubic = y0 * mu * mm + y1 * (tu * mm + mu * mt) + y2 * (tu * mt + mu * tt) + y3 * tu * tt
        side = (self.across @ u)[:, :, None] * self.yx[:, None, :]
        return np.asarray(cubic + (y0 * mu + y1 * tu) * self.across + side + side.swapaxes(1, 2))
