"""gap_parabola: the gap in loss at small learning rates is a parabola, set by two numbers of the prior knowledge."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.prior.centred_pair import G, centred_pair

#: An x this close to 1 is the start itself.
START = 1e-12


@dataclass(frozen=True)
class GapParabola(NotebookText):
    """Gap in loss, first group minus second: end + linear x + quadratic x^2, with x = exp(-mean variance * lr * t).

    `overlap` is delta.Delta and `distance` delta.delta, with delta = start - end of the student and Delta = best
    student of the second group minus best student of the first. Only these two numbers of the prior knowledge matter.
    """

    groups: tuple[Hashable, Hashable]
    end: float
    linear: float
    quadratic: float
    overlap: float
    distance: float
    rate: float

    def gap(self, lr_t: float | np.ndarray) -> np.ndarray:
        """The gap at the time lr * t."""
        x = np.exp(-self.rate * np.asarray(lr_t, dtype=float))
        return np.asarray(self.end + self.linear * x + self.quadratic * x**2)

    @property
    def crossings(self) -> tuple[float, ...]:
        """The values of lr * t at which the losses cross."""
        roots = np.roots([self.quadratic, self.linear, self.end])
        inside = [x.real for x in roots if abs(x.imag) < 1e-12 and 0.0 < x.real < 1.0 - START]
        return tuple(sorted(float(-np.log(x) / self.rate) for x in inside))

    def __str__(self) -> str:
        times = ", ".join(f"{time:.4g}" for time in self.crossings)
        said = f"cross at lr t = {times}" if times else "never cross"
        return (
            f"At small learning rates the losses of {self.groups[0]} and {self.groups[1]} {said}: the prior overlaps "
            f"by {self.overlap:.4g} with what the groups disagree on, and is {np.sqrt(self.distance):.4g} away from "
            "where training ends."
        )


def gap_parabola(problem: Mixture, sgd: SGD) -> GapParabola:
    """Return the gap in loss of two centred groups in the limit lr -> 0, from the start of `sgd`.

    >>> from tiltmeter.problem import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> print(gap_parabola(problem, sgd))
    At small learning rates the losses of + and - cross at lr t = 0.8066: the prior overlaps by 0.4932 with what the
    groups disagree on, and is 0.8208 away from where training ends.

    At a finite learning rate use `crossing_bound`, which is exact.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained; its learning rate only needs to be stable.
    """
    pair = centred_pair(problem, sgd, "gap_parabola")
    D, p, Dmix = pair.D, pair.p, pair.Dmix
    best = np.stack([pair.optimum(0), pair.optimum(1)])  # overlaps of w*_g with both teachers
    disagreement = G / np.sqrt(D[1]) * np.array([0.0, 1.0]) - G / np.sqrt(D[0]) * np.array([1.0, 0.0])
    end = p * D @ (G / np.sqrt(D)[:, None] * np.eye(2)) / Dmix  # coordinates of the end along the teachers
    squared = float(disagreement @ pair.gram @ disagreement)
    limit = (p * D) @ best / Dmix
    overlap = float(disagreement @ (pair.R0 - limit))
    distance = float(pair.Q0 - 2.0 * end @ pair.R0 + end @ pair.gram @ end)
    both = float(D[0] * D[1])
    return GapParabola(
        groups=(pair.groups[0], pair.groups[1]),
        end=both / (2.0 * Dmix**2) * squared * float(p[1] ** 2 * D[1] - p[0] ** 2 * D[0]),
        linear=both / Dmix * overlap,
        quadratic=0.5 * float(D[0] - D[1]) * distance,
        overlap=overlap,
        distance=distance,
        rate=Dmix,
    )
