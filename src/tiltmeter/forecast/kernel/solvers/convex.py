"""Convex: outputs of the linearised network under any convex loss, by single steps and then by the gradient flow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiltmeter.forecast.kernel.solvers.chebyshev import flow
from tiltmeter.forecast.kernel.solvers.features import Features
from tiltmeter.forecast.kernel.solvers.linearised_outputs import LinearisedOutputs
from tiltmeter.recipe.plain_sgd import PlainSGD

#: Steps are taken one by one, as the optimiser does, while they cost no more multiplications than this. Some first
#: steps are always taken; then only slow directions still move, and these follow the gradient flow. At `LAST` that is
#: right to 1e-4 of what was learned, unless a direction swings to and fro, which it may do for as long as `SWINGING`.
WORK, FIRST, LAST, SWINGING = 2e9, 200, 500, 20_000
#: More features times points than this do not stay in the cache of a processor: a multiplication then counts as four.
CACHED = 2**17
#: The error of one step of the flow, relative to the length of the displacement of the weights.
TOLERANCE = 1e-6

Pull = Callable[[np.ndarray], np.ndarray]


def convex_course(
    kernel: np.ndarray,
    features: Features,
    pull: Pull,
    start: tuple[np.ndarray, np.ndarray],
    share: np.ndarray,
    bend: float,
    optimiser: PlainSGD,
    looks: np.ndarray,
    radial: tuple[np.ndarray, np.ndarray] | None = None,
) -> LinearisedOutputs:
    """Return the outputs during gradient descent on sum(share * loss) in these features.

    `pull(outputs)` is the derivative of every point's loss on the sample, and `bend` bounds the second derivative.
    `start` holds the outputs at both sets of points before training, `share` the weight of every row of the sample.
    """
    rows, weight = features.sample, share[:, None]
    gram = rows.T @ (weight * rows)
    sharpest = bend * float(np.linalg.eigvalsh(gram)[-1]) if len(gram) else 0.0
    decay = optimiser.weight_decay

    def pulls(state: np.ndarray) -> np.ndarray:
        """Return the slope of every point's loss. The last row of a state is the factor left on the initial weights."""
        outputs = start[0] + rows @ state[:-1]
        return weight * pull(outputs if radial is None else outputs + (state[-1] - 1.0) * radial[0])

    def slope(state: np.ndarray) -> np.ndarray:
        found = decay * state
        found[:-1] += rows.T @ pulls(state)
        return found

    with np.errstate(over="ignore", invalid="ignore"):
        states, single = _states(slope, (rows.shape[1] + 1, start[0].shape[1]), sharpest, optimiser, looks, rows.size)
        outputs = start[1] + np.tensordot(states[:, :-1], features.look, axes=(1, 1)).transpose(0, 2, 1)
        if radial is not None:
            outputs = outputs + (states[:, -1:] - 1.0) * radial[1]
        dual = np.tensordot(states[:, :-1], features.dual, axes=(1, 1)).transpose(0, 2, 1)
        # How far the part of the kernel outside the features would have moved the outputs.
        every = np.stack([pulls(state) for state in states])
        total = np.trapezoid(every, optimiser.travelled(looks), axis=0)
        lost = kernel @ total - rows @ (rows.T @ total)
    error = float(np.sqrt((weight * lost**2).sum() / weight.sum()))
    method = f"{rows.shape[1]} features, {single} single steps" + (
        ", then the gradient flow" if single < looks[-1] else ""
    )
    return LinearisedOutputs(looks, outputs, dual, states[:, -1, 0], error, sharpest, method)


def _states(
    slope: Pull, shape: tuple[int, int], sharpest: float, optimiser: PlainSGD, looks: np.ndarray, size: int
) -> tuple[np.ndarray, int]:
    """The weights of the features at every look, and how many steps were taken one by one."""
    state = np.zeros(shape)
    state[-1] = 1.0
    states = np.full((len(looks), *shape), np.nan)
    rates, speed = optimiser.rates(), np.zeros(shape)
    wanted = {int(step): row for row, step in enumerate(looks)}
    work = 2 * size * shape[1] * (1 if size <= CACHED else 4)
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
        later = looks > single
        times = optimiser.travelled(looks[later]) - optimiser.travelled(np.asarray([single]))[0]
        course = flow(lambda s: -slope(s), state, times, sharpest + optimiser.weight_decay, TOLERANCE)
        for row, found in zip(np.flatnonzero(later), course, strict=False):
            states[row] = found
    return states, single
