"""Separability: how many examples per dimension a linear student can fit without any error."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import xarray as xr
from scipy.optimize import minimize

from tiltmeter.losses import Square
from tiltmeter.record.labelled import Number
from tiltmeter.theory.population.channel import channel, score_intervention
from tiltmeter.theory.problem.geometry import factor
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.objective import LABELS, Objective, ProblemArrays, flatten


def separability(problem: Mixture, weights: Mapping[Hashable, Number] | None = None, bias: bool = True) -> xr.DataArray:
    r"""Return the number of examples per dimension up to which the data are linearly separable (d -> infinity).

    >>> from tiltmeter import teacher_mixture
    >>> separability(teacher_mixture(overlap=0.0)).round(2).item()
    2.7

    As in Candes and Sur (2020): with z the part of the score that lies outside the span of means and teachers,
    1 / threshold = min over students of E[ max(0, -y score / sqrt(D))^2 ], where that outside part has length one.
    Groups and labels of weight zero do not count. Infinite when the labels themselves are linearly separable.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        weights: Factor on the loss of each group or (group, label); those of weight zero do not count. None: all 1.
        bias: Whether a bias is trained beside the weights.
    """
    flat = flatten(problem, Objective(Square(), 1.0, 1.0, weights, bias))
    return flat.label(np.array([threshold(point) for point in flat.points])).rename("separability")


def threshold(point: ProblemArrays) -> float:
    """The separability threshold of one problem with one student."""
    number, count = point.groups, point.s > 0
    basis = factor(point.gram)  # rows: means, then teachers, in coordinates
    y = np.array(LABELS, dtype=float)[None, :, None]

    def mistake(x: np.ndarray) -> tuple[float, np.ndarray]:
        w, offset = x[:-1], x[-1] if point.bias else 0.0
        M, R = basis[:number] @ w, basis[number:] @ w
        Q = np.full(number, 1.0 + w @ w)
        cuts = np.zeros((number, 2, 1))
        law = channel(*score_intervention(M, R, Q, np.full(number, offset), point.D), point.a, cuts)
        wrong = np.where(count[:, :, None], np.maximum(0.0, -y * law.score), 0.0)
        per_score = 2.0 * wrong * -y / point.D[:, None, None]
        # The score moves with M and the bias directly, with R through the tilt of its noise, with Q through its size.
        over_scale = (law.weight * per_score * law.xi).sum((1, 2)) * np.sqrt(point.D)
        turned = (law.slope * per_score).sum((1, 2)) * np.sqrt(point.D)
        r = R / np.sqrt(Q)
        along = np.asarray((law.weight * per_score).sum((1, 2)))
        stretch = (over_scale - r * turned) / np.sqrt(Q)  # d / d(Q / 2) at fixed R
        gradient = basis[:number].T @ (point.p * along) + basis[number:].T @ (point.p * turned)
        gradient = gradient + w * float(point.p @ stretch)
        total = float(point.p @ law.mean(wrong * wrong / point.D[:, None, None]))
        return total, np.append(gradient, float(point.p @ along) if point.bias else 0.0)

    found = minimize(mistake, np.zeros(basis.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-9})
    return float(np.inf) if found.fun < 1e-4 else 1.0 / float(found.fun)
