"""The chain of C linear scores, in one compiled loop over steps.

State: W (C, rank) in the span of means and teachers, the Gram matrix of the rest (C, C), the bias (C). A batch of B
samples is seen through its coordinates in the span, those along the rest of the scores (C each), and the Gram matrix of
all others, which is a Wishart matrix of size B: its Bartlett factor is drawn.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.simulation.compiled_draws import chi_square, chi_square_constants, draw_group
from tiltmeter.theory.simulation.run import HUGE


@compiled
def root_of(gram, root):  # type: ignore[no-untyped-def]
    """Fill the lower triangular root of a Gram matrix that may be singular."""
    size = gram.shape[0]
    for j in range(size):
        left = gram[j, j]
        for a in range(j):
            left -= root[j, a] * root[j, a]
        there = left > 1e-14 * gram[j, j] and left > 0.0
        root[j, j] = sqrt(left) if there else 0.0
        for i in range(j + 1, size):
            rest = gram[i, j]
            for a in range(j):
                rest -= root[i, a] * root[j, a]
            root[i, j] = rest / root[j, j] if there else 0.0
            root[j, i] = 0.0


@compiled
def _advance(  # type: ignore[no-untyped-def]
    rng, W, gram, bias, steps, rates, weights, cumulative, means, teachers, offsets, deviation, batch, decay, learn,
    cross_entropy, d,
):  # fmt: skip
    """Move one student by `steps` updates in place; returns how many were made before it diverged."""
    count, rank = W.shape
    freedom = d - rank - count
    root, left = np.empty((count, count)), np.empty((count, count))
    x, z, score = np.empty(rank), np.empty(count), np.empty(count)
    pull, inner, push = np.empty((count, rank)), np.empty((count, count)), np.empty(count)
    miss, spread = np.empty((batch, count)), np.empty((count, batch))
    factor = np.zeros((batch, batch))
    for step in range(steps):
        rate = rates[step] if rates.shape[0] > 1 else rates[0]
        row = step if weights.shape[0] > 1 else 0
        drawn = step if cumulative.shape[0] > 1 else 0
        root_of(gram, root)
        pull[:] = 0.0
        inner[:] = 0.0
        push[:] = 0.0
        for b in range(batch):
            group = draw_group(rng, cumulative, drawn)
            sd = deviation[group]
            for a in range(rank):
                x[a] = means[group, a] + sd * rng.standard_normal()
            for k in range(count):
                z[k] = sd * rng.standard_normal()
            label, best = 0, -np.inf
            for k in range(count):
                field = offsets[group, k]
                for a in range(rank):
                    field += teachers[group, k, a] * x[a]
                if field > best:
                    label, best = k, field
            for k in range(count):
                value = bias[k]
                for a in range(rank):
                    value += W[k, a] * x[a]
                for a in range(k + 1):
                    value += root[k, a] * z[a]
                score[k] = value
            scale = weights[row, group, label] / batch
            if cross_entropy:
                top, total = score.max(), 0.0
                for k in range(count):
                    total += exp(score[k] - top)
                for k in range(count):
                    miss[b, k] = scale * (exp(score[k] - top) / total - (1.0 if k == label else 0.0))
            else:
                for k in range(count):
                    miss[b, k] = scale * (score[k] + 1.0 / count - (1.0 if k == label else 0.0))
            for k in range(count):
                for a in range(rank):
                    pull[k, a] += miss[b, k] * x[a]
                for a in range(count):
                    inner[k, a] += miss[b, k] * z[a]
                push[k] += miss[b, k]
                miss[b, k] *= sd
        for i in range(batch):
            shape, size = chi_square_constants(freedom - i)
            factor[i, i] = sqrt(chi_square(rng, freedom - i, shape, size))
            for j in range(i):
                factor[i, j] = rng.standard_normal()
        for k in range(count):
            for j in range(batch):
                total = 0.0
                for i in range(j, batch):
                    total += miss[i, k] * factor[i, j]
                spread[k, j] = rate * total
        keep = 1.0 - rate * decay
        for k in range(count):
            for a in range(rank):
                W[k, a] = keep * W[k, a] - rate * pull[k, a]
            for a in range(count):
                left[k, a] = keep * root[k, a] - rate * inner[k, a]
            if learn:
                bias[k] -= rate * push[k]
        for k in range(count):
            for m in range(k + 1):
                total = 0.0
                for a in range(count):
                    total += left[k, a] * left[m, a]
                for j in range(batch):
                    total += spread[k, j] * spread[m, j]
                gram[k, m] = total
                gram[m, k] = total
            if not gram[k, k] < HUGE:
                return step
    return steps


@compiled
def advance_classes(  # type: ignore[no-untyped-def]
    low, high, generators, W, gram, bias, stopped, first, steps, rates, weights, cumulative, means, teachers, offsets,
    deviation, batch, decay, learn, cross_entropy, d,
):  # fmt: skip
    """Move the students low..high by `steps` updates in place, and note the step at which one diverges."""
    for i in range(low, high):
        if stopped[i] < 0:
            made = _advance(
                generators[i], W[i], gram[i], bias[i], steps, rates, weights, cumulative, means, teachers, offsets,
                deviation, batch, decay, learn, cross_entropy, d,
            )  # fmt: skip
            if made < steps:
                stopped[i] = first + made + 1
