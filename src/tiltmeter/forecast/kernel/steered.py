"""Steered: outputs of the linearised network under a group intervention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from tiltmeter.data.group_shares import share_of
from tiltmeter.forecast.kernel.question import Question, bend, slope, targets
from tiltmeter.forecast.kernel.sample_correction import point_losses
from tiltmeter.forecast.kernel.solvers.square import LinearisedOutputs
from tiltmeter.interventions.group_intervention import GroupIntervention, Seen, changed, gram_pulls, pulls, remembered
from tiltmeter.names import described
from tiltmeter.record import Trajectory

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent

#: Evaluations at which the curvature of the steered loss is measured.
MEASURED = 8


def steered_course(tangent: Tangent, question: Question, evaluations: np.ndarray) -> LinearisedOutputs:
    """Return the outputs of the linearised network under the question's intervention, step by step in the features.

    Every step has the order of a training: the pulls come from the losses that are remembered (or from the gradients of
    this step), the weights move by sum_g P_g (mean gradient of group g), and the losses before the step are remembered.
    A batch holds as many points of every group as it has on average.
    """
    law, loss, sgd = question.law, question.loss, question.sgd
    assert law is not None
    features, data = tangent.features(loss), tangent.sample
    goal = targets(data.y, tangent.columns, loss, tangent.positive)
    start = tangent.flat(tangent.start_sample)
    radial = tangent.radial() if sgd.weight_decay else None
    rows, share = features.sample, tangent.shared(question)[:, None]
    codes = np.repeat(data.codes, len(rows) // len(data))
    members = [rows[codes == code].T.copy() for code in range(len(data.groups))] if law.sees_gram else []
    drawn = tangent.shares if question.proportions is None else share_of(data, question.proportions)
    state = GroupState(law, data.groups, drawn, tangent.sizes, question.batch)
    across, reachable = rows.T, np.maximum(drawn, 1e-300)
    mean = np.zeros((len(data.groups), len(data)))
    mean[data.codes, np.arange(len(data))] = tangent.stands_for
    mean /= np.maximum(mean.sum(1, keepdims=True), 1e-300)

    def slopes(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The share of every row of the sample in the gradient, as drawn, and the losses of the groups."""
        outputs = start + rows @ weights[:-1]
        if radial is not None:
            outputs = outputs + (weights[-1] - 1.0) * radial[0]
        shaped = outputs.reshape(goal.shape)
        return share * tangent.flat(slope(loss, shaped, goal)), mean @ point_losses(shaped, goal, loss)

    def gradient(given: np.ndarray) -> np.ndarray:
        """The gradient as the intervention weighs the groups now; an intervention of gradients sees those of the groups
        first."""
        if not law.sees_gram:
            return np.asarray(across @ (given * (state.pull / reachable).take(codes)[:, None]))
        found = np.stack([own @ given[codes == code] / reachable[code] for code, own in enumerate(members)])
        state.see(found)
        return np.asarray(np.tensordot(state.pull, found, axes=1))

    weights = np.zeros((rows.shape[1] + 1, start.shape[1]))
    weights[-1] = 1.0
    states = np.full((len(evaluations), *weights.shape), np.nan)
    told = np.full((len(evaluations), len(data.groups)), np.nan)
    rates, speed = sgd.rates(), np.zeros_like(weights)
    wanted = {int(step): row for row, step in enumerate(evaluations)}
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(int(evaluations[-1]) + 1):
            if step in wanted:
                states[wanted[step]], told[wanted[step]] = weights, state.pull
            if step == evaluations[-1] or not np.isfinite(weights).all():
                break
            given, losses = slopes(weights)
            found = gradient(given)
            speed = sgd.momentum * speed + sgd.weight_decay * weights
            speed[:-1] += found
            weights = weights - rates[step] * speed
            state.learn(losses)
        outputs = tangent.flat(tangent.start_held_out) + np.tensordot(
            states[:, :-1], features.held_out, axes=(1, 1)
        ).transpose(0, 2, 1)
        if radial is not None:
            outputs = outputs + (states[:, -1:] - 1.0) * radial[1]
        dual = np.tensordot(states[:, :-1], features.dual, axes=(1, 1)).transpose(0, 2, 1)
        factors = told / np.where(drawn > 0, drawn, 1.0)
        every = np.stack([slopes(one)[0] * f[codes][:, None] for one, f in zip(states, factors, strict=True)])
        total = np.trapezoid(every, sgd.travelled(evaluations), axis=0)
        lost = tangent.kernel @ total - rows @ (rows.T @ total)
    error = float(np.sqrt((share * lost**2).sum() / share.sum()))
    sharpest = bend(loss) * _sharpest(rows, share, codes, factors)
    method = f"{rows.shape[1]} features, {int(evaluations[-1])} single steps of {type(law).__name__}"
    return LinearisedOutputs(evaluations, outputs, dual, states[:, -1, 0], error, sharpest, method, told)


class GroupState:
    """The state of one intervention along a forecast, as `Steering` keeps it along a training; short-lived."""

    def __init__(
        self,
        law: GroupIntervention,
        groups: tuple[object, ...],
        shares: np.ndarray,
        sizes: np.ndarray,
        batch: int | None,
    ) -> None:
        self._law, self._groups, self._shares = law, groups, shares
        self._sizes = sizes.astype(float)
        self._counts = self._sizes if batch is None else batch * shares
        self._z, self._losses = law.start(shares), np.full(shares.shape, np.nan)
        self._sums, self._step = np.zeros_like(shares), 0
        self._gram: np.ndarray | None = None
        self.pull = shares if law.sees_gram else pulls(law, self._z, self._seen())

    def see(self, gradients: np.ndarray) -> None:
        """Look at the gradients of this step, (groups, ...), if the intervention does so now."""
        if self._step % self._law.every == 0 and np.isfinite(gradients).all():
            flat = gradients.reshape(len(gradients), -1)
            self._gram = flat @ flat.T
            one = Seen(
                float(self._step), self._groups, self._shares[None], self._losses[None], self._sizes, self._gram[None]
            )
            self.pull = gram_pulls(self._law, self._z[None], one, (self._sizes > 0)[None])[0]

    def learn(self, losses: np.ndarray) -> None:
        """Remember the losses before this step; at the end of a block of `every` steps say what comes."""
        law = self._law
        self._sums = self._sums + self._counts * losses
        self._step += 1
        if self._step % law.every:
            return
        self._losses = remembered(self._losses, self._sums, law.every * self._counts, float(law.memory))
        self._sums = np.zeros_like(self._sums)
        seen = self._seen()
        self._z = changed(law, self._z, seen, float(law.every))
        if not law.sees_gram:
            self.pull = pulls(law, self._z, seen)

    def _seen(self) -> Seen:
        return Seen(float(self._step), self._groups, self._shares, self._losses, self._sizes, self._gram)


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
