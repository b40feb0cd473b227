"""Random draws that the compiled loops share. Imported only when needed, because numba is slow to load."""

from __future__ import annotations

from math import cosh, erf, exp, log, pi, sqrt, tanh

import numpy as np

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.problem.students import Activation, Erf, Identity, ReLU, Tanh

_NUMBERS = {Identity: 0, Erf: 1, ReLU: 2, Tanh: 3}
_HALF = 1.0 / sqrt(2.0)
_STEEP = sqrt(2.0 / pi)


def number_of(activation: Activation) -> int:
    """The number of one of our own activations."""
    try:
        return _NUMBERS[type(activation)]
    except KeyError:
        raise TypeError(
            f"`simulate` knows the activations Identity(), Erf(), ReLU() and Tanh(); `predict` any. Found {activation}."
        ) from None


@compiled
def activate(number, field):  # type: ignore[no-untyped-def]
    if number == 1:
        return erf(field * _HALF)
    if number == 2:
        return max(field, 0.0)
    if number == 3:
        return tanh(field)
    return field


@compiled
def slope(number, field):  # type: ignore[no-untyped-def]
    if number == 1:
        return _STEEP * exp(-0.5 * field * field)
    if number == 2:
        return 1.0 if field > 0.0 else 0.0
    if number == 3:
        return 1.0 / cosh(field) ** 2
    return 1.0


@compiled
def move_scalars(scalars, velocity, push, rate, momentum, nesterov):  # type: ignore[no-untyped-def]
    """SGD with or without momentum; `push` is the gradient, zero for what is not trained."""
    for k in range(scalars.shape[0]):
        now = push[k]
        if momentum > 0.0:
            velocity[k] = momentum * velocity[k] + now
            now = now + momentum * velocity[k] if nesterov > 0.0 else velocity[k]
        scalars[k] -= rate * now


@compiled
def chi_square(rng, freedom, shape, scale):  # type: ignore[no-untyped-def]
    """The squared length of a standard normal vector of `freedom` components.

    It is twice a gamma variable of shape freedom / 2, drawn by the rejection method of Marsaglia and Tsang (2000),
    which is exact for shapes of at least 1. `shape` and `scale` are their d and c, computed once by
    `chi_square_constants`.
    """
    if freedom < 2:
        one = rng.standard_normal()
        return one * one * freedom
    while True:
        x = rng.standard_normal()
        root = 1.0 + scale * x
        if root <= 0.0:
            continue
        cube = root * root * root
        u = rng.random()
        square = x * x
        if u < 1.0 - 0.0331 * square * square:
            return 2.0 * shape * cube
        if log(u) < 0.5 * square + shape * (1.0 - cube + log(cube)):
            return 2.0 * shape * cube


@compiled
def chi_square_constants(freedom):  # type: ignore[no-untyped-def]
    shape = 0.5 * freedom - 1.0 / 3.0 if freedom > 1 else 1.0
    return shape, 1.0 / sqrt(9.0 * shape)


@compiled
def draw_group(rng, cumulative, row):  # type: ignore[no-untyped-def]
    """Draw a group by the cumulative shares of this row; with one group nothing is drawn."""
    last = cumulative.shape[1] - 1
    if last == 0:
        return 0
    u = rng.random()
    group = 0
    while group < last and u >= cumulative[row, group]:
        group += 1
    return group


@compiled
def draw_sample(rng, cumulative, row, means, teachers, label_bias, deviation, x):  # type: ignore[no-untyped-def]
    """Fill x with one input of a random group; returns the group and whether its label is positive."""
    group = draw_group(rng, cumulative, row)
    sd = deviation[group]
    field = label_bias[group]
    for i in range(x.shape[0]):
        x[i] = means[group, i] + sd * rng.standard_normal()
        field += teachers[group, i] * x[i]
    return group, 1 if field > 0.0 else 0


@compiled
def draw_frame(rng, frame):  # type: ignore[no-untyped-def]
    """Fill the rows of `frame` with a random orthonormal frame, uniform over all of them."""
    for a in range(frame.shape[0]):
        for i in range(frame.shape[1]):
            frame[a, i] = rng.standard_normal()
        for _ in range(2):  # the second pass removes the rounding errors of the first
            for b in range(a):
                overlap = 0.0
                for i in range(frame.shape[1]):
                    overlap += frame[a, i] * frame[b, i]
                for i in range(frame.shape[1]):
                    frame[a, i] -= overlap * frame[b, i]
        length = 0.0
        for i in range(frame.shape[1]):
            length += frame[a, i] ** 2
        length = sqrt(length)
        for i in range(frame.shape[1]):
            frame[a, i] /= length


@compiled
def draw_normals(rng, out, scale):  # type: ignore[no-untyped-def]
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] = scale * rng.standard_normal()


@compiled
def place(  # type: ignore[no-untyped-def]
    low, high, generators, w, frames, visible, hidden, scale, cumulative, means, teachers, label_bias, deviation,
    inputs, groups, labels, flips,
):  # fmt: skip
    """Draw frame, starting weights and data of the students low..high.

    Weights are normal of standard deviation `scale`; where that is 0 they have coordinates `visible` in the frame and
    `hidden` in random directions orthogonal to it. A share `flips` of the labels of a group is flipped.
    """
    rank, d = frames.shape[1:]
    apart = hidden.shape[0] if scale == 0.0 and np.any(hidden != 0.0) else 0
    frame = np.empty((rank + apart, d))
    for i in range(low, high):
        rng = generators[i]
        draw_frame(rng, frame)
        frames[i] = frame[:rank]
        if scale > 0.0:
            draw_normals(rng, w[i], scale)
        else:
            w[i] = np.dot(visible, frame[:rank])
            if apart:
                w[i] += np.dot(hidden, frame[rank:])
        if inputs.shape[1]:
            mean, teacher = np.dot(means, frames[i]), np.dot(teachers, frames[i])
            for n in range(inputs.shape[1]):
                group, label = draw_sample(rng, cumulative, 0, mean, teacher, label_bias, deviation, inputs[i, n])
                if flips[group] > 0.0 and rng.random() < flips[group]:
                    label = 1 - label
                groups[i, n], labels[i, n] = group, label
