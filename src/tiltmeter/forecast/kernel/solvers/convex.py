"""Convex: other convex losses in a few features of the kernel, followed step by step and then by Chebyshev steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tiltmeter.forecast.kernel.solvers.square import LinearisedOutputs, lanczos
from tiltmeter.recipe.plain_sgd import PlainSGD

#: How many features are kept.
MOST = 240
#: Eigenvalues of the small matrix below this fraction of the largest are rounding errors.
NOTHING = 1e-11
#: At least this many columns are multiplied with the kernel at once, which costs hardly more than one column.
TOGETHER = 8


@dataclass(frozen=True)
class Features:
    """Rows `sample` (n, r) and `held_out` (m, r) whose products are the kernels, as nearly as r features allow.

    `missing` is the fraction of the trace of the sample's kernel that the features lack, 0 if they are exact.
    """

    sample: np.ndarray
    held_out: np.ndarray
    missing: float

    def at(self, rows: np.ndarray) -> Features:
        """The same features of some points of the sample."""
        return replace(self, sample=self.sample[rows])


def features(kernel: np.ndarray, cross: np.ndarray, start: np.ndarray, most: int = MOST) -> Features:
    """Return the features that matter for gradient descent with the first pulls `start` (n, k).

    >>> points = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = features(points @ points.T, points[:4] @ points.T, points[:, :1] ** 2)
    >>> found.sample.shape[1], bool(np.allclose(found.held_out @ found.sample.T, points[:4] @ points.T))
    (3, True)

    They span start, K start, K^2 start, ..., where gradient descent begins to move. The features are the orthogonal
    projection of the network's gradients on this space (Nystroem's approximation), so their kernel never exceeds the
    exact one.
    """
    size = len(kernel)
    begin = start
    if start.shape[1] < TOGETHER:
        noise = np.random.default_rng(0).normal(size=(size, TOGETHER - start.shape[1]))
        begin = np.concatenate([start, noise * max(1e-300, float(np.abs(start).mean()))], axis=1)
    space = lanczos(lambda v: kernel @ v, begin, lambda _: False, most)
    values, vectors = space.modes()
    kept = values > NOTHING * values.max(initial=0.0)
    turn = vectors[:, kept] / np.sqrt(values[kept])
    rows = space.image() @ turn
    trace = float(np.trace(kernel))
    # Sorted by length, without features that the kernel does not have, so that they can be truncated.
    squares, turned = np.linalg.eigh(rows.T @ rows)
    axes = turned.T[::-1][squares[::-1] > NOTHING * squares.max(initial=0.0)]
    rows = rows @ axes.T
    return Features(rows, cross @ (space.basis @ (turn @ axes.T)), max(0.0, 1.0 - float((rows**2).sum()) / trace))


Slope = Callable[[np.ndarray], np.ndarray]

_DAMPING = 2.0 / 13.0
#: The most evaluations of one step: beyond it, rounding errors grow.
_MOST = 200


def flow(slope: Slope, start: np.ndarray, times: np.ndarray, radius: float, tolerance: float) -> Iterator[np.ndarray]:
    """The solution of dy/dt = slope(y), y(0) = start, at these increasing times; `radius` bounds the stiffness.

    >>> found = flow(lambda y: -np.array([1.0, 1e4]) * y, np.ones(2), np.array([1.0, 2.0]), 1e4, 1e-7)
    >>> np.round([y[0] for y in found], 5).tolist(), np.exp([-1.0, -2.0]).round(5).tolist()
    ([0.36788, 0.13534], [0.36788, 0.13534])

    Steps are chosen so that the error of each stays below `tolerance` times the length of y so far.
    """
    y, at = start.copy(), 0.0
    first = slope(y)
    speed, scale = float(np.linalg.norm(first)), float(np.linalg.norm(start))
    step = 1e-3 * (scale / speed if scale and speed else 1.0 / max(radius, 1e-300))
    longest = (_MOST**2 - 1) / (1.54 * max(radius, 1e-300))
    for goal in times:
        while at < goal:
            step = min(step, longest, goal - at)
            step = goal - at if goal - at - step < 1e-9 * goal else step
            stages = max(2, 1 + int(np.ceil(np.sqrt(1.0 + 1.54 * step * radius))))
            new = _one(slope, y, first, step, stages)
            last = slope(new)
            scale = max(scale, float(np.linalg.norm(new)))
            error = float(np.linalg.norm(0.8 * (y - new) + 0.4 * step * (first + last)))
            if not np.isfinite(error):
                yield np.full_like(y, np.nan)
                return
            ratio = error / max(tolerance * scale, 1e-300)
            if ratio <= 1.0:
                y, first, at = new, last, at + step
            step *= min(4.0, max(0.1, 0.8 / max(ratio, 1e-12) ** (1.0 / 3.0)))
        yield y


def _one(slope: Slope, y: np.ndarray, first: np.ndarray, step: float, stages: int) -> np.ndarray:
    factors = _factors(stages)
    before, now = y, y + factors[0][0] * step * first
    for mu, nu, tilde, gamma in factors[1:]:
        fresh = (1.0 - mu - nu) * y + mu * now + nu * before + step * (tilde * slope(now) + gamma * first)
        before, now = now, fresh
    return now


@lru_cache(maxsize=256)
def _factors(stages: int) -> tuple[tuple[float, ...], ...]:
    """Return the coefficients of all stages; the first entry holds only that of the first stage."""
    w0 = 1.0 + _DAMPING / stages**2
    t, d, dd = [1.0, w0], [0.0, 1.0], [0.0, 0.0]  # Chebyshev polynomials at w0 and their two derivatives
    for j in range(2, stages + 1):
        t.append(2.0 * w0 * t[j - 1] - t[j - 2])
        d.append(2.0 * t[j - 1] + 2.0 * w0 * d[j - 1] - d[j - 2])
        dd.append(4.0 * d[j - 1] + 2.0 * w0 * dd[j - 1] - dd[j - 2])
    w1 = d[stages] / dd[stages]
    b = [0.0, 0.0] + [dd[j] / d[j] ** 2 for j in range(2, stages + 1)]
    b[0] = b[1] = b[2]
    rows: list[tuple[float, ...]] = [(b[1] * w1,)]
    for j in range(2, stages + 1):
        tilde = 2.0 * b[j] * w1 / b[j - 1]
        gamma = -(1.0 - b[j - 1] * t[j - 1]) * tilde
        rows.append((2.0 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], tilde, gamma))
    return tuple(rows)


#: Steps are taken one by one, as the optimiser does, while they cost no more multiplications than this. Some first
#: steps are always taken; then only slow directions still move, and these follow the gradient flow. At `LAST` that is
#: right to 1e-4 of what was learned, unless a direction swings to and fro, which it may do for as long as `SWINGING`.
WORK, FIRST, LAST, SWINGING = 2e9, 200, 500, 20_000
#: More features times points than this do not stay in the cache of a processor: a multiplication then counts as four.
CACHED = 2**17
#: The error of one step of the flow, relative to the length of the displacement of the weights.
TOLERANCE = 1e-6

Pull = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class FeatureTraining:
    """Gradient descent of the linearised network in a few features of its kernel.

    A state holds the weights of the features, (features + 1, columns); its last row is the factor left on the initial
    weights. `start` holds the outputs at the sample and at the held-out points before training, `share` the weight of
    every row of the sample. With weight decay, `radial` holds the derivatives of the outputs at both sets of points
    when all weights are scaled.
    """

    kernel: np.ndarray
    features: Features
    start: tuple[np.ndarray, np.ndarray]
    share: np.ndarray
    optimiser: PlainSGD
    evaluations: np.ndarray
    radial: tuple[np.ndarray, np.ndarray] | None = None

    def first(self) -> np.ndarray:
        """The state before training."""
        state = np.zeros((self.features.sample.shape[1] + 1, self.start[0].shape[1]))
        state[-1] = 1.0
        return state

    def outputs(self, state: np.ndarray) -> np.ndarray:
        """The outputs at the sample."""
        found: np.ndarray = self.start[0] + self.features.sample @ state[:-1]
        return found if self.radial is None else found + (state[-1] - 1.0) * self.radial[0]

    def course(self, states: np.ndarray, slopes: np.ndarray, sharpest: float, method: str) -> LinearisedOutputs:
        """The outputs of these states at the held-out points; `slopes` are those of the loss at the sample."""
        rows, radial = self.features.sample, self.radial
        with np.errstate(over="ignore", invalid="ignore"):
            moved = np.tensordot(states[:, :-1], self.features.held_out, axes=(1, 1)).transpose(0, 2, 1)
            outputs = self.start[1] + moved
            if radial is not None:
                outputs = outputs + (states[:, -1:] - 1.0) * radial[1]
            # How far the part of the kernel outside the features would have moved the outputs.
            total = np.trapezoid(slopes, self.optimiser.travelled(self.evaluations), axis=0)
            lost = self.kernel @ total - rows @ (rows.T @ total)
            error = float(np.sqrt((self.share[:, None] * lost**2).sum() / self.share.sum()))
        return LinearisedOutputs(outputs, error, sharpest, f"{rows.shape[1]} features, {method}")


def convex_course(training: FeatureTraining, pull: Pull, bend: float) -> LinearisedOutputs:
    """Return the outputs during gradient descent on sum(share * loss).

    `pull(outputs)` is the derivative of every point's loss on the sample, and `bend` bounds the second derivative.
    """
    rows, weight, optimiser = training.features.sample, training.share[:, None], training.optimiser
    gram = rows.T @ (weight * rows)
    sharpest = bend * float(np.linalg.eigvalsh(gram)[-1]) if len(gram) else 0.0

    def slope(state: np.ndarray) -> np.ndarray:
        found = optimiser.weight_decay * state
        found[:-1] += rows.T @ (weight * pull(training.outputs(state)))
        return found

    with np.errstate(over="ignore", invalid="ignore"):
        states, single = _states(training, slope, sharpest)
        slopes = np.stack([weight * pull(training.outputs(state)) for state in states])
    then = ", then the gradient flow" if single < training.evaluations[-1] else ""
    return training.course(states, slopes, sharpest, f"{single} single steps{then}")


def _states(training: FeatureTraining, slope: Pull, sharpest: float) -> tuple[np.ndarray, int]:
    """The weights of the features at every evaluation, and how many steps were taken one by one."""
    optimiser, evaluations, size = training.optimiser, training.evaluations, training.features.sample.size
    state = training.first()
    states = np.full((len(evaluations), *state.shape), np.nan)
    rates, speed = optimiser.rates(), np.zeros(state.shape)
    wanted = {int(step): row for row, step in enumerate(evaluations)}
    work = 2 * size * state.shape[1] * (1 if size <= CACHED else 4)
    swings = len(rates) > 0 and float(np.max(rates)) * sharpest > 1.0 - optimiser.momentum
    single = min(optimiser.steps, max(FIRST, min(SWINGING if swings else LAST, int(WORK / max(1, work)))))
    for step in range(single + 1):
        if step in wanted:
            states[wanted[step]] = state
        if step < single:
            speed = optimiser.momentum * speed + slope(state)
            state = state - rates[step] * speed
    if single < optimiser.steps and np.isfinite(state).all():
        # Momentum: the movement that the present velocity still causes is added before the flow takes over.
        state = state - rates[single] * optimiser.momentum / (1.0 - optimiser.momentum) * speed
        later = evaluations > single
        times = optimiser.travelled(evaluations[later]) - optimiser.travelled(np.asarray([single]))[0]
        course = flow(lambda s: -slope(s), state, times, sharpest + optimiser.weight_decay, TOLERANCE)
        for row, found in zip(np.flatnonzero(later), course, strict=False):
            states[row] = found
    return states, single
