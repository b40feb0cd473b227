"""Stability: the learning rates beyond which the linearised network diverges."""

from __future__ import annotations

import numpy as np

from tiltmeter.forecast.warn_caller import warn_caller
from tiltmeter.recipe.plain_sgd import PlainSGD


def stability_limit(sharpest: float, optimiser: PlainSGD) -> float | None:
    """Return the stability limit of the mean over batches, 2 (1 + momentum) / curvature; None without curvature."""
    curvature = sharpest + optimiser.weight_decay
    return 2.0 * (1.0 + optimiser.momentum) / curvature if curvature > 0 else None


def batch_limit(sharpest: float, trace: float, batch: int, optimiser: PlainSGD) -> float | None:
    r"""Return the learning rate near which batch noise makes the squared loss diverge; None without curvature.

    >>> round(batch_limit(1.0, 20.0, 4, PlainSGD(lr=0.1, steps=1)), 3)
    0.32

    1 / limit = sharpest / (2 (1 + momentum)) + (trace + sharpest) / (2 batch (1 - momentum)), with `trace` the sum of
    all curvatures. This is exact for Gaussian points of equal variances; for unequal ones it is too small, by up to a
    factor of 2.
    """
    mean = (sharpest + optimiser.weight_decay) / (2.0 * (1.0 + optimiser.momentum))
    noise = (trace + sharpest) / (2.0 * batch * (1.0 - optimiser.momentum))
    return 1.0 / (mean + noise) if mean + noise > 0 else None


def too_fast(limits: dict[str, float | None], optimiser: PlainSGD, batch: int | None) -> bool:
    """Whether the learning rate is beyond a limit; warns if it is."""
    fastest = optimiser.fastest()
    mean, noise = (limits[name] or np.inf for name in ("stability_limit", "batch_limit"))
    if fastest < min(mean, noise):
        return False
    why = "" if fastest >= mean else f" in batches of {batch}"
    what = "the forecast diverges" if fastest >= mean else "the forecast leaves this noise out"
    warn_caller(
        f"`lr` should stay below {mean if fastest >= mean else noise:.3g}, the stability limit of the linearised "
        f"network{why}. Found lr = {fastest:.3g}: {what}, and the real network will behave differently."
    )
    return True
