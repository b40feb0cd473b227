"""Standing of a forecast: who is named as better off, by the calibrated band of the forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiltmeter.analysis.simultaneous.band import Band
from tiltmeter.forecast.bands.forecast_band import LEVEL, limits
from tiltmeter.forecast.bands.kind import kind_of
from tiltmeter.forecast.bands.shipped_scores import CURVES, factor
from tiltmeter.record.trajectory import Trajectory


def forecast_bands(
    ahead: Trajectory, names: Sequence[str], contrasts: np.ndarray, level: float
) -> tuple[dict[str, Band], float] | None:
    """Return the bands of these curves and their level; None where none of them is calibrated.

    `contrasts` holds rows of weights of the groups. A level below 10 % is taken as 10 %, since few kinds
    of forecasts were calibrated on enough tasks for less.
    """
    kind, _ = kind_of(ahead)
    if kind is None:
        return None
    used = max(level, LEVEL)
    known = [name for name in names if name in CURVES and np.isfinite(factor(kind, name, "gap", used))]
    found = {}
    for name in known:
        low, told, high = limits(ahead, name, contrasts, "gap", kind, used)
        found[name] = Band(told, low, high)
    return (found, used) if found else None
