"""The chain of the linear student without momentum, in one compiled loop over steps.

State: `rank` coordinates w in the span of means and teachers, the length s of the rest, the bias. A sample enters only
through its coordinates in the span, its coordinate along the rest of the student, and the squared length of all others.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.simulation.compiled_draws import chi_square, chi_square_constants
from tiltmeter.theory.simulation.run import HUGE

LONGEST = sqrt(HUGE)


@compiled
def advance_linear(  # type: ignore[no-untyped-def]
    low, high, generators, states, stopped, first, steps, rates, weights, factors, cumulative, losses, counts, means,
    teachers, label_bias, deviation, batch, decay, clip, learn, d,
):  # fmt: skip
    """Move the students low..high by `steps` updates in place, and note the step at which one diverges.

    `rates` and `weights` have one entry per step, or one for all; `factors`, `cumulative`, `losses`, `counts` are those
    of `GroupPulls`. `learn` says whether the bias is trained. One loop over everything: a steered run comes here for a
    few steps at a time, where a call or a view per student would cost as much as its steps.
    """
    rank = means.shape[1]
    w, x, pull = np.empty(rank), np.empty(rank), np.empty(rank)
    freedom = d - rank - 1
    shape, scale = chi_square_constants(freedom)
    share = 1.0 / batch
    last = cumulative.shape[2] - 1
    many_rates, many_weights, many_shares = rates.shape[0] > 1, weights.shape[0] > 1, cumulative.shape[1] > 1
    for i in range(low, high):
        if stopped[i] >= 0:
            continue
        rng = generators[i]
        own = min(i, cumulative.shape[0] - 1)  # one table for all seeds in a curriculum
        for a in range(rank):
            w[a] = states[i, a]
        s, bias = states[i, rank], states[i, rank + 1]
        done = 0
        while done < steps:
            rate = rates[done] if many_rates else rates[0]
            row = done if many_weights else 0
            drawn = done if many_shares else 0
            for a in range(rank):
                pull[a] = 0.0
            along, spread, push = 0.0, 0.0, 0.0
            for _ in range(batch):
                group = 0
                if last > 0:  # with one group nothing is drawn
                    u = rng.random()
                    while group < last and u >= cumulative[own, drawn, group]:
                        group += 1
                sd = deviation[group]
                field, score = label_bias[group], bias
                for a in range(rank):
                    x[a] = means[group, a] + sd * rng.standard_normal()
                    field += teachers[group, a] * x[a]
                    score += w[a] * x[a]
                z = sd * rng.standard_normal()
                score += s * z
                if field > 0.0:
                    off = score - 1.0
                    miss = off * weights[row, group, 1] * factors[i, group] * share
                else:
                    off = score + 1.0
                    miss = off * weights[row, group, 0] * factors[i, group] * share
                losses[i, group] += 0.5 * off * off
                counts[i, group] += 1.0
                for a in range(rank):
                    pull[a] += miss * x[a]
                along += miss * z
                spread += (miss * sd) ** 2
                push += miss
            spread *= chi_square(rng, freedom, shape, scale)
            keep = 1.0 - rate * decay
            if clip < inf:
                size = along * along + spread
                if learn:
                    size += push * push
                for a in range(rank):
                    size += pull[a] * pull[a]
                size = sqrt(size / d)
                if size > clip:
                    rate *= clip / size
            for a in range(rank):
                w[a] = keep * w[a] - rate * pull[a]
            rest = keep * s - rate * along
            s = sqrt(rest * rest + rate * rate * spread)
            if learn:
                bias -= rate * push
            if not s < LONGEST:
                break
            done += 1
        for a in range(rank):
            states[i, a] = w[a]
        states[i, rank], states[i, rank + 1] = s, bias
        if done < steps:
            stopped[i] = first + done + 1
