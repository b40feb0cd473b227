"""Training sets of a mixture in d dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.geometry import factor
from tiltmeter.problem.objective_arrays import ProblemArrays


@dataclass(frozen=True)
class TrainingSet:
    """n inputs x / sqrt(d) of shape (n, d), their labels -1/+1, groups (by number) and loss weights."""

    inputs: np.ndarray
    y: np.ndarray
    group: np.ndarray
    weight: np.ndarray


def draw(point: ProblemArrays, d: int, n: int, generator: np.random.Generator) -> TrainingSet:
    """Draw n examples; without loss of generality, means and teachers lie along the first axes."""
    place = factor(point.gram)
    rank = place.shape[1]
    group = generator.choice(point.groups, size=n, p=point.p / point.p.sum())
    x = generator.standard_normal((n, d)) * np.sqrt(point.D)[group, None]
    x[:, :rank] += place[group]
    field = (x[:, :rank] * place[point.groups + group]).sum(1) + point.offset[group]
    y = np.where(field > 0, 1.0, -1.0)
    weight = np.where(y > 0, point.s[group, 0], point.s[group, 1])
    return TrainingSet(x / np.sqrt(d), y, group, weight)
