"""A block of steps of the steered linear chain in one compiled call: place the pulls, move, remember the losses."""

from __future__ import annotations

from math import isnan

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.simulation.compiled_linear import advance_linear


@compiled
def remember(memory, sums, counts, points):  # type: ignore[no-untyped-def]
    """Move the averages of losses towards the mean of `counts` new ones by counts / (counts + points); reset the sums.

    >>> import numpy as np
    >>> known = np.array([[np.nan, 1.0, 1.0]])
    >>> remember(known, np.array([[4.0, 4.0, 0.0]]), np.array([[2.0, 2.0, 0.0]]), 2.0)
    >>> known
    array([[2. , 1.5, 1. ]])

    All arrays are (seeds, groups) and are changed in place. Groups without a new point keep their average; the first
    value of a group is taken as it is.
    """
    for i in range(memory.shape[0]):
        for g in range(memory.shape[1]):
            if counts[i, g] > 0.0:
                mean = sums[i, g] / counts[i, g]
                if isnan(memory[i, g]):
                    memory[i, g] = mean
                else:
                    memory[i, g] += counts[i, g] / (counts[i, g] + points) * (mean - memory[i, g])
            sums[i, g] = 0.0
            counts[i, g] = 0.0


@compiled
def take_in(memory, sums, counts, points, stopped):  # type: ignore[no-untyped-def]
    """`remember`, for seeds that have not stopped; returns whether some group of some seed was never seen."""
    remember(memory, sums, counts, points)
    blind = False
    for i in range(memory.shape[0]):
        for g in range(memory.shape[1]):
            if stopped[i] >= 0:
                memory[i, g] = 1.0  # any number: these seeds move no more
            blind = blind or isnan(memory[i, g])
    return blind


@compiled
def place_pulls(pulls, shares, memory, draws, cumulative, factors):  # type: ignore[no-untyped-def]
    """Write pulls (seeds, groups) as cumulative shares of draws or as factors of losses; False for a negative draw.

    >>> import numpy as np
    >>> shares, memory = np.array([[0.8, 0.2]]), np.array([[0.5, np.nan]])
    >>> cumulative, factors = np.zeros((1, 1, 2)), np.ones((1, 2))
    >>> place_pulls(np.array([[np.nan, np.nan]]), shares, memory, True, cumulative, factors), cumulative.ravel()
    (True, array([0.8, 1. ]))

    A seed whose intervention has no number for want of a loss counts groups as they are drawn.
    """
    for i in range(pulls.shape[0]):
        unknown, unseen, total = False, False, 0.0
        for g in range(pulls.shape[1]):
            unknown = unknown or isnan(pulls[i, g])
            unseen = unseen or isnan(memory[i, g])
            total += pulls[i, g]
            if draws and pulls[i, g] < 0.0:
                return False
        plain = unknown and unseen
        so_far = 0.0
        for g in range(pulls.shape[1]):
            if draws:
                so_far += shares[i, g] if plain else pulls[i, g] / total
                cumulative[i, 0, g] = so_far
            else:
                factors[i, g] = 1.0 if plain else pulls[i, g] / shares[i, g]
    return True


@compiled
def steer_linear(  # type: ignore[no-untyped-def]
    pulls, shares, memory, points, draws, generators, states, stopped, first, steps, rates, weights, factors,
    cumulative, losses, counts, means, teachers, label_bias, deviation, batch, decay, clip, learn, d,
):  # fmt: skip
    """Return -1 for a negative draw (nothing is moved then), 1 if some group was never seen, else 0.

    Three calls would do the same. A block of ten steps of 48 students takes as long as the three calls themselves.
    """
    if not place_pulls(pulls, shares, memory, draws, cumulative, factors):
        return -1
    advance_linear(
        0, len(states), generators, states, stopped, first, steps, rates, weights, factors, cumulative, losses, counts,
        means, teachers, label_bias, deviation, batch, decay, clip, learn, d,
    )  # fmt: skip
    return 1 if take_in(memory, losses, counts, points, stopped) else 0
