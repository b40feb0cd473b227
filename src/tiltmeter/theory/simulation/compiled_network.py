"""The chain of a student of K units, with or without momentum, in one compiled loop over steps.

The moving vectors (K weights, then K velocities if there is momentum) are written in the basis of means and teachers
(`visible`, m x rank) and in a basis of their remaining span (`hidden`, m x m, lower triangular). A batch enters through
its coordinates in both. The part outside enters the gradient as a Gaussian block of which only the Gram matrix matters:
one column for a single sample, a Bartlett factor for more. Gram-Schmidt then makes the hidden part triangular again.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.simulation.compiled_draws import (
    activate,
    chi_square,
    chi_square_constants,
    draw_group,
    move_scalars,
    slope,
)
from tiltmeter.theory.simulation.run import HUGE


@compiled
def triangular(rows, hidden):  # type: ignore[no-untyped-def]
    """Fill `hidden` with the lower triangular matrix of the same Gram matrix as `rows`, which are overwritten."""
    size, width = rows.shape
    for i in range(size):
        for j in range(i):
            # Row j now has unit length, or is zero.
            overlap = 0.0
            for a in range(width):
                overlap += rows[i, a] * rows[j, a]
            for a in range(width):
                rows[i, a] -= overlap * rows[j, a]
            hidden[i, j] = overlap
        length = 0.0
        for a in range(width):
            length += rows[i, a] * rows[i, a]
        length = sqrt(length)
        hidden[i, i] = length
        if length > 0.0:
            inverse = 1.0 / length
            for a in range(width):
                rows[i, a] *= inverse


@compiled
def residual(rng, spread, freedom, bartlett, block):  # type: ignore[no-untyped-def]
    """Fill `block` (K x K) with coordinates of K Gaussian vectors of covariance `spread` in `freedom` dimensions.

    The vectors are L Z with L L' = spread and Z standard normal, K x freedom; of Z only its triangular factor is drawn
    (Bartlett 1933): chi variables on the diagonal, normal ones below. `spread` is overwritten by L.
    """
    units = spread.shape[0]
    for i in range(units):
        for j in range(i + 1):
            total = spread[i, j]
            for a in range(j):
                total -= spread[i, a] * spread[j, a]
            if i == j:
                spread[i, i] = sqrt(total) if total > 0.0 else 0.0
            else:
                spread[i, j] = total / spread[j, j] if spread[j, j] > 0.0 else 0.0
    for i in range(units):
        for j in range(units):
            bartlett[i, j] = 0.0
        for j in range(min(i, freedom)):
            bartlett[i, j] = rng.standard_normal()
        if i < freedom:
            shape, scale = chi_square_constants(freedom - i)
            bartlett[i, i] = sqrt(chi_square(rng, freedom - i, shape, scale))
    for i in range(units):
        for j in range(units):
            total = 0.0
            for a in range(i + 1):
                total += spread[i, a] * bartlett[a, j]
            block[i, j] = total


@compiled
def _advance(  # type: ignore[no-untyped-def]
    rng, visible, hidden, scalars, scalar_velocity, steps, rates, weights, factors, cumulative, losses, counts, means,
    teachers, label_bias, deviation, numbers, batch, activation, learn_second, learn_bias, d,
):  # fmt: skip
    """Move one student by `steps` updates in place; returns how many were made before it diverged."""
    momentum, nesterov, decay, clip = numbers
    size, rank = visible.shape
    units = scalars.shape[0] - 1
    extra = 1 if batch == 1 else units
    freedom = d - rank - size
    shape, scale = chi_square_constants(freedom)
    share = 1.0 / batch
    x, z = np.empty(rank), np.empty(size)
    fields, outputs, slopes = np.empty(units), np.empty(units), np.empty(units)
    seen, inner, push = np.empty((units, rank)), np.empty((units, size)), np.empty(units + 1)
    spread, bartlett, block = np.empty((units, units)), np.empty((units, units)), np.empty((units, extra))
    rows = np.empty((size, size + extra))
    for step in range(steps):
        rate = rates[step] if rates.shape[0] > 1 else rates[0]
        row = step if weights.shape[0] > 1 else 0
        drawn = step if cumulative.shape[0] > 1 else 0
        seen[:] = 0.0
        inner[:] = 0.0
        push[:] = 0.0
        if batch > 1:
            spread[:] = 0.0
        for _ in range(batch):
            group = draw_group(rng, cumulative, drawn)
            sd = deviation[group]
            field = label_bias[group]
            for a in range(rank):
                x[a] = means[group, a] + sd * rng.standard_normal()
                field += teachers[group, a] * x[a]
            for a in range(size):
                z[a] = sd * rng.standard_normal()
            score = scalars[units]
            for k in range(units):
                total = 0.0
                for a in range(rank):
                    total += visible[k, a] * x[a]
                for a in range(k + 1):
                    total += hidden[k, a] * z[a]
                fields[k] = total
                outputs[k] = activate(activation, total)
                score += scalars[k] * outputs[k]
            if field > 0.0:
                off = score - 1.0
                miss = off * weights[row, group, 1] * factors[group] * share
            else:
                off = score + 1.0
                miss = off * weights[row, group, 0] * factors[group] * share
            losses[group] += 0.5 * off * off
            counts[group] += 1.0
            push[units] += miss
            for k in range(units):
                push[k] += miss * outputs[k]
                factor = miss * scalars[k] * slope(activation, fields[k])
                slopes[k] = factor * sd
                for a in range(rank):
                    seen[k, a] += factor * x[a]
                for a in range(size):
                    inner[k, a] += factor * z[a]
            if batch > 1:
                for k in range(units):
                    for j in range(k + 1):
                        spread[k, j] += slopes[k] * slopes[j]
        if batch == 1:
            length = sqrt(chi_square(rng, freedom, shape, scale))
            for k in range(units):
                block[k, 0] = slopes[k] * length
        else:
            residual(rng, spread, freedom, bartlett, block)
        if not learn_second:
            push[:units] = 0.0
        if not learn_bias:
            push[units] = 0.0
        if clip < inf:
            norm = sqrt((np.sum(seen**2) + np.sum(inner**2) + np.sum(block**2) + np.sum(push**2)) / d)
            if norm > clip:
                shrink = clip / norm
                seen *= shrink
                inner *= shrink
                block *= shrink
                push *= shrink
        if size == units:
            keep = 1.0 - rate * decay
            for k in range(units):
                for a in range(rank):
                    visible[k, a] = keep * visible[k, a] - rate * seen[k, a]
                for a in range(k + 1):
                    rows[k, a] = keep * hidden[k, a] - rate * inner[k, a]
                for a in range(k + 1, size):
                    rows[k, a] = -rate * inner[k, a]
                for a in range(extra):
                    rows[k, size + a] = -rate * block[k, a]
        else:
            _with_velocity(visible, hidden, seen, inner, block, rows, rate, momentum, nesterov, decay)
        triangular(rows, hidden)
        move_scalars(scalars, scalar_velocity, push, rate, momentum, nesterov)
        length = 0.0
        for k in range(units):
            for a in range(k + 1):
                length += hidden[k, a] ** 2
        if not length < HUGE:
            return step
    return steps


@compiled
def _with_velocity(visible, hidden, seen, inner, block, rows, rate, momentum, nesterov, decay):  # type: ignore[no-untyped-def]
    """velocity <- momentum velocity + gradient; weights <- weights - rate (velocity, or Nesterov's correction)."""
    units, rank = seen.shape
    size, extra = hidden.shape[0], block.shape[1]
    for k in range(units):
        v = units + k
        for a in range(rank):
            now = seen[k, a] + decay * visible[k, a]
            visible[v, a] = momentum * visible[v, a] + now
            now = now + momentum * visible[v, a] if nesterov > 0.0 else visible[v, a]
            visible[k, a] -= rate * now
        for a in range(size + extra):
            gradient = inner[k, a] if a < size else block[k, a - size]
            weight = hidden[k, a] if a <= k else 0.0
            velocity = hidden[v, a] if a <= v else 0.0
            now = gradient + decay * weight
            velocity = momentum * velocity + now
            now = now + momentum * velocity if nesterov > 0.0 else velocity
            rows[v, a] = velocity
            rows[k, a] = weight - rate * now


@compiled
def advance_network(  # type: ignore[no-untyped-def]
    low, high, generators, visible, hidden, scalars, scalar_velocity, stopped, first, steps, rates, weights, factors,
    cumulative, losses, counts, means, teachers, label_bias, deviation, numbers, batch, activation, learn_second,
    learn_bias, d,
):  # fmt: skip
    """Move the students low..high by `steps` updates in place, and note the step at which one diverges.

    `scalars` are the second layer and then the bias; `numbers` = momentum, nesterov, decay, clip.
    """
    for i in range(low, high):
        if stopped[i] < 0:
            own = min(i, cumulative.shape[0] - 1)  # one table for all seeds in a curriculum
            made = _advance(
                generators[i], visible[i], hidden[i], scalars[i], scalar_velocity[i], steps, rates, weights,
                factors[i], cumulative[own], losses[i], counts[i], means, teachers, label_bias, deviation, numbers,
                batch, activation, learn_second,
                learn_bias, d,
            )  # fmt: skip
            if made < steps:
                stopped[i] = first + made + 1
