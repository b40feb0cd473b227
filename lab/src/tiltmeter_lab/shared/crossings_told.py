"""Which crossings of real trainings a forecast tells, beside what the first twentieth of the training tells."""

from __future__ import annotations

from collections.abc import Sequence

from tiltmeter_lab.shared.clustered import clustered
from tiltmeter_lab.shared.route_rows import Row

#: The fewest crossings for a verdict about them.
CROSSINGS = 20


def crossings_told(some: Sequence[Row], kind: str) -> tuple[list[bool], list[int]]:
    """Of every crossing shown, whether this kind of forecast tells it, and the task."""
    found = [(hit, row.task.number) for row in some if kind in row.scores for hit in row.scores[kind].told]
    return [hit for hit, _ in found], [task for _, task in found]


def above_pilot(some: Sequence[Row], kind: str) -> tuple[float, float | None]:
    """The share told less that of the first twentieth of the training; NaN for too few crossings."""
    both = [
        (hit, seen, row.task.number)
        for row in some
        if kind in row.scores
        for hit, seen in zip(row.scores[kind].told, row.pilot, strict=True)
    ]
    pairs = [(hit, seen) for hit, seen, _ in both]
    if len(pairs) < CROSSINGS:
        return float("nan"), None
    return clustered(pairs, [task for *_, task in both], lambda part: part[:, 0].mean() - part[:, 1].mean())


def beside_pilot(some: Sequence[Row], kind: str) -> str:
    """The same in numbers."""
    hits = crossings_told(some, kind)[0]
    seen = [hit for row in some if kind in row.scores for hit in row.pilot]
    few = f" {CROSSINGS} are needed for a verdict." if len(hits) < CROSSINGS else ""
    return f"{sum(hits)} of {len(hits)} crossings, the first 5 % {sum(seen)}.{few}"
