"""sizes: what a simulation would take, told before it starts where that cannot be had."""

from __future__ import annotations

import numpy as np

from tiltmeter.memory import check_fits

#: More seeds than this are never simulated one by one.
MOST_SEEDS = 10**8
#: At the fastest, a step of one seed takes so many seconds; a year of them is refused.
STEP_SECONDS, YEAR = 1e-8, 3.15e7


def check_size(d: int, seeds: int, steps: np.ndarray, numbers: int, vectors: int) -> None:
    """Refuse what cannot fit in memory or would take longer than a year at the fastest.

    `numbers` are kept of every seed at every look; `vectors` of length d are held for every seed (0: the chain).
    """
    check_fits("seeds", seeds, 8.0 * numbers * len(steps), f"seeds of {len(steps):,} looks at {numbers} numbers")
    if vectors:
        check_fits("d", d, 8.0 * vectors * seeds, f"dimensions in {vectors} vectors of each of {seeds:,} seeds")
    seconds = float(steps[-1]) * seeds * STEP_SECONDS
    if seconds > YEAR:
        raise ValueError(
            f"A simulation should end within a year. Found {float(steps[-1]):.2g} steps of {seeds:,} seeds, which take "
            f"at least {seconds / YEAR:,.0f} years: look at earlier times, or lower d or seeds."
        )
