"""Criteria of group losses over time, smoothed, with their gradients."""

from __future__ import annotations

import numpy as np

from tiltmeter.population.criteria import Criterion, FinalGap, GapArea, WorstGroupArea, WorstGroupLoss


def smooth(criterion: Criterion, losses: np.ndarray, times: np.ndarray, width: float) -> tuple[float, np.ndarray]:
    """Return the criterion of losses (T, G) and its gradient, with maxima and minima smoothed over `width`.

    >>> value, slope = smooth(WorstGroupLoss(), np.array([[0.5, 0.5], [0.1, 0.4]]), np.array([0.0, 1.0]), width=1e-6)
    >>> round(value, 6), slope[-1].tolist()
    (0.4, [0.0, 1.0])
    """
    measure = np.zeros(len(times))
    if isinstance(criterion, (WorstGroupArea, GapArea)):
        gaps = np.diff(times)
        measure[:-1] += 0.5 * gaps
        measure[1:] += 0.5 * gaps
        measure /= measure.sum() or 1.0
    elif isinstance(criterion, FinalGap) or (isinstance(criterion, WorstGroupLoss) and criterion.step is None):
        measure[-1] = 1.0
    else:
        raise TypeError(
            "`criterion` should be WorstGroupArea(), WorstGroupLoss(), GapArea() or FinalGap() here. "
            f"Found {criterion.name}."
        )
    value, slope = _largest(losses, width)
    if isinstance(criterion, (GapArea, FinalGap)):
        least, down = _largest(-losses, width)
        value, slope = value + least, slope - down
    return float(measure @ value), measure[:, None] * slope


def _largest(values: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean under softmax(values / width), a little below the maximum, and its gradient."""
    top = values.max(1, keepdims=True)
    q = np.exp((values - top) / width)
    q /= q.sum(1, keepdims=True)
    mean = (q * values).sum(1)
    return mean, q * (1.0 + (values - mean[:, None]) / width) + 0.0  # no negative zeros
