"""Convex: the outputs of the linearised network under any convex loss, step by step and then by the gradient flow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiltmeter.forecast.chebyshev import flow
from tiltmeter.forecast.course import Course
from tiltmeter.forecast.features import Features
from tiltmeter.forecast.optimiser import Optimiser

#: Steps are taken one by one, as the optimiser does, while they cost no more multiplications than this; at least the
#: first of them, after which only slow directions move, and these as in the gradient flow.
WORK, FIRST, LAST = 2e9, 200, 20_000
#: The error of one step of the flow, over the length of the weights moved.
TOLERANCE = 1e-6

Pull = Callable[[np.ndarray], np.ndarray]


def convex_course(
    features: Features,
    pull: Pull,
    start: tuple[np.ndarray, np.ndarray],
    share: np.ndarray,
    bend: float,
    optimiser: Optimiser,
    looks: np.ndarray,
    radial: tuple[np.ndarray, np.ndarray] | None = None,
) -> Course:
    """The course of gradient descent on sum(share * loss) in these features.

    `pull(outputs)` is the slope of every point's loss at the sample and `bend` bounds its second derivative; `start`
    holds the outputs at both sets of points before training, `share` what every row of the sample counts.
    """
    rows, weight = features.sample, share[:, None]
    gram = rows.T @ (weight * rows)
    sharpest = bend * float(np.linalg.eigvalsh(gram)[-1]) if len(gram) else 0.0
    decay, columns = optimiser.weight_decay, start[0].shape[1]
    grown = np.zeros_like(start[0]) if radial is None else radial[0]

    def slope(state: np.ndarray) -> np.ndarray:
        """The gradient: of the features' weights and, in the last row, of the factor left on the initial weights."""
        outputs = start[0] + rows @ state[:-1]
        if decay:
            outputs = outputs + (state[-1] - 1.0) * grown
        found = decay * state
        found[:-1] += rows.T @ (weight * pull(outputs))
        return found

    state = np.zeros((rows.shape[1] + 1, columns))
    state[-1] = 1.0
    states = np.full((len(looks), *state.shape), np.nan)
    rates, speed = optimiser.rates(), np.zeros_like(state)
    wanted = {int(step): row for row, step in enumerate(looks)}
    single = min(optimiser.steps, max(FIRST, min(LAST, int(WORK / max(1, 2 * rows.size * columns)))))
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(single + 1):
            if step in wanted:
                states[wanted[step]] = state
            if step < single:
                speed = optimiser.momentum * speed + slope(state)
                state = state - rates[step] * speed
        later = looks[looks > single]
        if len(later) and np.isfinite(state).all():
            # The heavy ball coasts: what its speed will still do is added before the flow takes over.
            state = state - rates[single] * optimiser.momentum / (1.0 - optimiser.momentum) * speed
            begun = optimiser.travelled(np.asarray([single]))[0]
            times = optimiser.travelled(later) - begun
            course = flow(lambda s: -slope(s), state, times, sharpest + decay, TOLERANCE)
            for row, found in zip(np.flatnonzero(looks > single), course, strict=False):
                states[row] = found
        moved = np.tensordot(states[:, :-1], features.look, axes=(1, 1)).transpose(0, 2, 1)
        outputs = start[1] + moved
        if radial is not None:
            outputs = outputs + (states[:, -1:] - 1.0) * radial[1]
        dual = np.tensordot(states[:, :-1], features.dual, axes=(1, 1)).transpose(0, 2, 1)
    method = f"{rows.shape[1]} features, {single} single steps" + (", then the gradient flow" if len(later) else "")
    return Course(looks, outputs, dual, states[:, -1, 0], features.missing, sharpest, method)
