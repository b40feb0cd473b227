"""Rates counted on fresh test examples, instead of computed by a formula."""

from __future__ import annotations

import numpy as np

from tiltmeter.losses import Loss
from tiltmeter.problem.geometry import factor
from tiltmeter.problem.objective_arrays import ProblemArrays


def counted_rates(
    loss: Loss, point: ProblemArrays, w: np.ndarray, offsets: np.ndarray, test: int, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Count loss, error, positive rate, tpr, fpr and ppv per group; NaN for an empty denominator."""
    place = factor(point.gram)
    rank = place.shape[1]
    rows = []
    for g in range(point.groups):
        student = w[point.student[g]]
        x = place[g] + np.sqrt(point.D[g]) * generator.standard_normal((test, rank))
        # Outside the span of means and teachers only the length of the student matters.
        outside = np.sqrt(point.D[g]) * np.linalg.norm(student[rank:]) * generator.standard_normal(test)
        score = x @ student[:rank] + outside + offsets[point.student[g]]
        y = np.where(x @ place[point.groups + g] + point.offset[g] > 0, 1.0, -1.0)
        decided, positive = score > 0, y > 0
        rows.append(
            [
                loss.value(score, y).mean(),
                np.mean(decided != positive),
                np.mean(decided),
                _share(decided, positive),
                _share(decided, ~positive),
                _share(positive, decided),
            ]
        )
    return dict(zip(("loss", "error", "positive_rate", "tpr", "fpr", "ppv"), np.array(rows).T, strict=True))


def _share(what: np.ndarray, among: np.ndarray) -> float:
    return float(what[among].mean()) if among.any() else float("nan")
