"""moments: the exact mean over runs at finite d, and the variance of the overlaps, with no simulation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf

from tiltmeter.names import described
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.population.fairness import gap
from tiltmeter.theory.problem.applied_interventions import refuse_interventions
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import loss_weights
from tiltmeter.theory.problem.students import Linear
from tiltmeter.theory.problem.times import checked_times
from tiltmeter.theory.simulation.run import HUGE
from tiltmeter.theory.simulation.setting import Setting, StepSettings, random_scale, setting, start_coordinates
from tiltmeter.theory.simulation.simulate import checked_dimension, whole_steps


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


def moments(problem: Mixture, sgd: SGD, times: Any, d: int) -> Trajectory:
    """Return exact means over all runs of the linear student in d dimensions, and variances of M, R and the bias.

    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.three_phases()
    >>> exact, limit = moments(problem, sgd, [2.0], d=100), predict(problem, sgd, [2.0])
    >>> (exact["loss"] - limit["loss"]).values.round(4)
    array([[0.0038, 0.0047]])

    The first and second moments of the student obey a closed linear recursion: a few dozen numbers, updated t d times
    (by powers of one matrix if nothing changes in time). The mean losses and overlaps differ from `predict` by O(1/d).
    sqrt(M_variance / runs) is the exact standard error of a mean over `runs` seeds. The variances of Q and of the loss
    would need fourth moments: take them from `simulate`.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, in units of t = steps / d.
        d: Number of dimensions of an input.
    """
    _refuse_what_needs_simulation(sgd)
    refuse_interventions(sgd, "moments")
    size = checked_dimension(d)
    steps = whole_steps(checked_times(times), size)
    chosen = setting(problem, sgd, Linear(), None, size)
    if size < chosen.rank + 1:
        raise ValueError(
            f"`d` should be at least {chosen.rank + 1}: means and teachers span {chosen.rank} dimensions. "
            f"Found d = {size}."
        )
    loss_weights(chosen.sgd, chosen.par.groups, 0.0)  # refuses weights per label
    pace = StepSettings(chosen.sgd, chosen.par.groups, size)
    moving = MomentMap.of(chosen)
    states = [_start(chosen)]
    for first, stop in pairwise([0, *steps.tolist()]):
        states.append(_advance(moving, pace, states[-1], first, stop))
    return _trajectory(problem, sgd, chosen, moving, states[1:], steps / size)


def _advance(moving: MomentMap, pace: StepSettings, state: State, first: int, stop: int) -> State:
    changing = any(callable(weight) for weight in (pace.sgd.weights or {}).values())
    if changing:
        rates, weights = pace.rates(first, stop), pace.weights(first, stop)[:, :, 0]
        for step in range(stop - first):
            state = moving.step(state, rates[step % len(rates)], weights[step])
    elif stop > first:
        weights = pace.weights(first, stop)[0, :, 0]
        linear, quadratic = moving.matrices(weights)
        flat = moving.flatten(state)
        if not callable(pace.sgd.lr):
            rate = pace.rates(first, stop)[0]
            whole = np.eye(len(flat)) + rate * linear + rate**2 * quadratic
            with np.errstate(over="ignore", invalid="ignore"):
                flat = np.linalg.matrix_power(whole, stop - first) @ flat
        else:
            for rate in pace.rates(first, stop):
                flat = flat + rate * (linear @ flat) + rate**2 * (quadratic @ flat)
        state = moving.unflatten(flat)
    if not all((np.abs(part) < HUGE).all() for part in (state.mean, state.square, state.rest)):
        raise ValueError(
            f"`lr` is too large: the mean square of the student grows without bound before t = {stop / pace.d:.4g}. "
            "Lower it, or use `simulate` to see which runs diverge."
        )
    return state


def _start(chosen: Setting) -> State:
    visible, hidden, bias = start_coordinates(chosen)
    mean = np.append(visible[0], bias)
    square, rest = np.outer(mean, mean), float(hidden[0, 0] ** 2)
    scale = random_scale(chosen)
    if scale > 0:
        square[: chosen.rank, : chosen.rank] += scale**2 / chosen.d * np.eye(chosen.rank)
        rest = scale**2 * (chosen.d - chosen.rank) / chosen.d
    return State(1.0, mean, square, rest)


def _trajectory(
    problem: Mixture, sgd: SGD, chosen: Setting, moving: MomentMap, states: list[State], times: np.ndarray
) -> Trajectory:
    par, bias = chosen.par, chosen.rank
    mean = np.stack([state.mean for state in states])
    square = np.stack([state.square for state in states])
    spread = square - mean[:, :, None] * mean[:, None, :]
    rest = np.array([state.rest for state in states])
    seen = slice(0, chosen.rank)
    loss = np.stack([0.5 * moving.squared_errors(state) for state in states])
    values = {
        "loss": loss,
        "M": mean[:, seen] @ chosen.means.T,
        "R": mean[:, seen] @ chosen.teachers.T,
        "M_variance": np.einsum("ga,tab,gb->tg", chosen.means, spread[:, seen, seen], chosen.means),
        "R_variance": np.einsum("ga,tab,gb->tg", chosen.teachers, spread[:, seen, seen], chosen.teachers),
    }
    curves = {name: par.label(array[None], "group", time=times) for name, array in values.items()}
    single = {
        "Q": np.trace(square[:, seen, seen], axis1=1, axis2=2) + rest,
        "risk": loss @ par.prior[0],
        **({"student_bias": mean[:, bias], "student_bias_variance": spread[:, bias, bias]} if par.train_bias else {}),
    }
    curves |= {name: par.label(array[None], time=times) for name, array in single.items()}
    curves["loss_gap"] = gap(curves["loss"])
    origin = Origin("moments", problem.to_json(), {"sgd": sgd.to_json(), "d": chosen.d})
    return Trajectory({name: described(name, curve) for name, curve in curves.items()}, "t", origin)


def _refuse_what_needs_simulation(sgd: object) -> None:
    if not isinstance(sgd, SGD):
        raise TypeError(f"`moments` is for SGD(lr=...). Found {type(sgd).__name__}: use `simulate` with Direct().")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None)):
        if given:
            raise ValueError(f"`moments` has no closed form with {name}. Use `simulate`, which is exact too.")
    if sgd.curriculum:
        raise ValueError("`moments` takes no schedules of `proportions`. Use `simulate` or `predict`.")
