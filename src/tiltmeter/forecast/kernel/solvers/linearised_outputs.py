"""LinearisedOutputs: the outputs of a linearised network along its training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LinearisedOutputs:
    """Outputs at the points to look at, (steps, rows, columns), and what is known about the calculation.

    The weights have moved by Jacobian^T `dual`, where `dual` has shape (steps, rows of the sample, columns). `kept` is
    the factor that weight decay has left on the initial weights. `error` estimates the root mean square error of the
    calculation at the sample, in units of the outputs. `sharpest` is (a bound on) the largest curvature of the loss.
    `pull` (steps, groups) is what every group counts under a law of groups.
    """

    looks: np.ndarray
    outputs: np.ndarray
    dual: np.ndarray
    kept: np.ndarray
    error: float
    sharpest: float
    method: str
    pull: np.ndarray | None = None
