"""The plain d-dimensional run in one compiled loop over steps, for SGD and for coordinate-wise optimisers.

Vectors are scaled as in PyTorch: w = W / sqrt(d), score = sum_k a_k g(w_k.x), gradient of order one per coordinate.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.simulation.compiled_draws import activate, draw_sample, move_scalars, slope
from tiltmeter.theory.simulation.run import HUGE

#: The length is checked only if a score exceeds this: a student that has diverged has large scores.
LARGE = 1e3
SGD, SIGN, ADAM, ADAMW = 0, 1, 2, 3


@compiled
def _advance(  # type: ignore[no-untyped-def]
    rng, w, scalars, first_moment, second_moment, scalar_moments, steps, done_before, rates, weights, pulls,
    cumulative, losses, counts, means, teachers, label_bias, deviation, inputs, groups, labels, order, replace, numbers,
    kind, batch, activation, learn_second, learn_bias,
):  # fmt: skip
    """Move one student by `steps` updates in place; returns how many were made before it diverged."""
    units, d = w.shape
    momentum, nesterov, decay, clip, beta1, beta2, epsilon = numbers
    finite = inputs.shape[0]
    x, gradient, push = np.empty(d), np.zeros((units, d)), np.zeros(units + 1)
    fields, hidden, factors = np.empty(units), np.empty(units), np.empty(units)
    for step in range(steps):
        rate = rates[step] if rates.shape[0] > 1 else rates[0]
        row = step if weights.shape[0] > 1 else 0
        drawn = step if cumulative.shape[0] > 1 else 0
        push[:] = 0.0
        if batch > 1:
            gradient[:] = 0.0
        for b in range(batch):
            if finite:
                if replace:
                    chosen = rng.integers(0, finite)
                else:
                    place = ((done_before + step) * batch + b) % finite
                    if place == 0:
                        for i in range(finite - 1, 0, -1):
                            j = rng.integers(0, i + 1)
                            order[i], order[j] = order[j], order[i]
                    chosen = order[place]
                x[:] = inputs[chosen]
                group, label = groups[chosen], labels[chosen]
            else:
                group, label = draw_sample(rng, cumulative, drawn, means, teachers, label_bias, deviation, x)
            score = scalars[units]
            for k in range(units):
                field = 0.0
                for i in range(d):
                    field += w[k, i] * x[i]
                fields[k] = field
                hidden[k] = activate(activation, field)
                score += scalars[k] * hidden[k]
            off = score - (2.0 * label - 1.0)
            miss = off * weights[row, group, label] * pulls[group] / batch
            losses[group] += 0.5 * off * off
            counts[group] += 1.0
            for k in range(units):
                push[k] += miss * hidden[k]
                factors[k] = miss * scalars[k] * slope(activation, fields[k])
            push[units] += miss
            if batch > 1:
                for k in range(units):
                    for i in range(d):
                        gradient[k, i] += factors[k] * x[i]
        if not learn_second:
            push[:units] = 0.0
        if not learn_bias:
            push[units] = 0.0
        if batch == 1:
            if kind == SGD and momentum == 0.0 and clip == inf:
                # The plain step, without storing the gradient.
                keep = 1.0 - rate * decay
                for k in range(units):
                    for i in range(d):
                        w[k, i] = keep * w[k, i] - rate * factors[k] * x[i]
                move_scalars(scalars, scalar_moments[0], push, rate, momentum, nesterov)
                # A long student has large scores, so its length need not be computed at every step.
                if not abs(score) < LARGE and not _square(w) < HUGE:
                    return step
                continue
            for k in range(units):
                for i in range(d):
                    gradient[k, i] = factors[k] * x[i]
        if clip < inf:
            size = 0.0
            for k in range(units):
                size += push[k] * push[k]
                for i in range(d):
                    size += gradient[k, i] * gradient[k, i]
            size = sqrt((size + push[units] ** 2) / d)
            if size > clip:
                gradient *= clip / size
                push *= clip / size
        if kind == SGD:
            _sgd(w, gradient, first_moment, rate, momentum, nesterov, decay)
            move_scalars(scalars, scalar_moments[0], push, rate, momentum, nesterov)
        else:
            count = done_before + step + 1
            _coordinatewise(
                kind, w.ravel(), gradient.ravel(), first_moment.ravel(), second_moment.ravel(), rate / sqrt(d), rate,
                decay, beta1, beta2, epsilon, count,
            )  # fmt: skip
            _coordinatewise(
                kind, scalars, push, scalar_moments[0], scalar_moments[1], rate, 0.0, 0.0, beta1, beta2, epsilon, count
            )
        if not abs(score) < LARGE and not _square(w) < HUGE:
            return step
    return steps


@compiled
def _square(w):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(w.shape[0]):
        for i in range(w.shape[1]):
            total += w[k, i] * w[k, i]
    return total


@compiled
def _sgd(w, gradient, velocity, rate, momentum, nesterov, decay):  # type: ignore[no-untyped-def]
    for k in range(w.shape[0]):
        for i in range(w.shape[1]):
            now = gradient[k, i] + decay * w[k, i]
            if momentum > 0.0:
                velocity[k, i] = momentum * velocity[k, i] + now
                now = now + momentum * velocity[k, i] if nesterov > 0.0 else velocity[k, i]
            w[k, i] -= rate * now


@compiled
def _coordinatewise(kind, w, gradient, mean, square, rate, fade, decay, beta1, beta2, epsilon, count):  # type: ignore[no-untyped-def]
    """Step of Adam, AdamW or the sign of the gradient, by `kind`; AdamW shrinks the weights by `fade` times `decay`."""
    for i in range(w.shape[0]):
        now = gradient[i]
        if kind != ADAMW:
            now += decay * w[i]
        if kind == SIGN:
            w[i] -= rate * np.sign(now)
            continue
        mean[i] = beta1 * mean[i] + (1.0 - beta1) * now
        square[i] = beta2 * square[i] + (1.0 - beta2) * now * now
        if kind == ADAMW:
            w[i] *= 1.0 - fade * decay
        size = sqrt(square[i] / (1.0 - beta2**count)) + epsilon
        w[i] -= rate * (mean[i] / (1.0 - beta1**count)) / size


@compiled
def advance_direct(  # type: ignore[no-untyped-def]
    low, high, generators, w, scalars, first_moments, second_moments, scalar_moments, stopped, first, steps, rates,
    weights, pulls, cumulative, losses, counts, means, teachers, frames, label_bias, deviation, inputs, groups, labels,
    orders, replace, numbers, kind, batch, activation, learn_second, learn_bias,
):  # fmt: skip
    """Move the students low..high by `steps` updates in place, and note the step at which one diverges.

    Per seed, `w` is (K, d), `scalars` the second layer and then the bias, moments of the same shapes (empty where not
    used), `frames` the directions in which `means` and `teachers` have their coordinates. `inputs`, `groups`, `labels`
    are a finite data set and `orders` its shuffled order; empty for fresh samples. With `replace` no order is kept.
    `numbers` = momentum, nesterov, decay, clip, beta1, beta2, epsilon.
    """
    for i in range(low, high):
        if stopped[i] < 0:
            own = min(i, cumulative.shape[0] - 1)  # one table for all seeds in a curriculum
            made = _advance(
                generators[i], w[i], scalars[i], first_moments[i], second_moments[i], scalar_moments[i], steps, first,
                rates, weights, pulls[i], cumulative[own], losses[i], counts[i], np.dot(means, frames[i]),
                np.dot(teachers, frames[i]), label_bias, deviation, inputs[i], groups[i], labels[i], orders[i], replace,
                numbers, kind, batch, activation, learn_second, learn_bias,
            )  # fmt: skip
            if made < steps:
                stopped[i] = first + made + 1
