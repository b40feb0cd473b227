"""Inputs, directions and starting weights with all d coordinates, for the direct run."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from tiltmeter.simulation.compiled_draws import draw_group


@njit(nogil=True, cache=True, error_model="numpy")
def draw_sample(rng, cumulative, row, means, teachers, label_bias, deviation, x):  # type: ignore[no-untyped-def]
    """Fill x with one input of a random group; returns the group and whether its label is positive."""
    group = draw_group(rng, cumulative, row)
    sd = deviation[group]
    field = label_bias[group]
    for i in range(x.shape[0]):
        x[i] = means[group, i] + sd * rng.standard_normal()
        field += teachers[group, i] * x[i]
    return group, 1 if field > 0.0 else 0


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
def draw_normals(rng, out, scale):  # type: ignore[no-untyped-def]
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] = scale * rng.standard_normal()


@njit(nogil=True, cache=True, error_model="numpy")
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
