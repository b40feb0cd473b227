"""A block of steps of the steered linear chain in one compiled call: place the pulls, move, remember the losses."""

from __future__ import annotations

from numba import njit

from tiltmeter.simulation.compiled_linear import advance_linear
from tiltmeter.simulation.compiled_memory import place_pulls, take_in


@njit(nogil=True, cache=True, error_model="numpy")
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
