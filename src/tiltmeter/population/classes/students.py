"""ClassStudents: C linear scores over items and time, and their losses under the squared error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.population.classes.moments import ClassMoments


@dataclass(frozen=True)
class ClassStudents:
    """n students: W (n, C, r) in the span of means and teachers, Q (n, C, C) of the whole, bias (n, C)."""

    W: np.ndarray
    Q: np.ndarray
    bias: np.ndarray

    def blanked(self, where: np.ndarray) -> ClassStudents:
        """NaN for the students `where`."""
        if not where.any():
            return self
        parts = []
        for part in (self.W, self.Q, self.bias):
            copy = part.copy()
            copy[where] = np.nan
            parts.append(copy)
        return ClassStudents(*parts)

    def scores(self, data: ClassMoments) -> np.ndarray:
        """Mean scores of every group: (n, G, C)."""
        return np.asarray(np.einsum("ncr,gr->ngc", self.W, data.mu) + self.bias[:, None, :])


def square_losses(data: ClassMoments, students: ClassStudents) -> np.ndarray:
    """Half squared error per group (n, G), by its own formula: a sum over classes would inherit their errors."""
    score, count = students.scores(data), len(data.classes)
    trace = np.einsum("ncc->n", students.Q)
    reach = np.sqrt(data.D) * np.einsum("gcr,ncr->ng", data.J, students.W)
    half = 0.5 * ((score**2).sum(2) + data.D * trace[:, None] + 1.0 - 1.0 / count)
    return np.asarray(half - np.einsum("gc,ngc->ng", data.ybar, score) - reach)


def square_class_losses(data: ClassMoments, students: ClassStudents) -> np.ndarray:
    """Half squared error per group and class (n, G, C): the mean over the inputs of that class."""
    count = len(data.classes)
    target = np.eye(count) - 1.0 / count
    miss = students.scores(data)[:, :, None, :] - target  # (n, G, class, output)
    hidden = np.einsum("ncc->n", students.Q) - (students.W**2).sum((1, 2))
    WJ = np.einsum("nor,gcr->ngco", students.W, data.J)
    inner = np.einsum("nor,gcrq,noq->ngc", students.W, data.K, students.W)
    with np.errstate(divide="ignore", invalid="ignore"):
        given = (2.0 * np.sqrt(data.D)[:, None] * (miss * WJ).sum(3) + data.D[:, None] * inner) / data.pi
    return np.asarray(0.5 * ((miss**2).sum(3) + (data.D * hidden[:, None])[:, :, None] + given))
