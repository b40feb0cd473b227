"""Directions: which group's task lies where the network learns fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from tiltmeter.forecast.kernel.question import Question, bend, slope, targets
from tiltmeter.forecast.kernel.solvers.square import responses

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent


def learned_share(
    tangent: Tangent,
    question: Question,
    evaluations: np.ndarray,
) -> xr.DataArray:
    """Of every group's task, the first pull of the loss on its outputs, the share in directions learned by each step.

    For squares the task is labels minus first outputs; for the logistic loss, labels minus first probabilities. With
    u_i, c_i the eigenvectors and curvatures of the loss and r_g the task of group g, zero elsewhere, the sum over i of
    (u_i . r_g)^2 / (r_g . r_g) times what has been learned along u_i. It leaves out what one group learns from another,
    and what is learned of the sample but not of other points. Curvatures are exact for squares; for other losses they
    are those of outputs near zero, where training starts.
    """
    loss = question.loss
    features = tangent.features(loss)
    root = np.sqrt(tangent.shared(question))[:, None]
    left, sizes, _ = np.linalg.svd(root * features.sample, full_matrices=False)
    curvatures = bend(loss) * sizes**2
    answers, _ = responses(curvatures, question.sgd, evaluations)
    goal = targets(tangent.sample.y, tangent.columns, loss, tangent.positive)
    task = -root * tangent.flat(slope(loss, tangent.start_sample, goal))
    codes = np.repeat(tangent.sample.codes, len(root) // len(tangent.sample))
    found = np.full((len(evaluations), len(tangent.sample.groups)), np.nan)
    for code in np.unique(codes):
        own = np.where((codes == code)[:, None], task, 0.0)
        total = float((own**2).sum())
        if total > 0:
            part = ((left.T @ own) ** 2).sum(1) / total
            found[:, code] = -answers @ (curvatures * part)
    return xr.DataArray(
        found,
        dims=("time", "group"),
        coords={"time": evaluations, "group": tangent.sample.group_labels},
        attrs={"long_name": "share of the group's task in directions already learned", "better": "higher"},
    )
