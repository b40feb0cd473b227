"""Steered: outputs of the linearised network under a group intervention."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from tiltmeter.data.group_shares import share_of
from tiltmeter.forecast.kernel.question import Question, bend, slope, targets
from tiltmeter.forecast.kernel.sample_correction import point_losses
from tiltmeter.forecast.kernel.solvers.convex import FeatureTraining
from tiltmeter.forecast.kernel.solvers.square import LinearisedOutputs
from tiltmeter.names import described
from tiltmeter.record import Trajectory
from tiltmeter.training.steering import InterventionMemory, first_arrays

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent

#: Evaluations at which the curvature of the steered loss is measured.
MEASURED = 8


def steered_course(tangent: Tangent, question: Question, training: FeatureTraining) -> LinearisedOutputs:
    """Return the outputs of the linearised network under the question's intervention, step by step in the features.

    Every step has the order of a training: the pulls come from the losses that are remembered (or from the gradients of
    this step), the weights move by sum_g P_g (mean gradient of group g), and the losses before the step are remembered.
    A batch holds as many points of every group as it has on average.
    """
    law, loss, sgd, evaluations = question.law, question.loss, question.sgd, training.evaluations
    assert law is not None
    data = tangent.sample
    goal = targets(data.y, tangent.columns, loss, tangent.positive)
    rows, share = training.features.sample, training.share[:, None]
    codes = np.repeat(data.codes, len(rows) // len(data))
    members = [rows[codes == code].T.copy() for code in range(len(data.groups))] if law.sees_gram else []
    drawn = tangent.shares if question.proportions is None else share_of(data, question.proportions)
    sizes = tangent.sizes.astype(float)
    counts = sizes if question.batch is None else question.batch * drawn
    arrays = {name: np.array(value) for name, value in first_arrays(law, data.groups, drawn, sizes).items()}
    memory = InterventionMemory(law, data.groups, drawn, sizes, {**arrays, "steps": np.array(0)}, together=False)
    across, reachable = rows.T, np.maximum(drawn, 1e-300)
    mean = np.zeros((len(data.groups), len(data)))
    mean[data.codes, np.arange(len(data))] = tangent.stands_for
    mean /= np.maximum(mean.sum(1, keepdims=True), 1e-300)

    def slopes(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The share of every row of the sample in the gradient, as drawn, and the losses of the groups."""
        shaped = training.outputs(state).reshape(goal.shape)
        return share * tangent.flat(slope(loss, shaped, goal)), mean @ point_losses(shaped, goal, loss)

    def gradient(given: np.ndarray) -> np.ndarray:
        """The gradient as the intervention weighs the groups now; an intervention of gradients sees those of the groups
        first."""
        if not law.sees_gram:
            return np.asarray(across @ (given * (memory.pull / reachable).take(codes)[:, None]))
        found = np.stack([own @ given[codes == code] / reachable[code] for code, own in enumerate(members)])
        if memory.steps % law.every == 0 and np.isfinite(found).all():
            flat = found.reshape(len(found), -1)
            memory.see(flat @ flat.T, sizes > 0)
        return np.asarray(np.tensordot(memory.pull, found, axes=1))

    state = training.first()
    states = np.full((len(evaluations), *state.shape), np.nan)
    pulls = np.full((len(evaluations), len(data.groups)), np.nan)
    rates, speed = sgd.rates(), np.zeros_like(state)
    wanted = {int(step): row for row, step in enumerate(evaluations)}
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(int(evaluations[-1]) + 1):
            if step in wanted:
                states[wanted[step]], pulls[wanted[step]] = state, memory.pull
            if step == evaluations[-1] or not np.isfinite(state).all():
                break
            given, losses = slopes(state)
            found = gradient(given)
            speed = sgd.momentum * speed + sgd.weight_decay * state
            speed[:-1] += found
            state = state - rates[step] * speed
            memory.add_sums(counts * losses, counts)
            memory.learn()
        factors = pulls / np.where(drawn > 0, drawn, 1.0)
        every = np.stack([slopes(one)[0] * f[codes][:, None] for one, f in zip(states, factors, strict=True)])
    sharpest = bend(loss) * _sharpest(rows, share, codes, factors)
    course = training.course(states, every, sharpest, f"{int(evaluations[-1])} single steps of {type(law).__name__}")
    return replace(course, pull=pulls)


def with_pull(trajectory: Trajectory, pull: np.ndarray | None, groups: np.ndarray) -> Trajectory:
    """Return the forecast with the curve `pull`, if an intervention of groups made it; one row for a constant
    intervention."""
    if pull is None:
        return trajectory
    times = trajectory["loss"]["time"].values
    values = np.broadcast_to(pull, (len(times), len(groups))) if pull.ndim == 1 else pull[: len(times)]
    curve = xr.DataArray(values.copy(), dims=("time", "group"), coords={"time": times, "group": groups})
    curves = {**dict(trajectory), "pull": described("pull", curve)}
    return Trajectory(curves, trajectory.clock, trajectory.origin, trajectory.diverged)


def _sharpest(rows: np.ndarray, share: np.ndarray, codes: np.ndarray, factors: np.ndarray) -> float:
    """The largest curvature of the steered loss at a few evaluations."""
    sound = factors[np.isfinite(factors).all(1)]
    few = sound[np.unique(np.linspace(0, len(sound) - 1, MEASURED).astype(int))] if len(sound) else sound
    if not rows.shape[1]:
        return 0.0
    grams = np.stack([_gram(rows[codes == code], share[codes == code]) for code in range(factors.shape[1])])
    found = [np.linalg.eigvalsh(np.tensordot(np.abs(f), grams, axes=1))[-1] for f in few]
    return float(max(found, default=0.0))


def _gram(rows: np.ndarray, share: np.ndarray) -> np.ndarray:
    found: np.ndarray = rows.T @ (share * rows)
    return found
