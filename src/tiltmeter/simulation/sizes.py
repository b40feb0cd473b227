"""sizes: refuses simulations that need too much memory or time, before they start."""

from __future__ import annotations

import numpy as np

from tiltmeter.memory import check_fits

#: The largest number of seeds.
MOST_SEEDS = 10**8
#: A step of one seed takes at least this many seconds; more than a year in all is refused.
STEP_SECONDS, YEAR = 1e-8, 3.15e7


def check_size(d: int, seeds: int, steps: np.ndarray, numbers: int, vectors: int) -> None:
    """Refuse a simulation that does not fit in memory, or that would take longer than a year.

    `numbers` is how many are kept per seed and look; `vectors` is how many of length d are held per seed (chain: 0).
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
