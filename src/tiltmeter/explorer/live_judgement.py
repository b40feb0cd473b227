"""Live judgement: who leads in a run that is still being written, at an error rate that holds however often one looks.

The bands of `standing` hold at all looks of a run that is over. Computed anew at every look and acted upon at the first
that shows something, they would err more often than they say. While a run trains, limits therefore come from its
recorded standard errors with Bonferroni's correction for all looks that are planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tiltmeter.analysis.difference import Difference
from tiltmeter.analysis.simultaneous.recorded_errors import recorded_errors
from tiltmeter.names import better_of
from tiltmeter.record import Trajectory, When
from tiltmeter.record.origin import Origin

LEVEL = 0.05
#: Longer plans are not counted.
MOST_STEPS = 10**6


def live_differences(runs: Sequence[Trajectory], curve: str, level: float = LEVEL) -> tuple[list[Difference], int]:
    """Every pair of groups of these seeds of one recipe, and the number of planned looks.

    ValueError with its sentence where the plan or the errors are not recorded: then nobody is named while it trains.
    """
    first = runs[0]
    planned = planned_looks(first.origin)
    if planned is None:
        raise ValueError(
            "While it trains nobody is named: how many steps are planned is not recorded. "
            'Tell the probe: Probe(..., settings={"steps": 5000}).'
        )
    if f"{curve}_se" not in first:
        raise ValueError(f"While it trains nobody is named: no standard errors of {curve!r} are recorded.")
    count = min(run[curve].sizes["time"] for run in runs)
    times = first[curve].coords["time"].values[:count]
    if count == 0 or any(not np.array_equal(run[curve].coords["time"].values[:count], times) for run in runs):
        raise ValueError("While they train nobody is named: these runs are looked at at different times.")
    groups = first[curve].coords["group"].values.tolist()
    values, errors = (
        np.stack([run[name].transpose("time", "group").values[:count] for run in runs])
        for name in (curve, f"{curve}_se")
    )
    pairs = list(combinations(range(len(groups)), 2))
    contrasts = np.zeros((len(pairs), len(groups)))
    for row, (a, b) in enumerate(pairs):
        contrasts[row, a], contrasts[row, b] = 1.0, -1.0
    band = recorded_errors(values, errors, contrasts, level, max(planned, count) * len(pairs))
    better = better_of(curve, first[curve])
    found = []
    for row, (a, b) in enumerate(pairs):
        limits = (part[:, row] for part in (band.gap, band.lower, band.upper))
        found.append(Difference(curve, better, (groups[a], groups[b]), first.clock, times, *limits))
    return found, planned


def planned_looks(origin: Origin) -> int | None:
    """How many looks the run will have when it is over, as it says itself.

    >>> planned_looks(Origin("training", settings={"when": {"every": 10}, "steps": 100}))
    11
    """
    when, steps = origin.settings.get("when"), origin.settings.get("steps")
    if not isinstance(when, dict) or not isinstance(steps, int) or not 0 < steps <= MOST_STEPS:
        return None
    try:
        return len({*When.from_json(when).steps(steps), steps})
    except (ValueError, TypeError):
        return None


def live_sentence(found: Sequence[Difference], looks: int, planned: int, level: float = LEVEL) -> str:
    """One sentence for every pair, with what it holds for."""
    head = f"While it trains ({looks} of {planned} planned looks; at all of them together, {100 * level:g} %)"
    return f"{head}: {' '.join(str(one) for one in found)}"


def live_told(found: Sequence[Difference], planned: int) -> dict[str, Any]:
    """Sentence and crossings."""
    looks = len(found[0].times)
    changes = [
        {"time": change.high, "low": change.low, "high": change.high, "after": change.after}
        for one in found
        for change in one.changes
    ]
    return {"sentence": live_sentence(found, looks, planned), "crossings": changes}
