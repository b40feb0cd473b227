"""moments: the exact mean over runs at finite d, and the variance of the overlaps, with no simulation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tiltmeter.names import described
from tiltmeter.population.fairness import gap
from tiltmeter.problem.laws import refuse_laws
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import loss_weights
from tiltmeter.problem.student import Linear
from tiltmeter.problem.times import checked_times
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.simulation.data import Fresh
from tiltmeter.simulation.divergence import HUGE
from tiltmeter.simulation.moment_map import MomentMap, State
from tiltmeter.simulation.setting import Setting, random_scale, setting, start_coordinates
from tiltmeter.simulation.simulate import checked_dimension, whole_steps
from tiltmeter.simulation.step_settings import StepSettings


def moments(problem: Mixture, sgd: SGD, times: Any, d: int) -> Trajectory:
    """Return exact means over all runs of the linear student in d dimensions, and variances of M, R and the bias.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> problem, sgd, _ = cases.three_phases()
    >>> exact, limit = moments(problem, sgd, [2.0], d=100), predict(problem, sgd, [2.0])
    >>> (exact["loss"] - limit["loss"]).values.round(4)
    array([[0.0038, 0.0047]])

    The first and second moments of the student obey a closed linear recursion: a few dozen numbers, updated t d times
    (by powers of one matrix if nothing changes in time). The mean losses and overlaps differ from `predict` by O(1/d).
    sqrt(M_variance / runs) is the exact standard error of a mean over `runs` seeds. The variances of Q and of the loss
    would need fourth moments: take them from `simulate`.
    """
    _refuse_what_needs_simulation(sgd)
    refuse_laws(sgd, "moments")
    size = checked_dimension(d)
    steps = whole_steps(checked_times(times), size)
    chosen = setting(problem, sgd, Linear(), Fresh(), size)
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
