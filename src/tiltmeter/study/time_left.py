"""Time left: how long the remaining cells of a study will take, when some settings take longer than others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiltmeter.study.grid import text


def seconds_left(done: Sequence[tuple[Mapping[str, Any], float]], left: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of work in the cells that are left, judged by those that are done.

    >>> done = [({"width": width, "depth": depth}, width * depth / 10) for width in (1, 10) for depth in (1, 2)]
    >>> round(seconds_left(done, [{"width": 10, "depth": 2}]), 1)
    2.0

    Every value of every factor multiplies the time (least squares on logarithms, slightly shrunk). A value that no
    complete cell has counts as average.
    """
    if not done or not left:
        return 0.0
    recent = done[-2000:]
    columns = {level: place for place, level in enumerate(dict.fromkeys(p for s, _ in recent for p in _levels(s)))}
    seen = _design([settings for settings, _ in recent], columns)
    logs = np.log(np.maximum([seconds for _, seconds in recent], 1e-4))
    mean = logs.mean()
    gram = seen.T @ seen + 1e-3 * np.eye(len(columns))
    effects = np.linalg.solve(gram, seen.T @ (logs - mean)) if columns else np.zeros(0)
    # The mean of a log-normal time lies above its median.
    spread = float(np.var(logs - mean - seen @ effects))
    return float(np.exp(mean + _design(left, columns) @ effects + spread / 2).sum())


def _levels(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, text(value)) for name, value in settings.items() if name != "seed"]


def _design(cells: Sequence[Mapping[str, Any]], columns: Mapping[tuple[str, str], int]) -> np.ndarray:
    found = np.zeros((len(cells), len(columns)))
    for row, settings in enumerate(cells):
        for level in _levels(settings):
            if level in columns:
                found[row, columns[level]] = 1.0
    return found
