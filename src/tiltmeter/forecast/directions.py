"""Directions: which group's task lies in the directions that the network learns fast, and so why it leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from tiltmeter.forecast.modes import responses
from tiltmeter.forecast.question import Question
from tiltmeter.forecast.targets import targets
from tiltmeter.losses import Square

if TYPE_CHECKING:
    from tiltmeter.forecast.network_kernels import Tangent


@dataclass(frozen=True)
class Why:
    """The share of every group's task in the directions learned by a step, and the group with the largest share."""

    step: int
    shares: dict[Any, float]

    @property
    def fastest(self) -> Any:
        """The group whose task lies most in the fast directions."""
        return max(self.shares, key=lambda group: self.shares[group])

    def __str__(self) -> str:
        others = ", ".join(f"{_percent(s)} of {g}'s" for g, s in self.shares.items() if g != self.fastest)
        text = f"By step {self.step} the network has learned the directions that hold "
        text += f"{_percent(self.shares[self.fastest])} of {self.fastest}'s task"
        return f"{text}, against {others}." if others else text + "."


def _percent(share: float) -> str:
    """Three significant figures; two below 10 %."""
    return f"{100 * share:.{2 if abs(share) < 0.1 else 3}g} %"


def learned_share(
    tangent: Tangent,
    question: Question,
    looks: np.ndarray,
) -> xr.DataArray:
    """Return the share of every group's task (labels minus first outputs) in directions learned by each step.

    Let u_i, c_i be the eigenvectors and curvatures of the loss and r_g the task of group g, zero at other points. The
    share is the sum over i of (u_i . r_g)^2 / (r_g . r_g) times the fraction already learned along u_i. It does not
    count what one group learns from another, nor whether what is learned on the sample generalises.
    """
    loss = Square()
    features = tangent.features(loss)
    root = np.sqrt(tangent.shared(question))[:, None]
    left, sizes, _ = np.linalg.svd(root * features.sample, full_matrices=False)
    curvatures = sizes**2
    answers, _ = responses(curvatures, question.sgd, looks)
    goal = targets(tangent.sample.y, tangent.columns, loss, tangent.positive)
    task = root * tangent.flat(goal - tangent.start_sample)
    codes = np.repeat(tangent.sample.codes, len(root) // len(tangent.sample))
    found = np.full((len(looks), len(tangent.sample.groups)), np.nan)
    for code in np.unique(codes):
        own = np.where((codes == code)[:, None], task, 0.0)
        total = float((own**2).sum())
        if total > 0:
            part = ((left.T @ own) ** 2).sum(1) / total
            found[:, code] = -answers @ (curvatures * part)
    return xr.DataArray(
        found,
        dims=("time", "group"),
        coords={"time": looks, "group": tangent.sample.group_labels},
        attrs={"long_name": "share of the group's task in directions already learned", "better": "higher"},
    )
