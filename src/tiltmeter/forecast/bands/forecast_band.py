"""forecast_band: the limits within which a training stays that was forecast, over all its looks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import numpy as np
import xarray as xr

from tiltmeter.forecast.bands.kind import Kind, kind_of
from tiltmeter.forecast.bands.scale import scaled
from tiltmeter.forecast.bands.shipped_scores import CURVES, What, factor
from tiltmeter.record.labelled import labels_array
from tiltmeter.record.trajectory import Trajectory

#: The share of trainings that leave the band somewhere.
LEVEL = 0.1


@dataclass(frozen=True, eq=False)
class ForecastBand:
    """What is forecast of one curve with its limits: `values` of groups, `gaps` of pairs of groups.

    Both have dimensions (time, group or pair, bound), bound being "low", "told" and "high". The gaps of all pairs stay
    within their limits at all looks together in a share 1 - `level` of trainings of new tasks, and so do the values.
    These are two promises: values and gaps, or several curves, do not stay inside together as often.
    """

    curve: str
    level: float
    kind: Kind
    values: xr.DataArray
    gaps: xr.DataArray


def forecast_band(ahead: Trajectory, curve: str = "loss", level: float = LEVEL) -> ForecastBand:
    """Return the band of a forecast in one curve; it is calibrated, not derived.

    The scale of the errors at every look (see `bands.scale`) is multiplied by a factor that made 90 % of whole curves
    of the trainings of other tasks stay inside (`level` for other shares). The promise is for the curve that a `Probe`
    records on the same held-out points, for a task drawn like those (see docs/forecast.md), not for every kind of task;
    nor for a population of points.
    """
    kind, why = kind_of(ahead)
    if kind is None:
        raise ValueError(f"`ahead` should be a forecast whose bands are calibrated. Found that {why}.")
    if curve not in CURVES:
        raise ValueError(f"`curve` should be one of {', '.join(CURVES)}, whose bands are calibrated. Found {curve!r}.")
    for what in get_args(What):
        if not np.isfinite(factor(kind, curve, what, level)):
            raise ValueError(
                f"`level` should be one that the calibration can promise for {kind}, which has too few trainings for "
                f"less. Found level = {level}."
            )
    groups = ahead[curve].coords["group"].values.tolist()
    pairs = list(combinations(groups, 2))
    rows = np.zeros((len(pairs), len(groups)))
    for row, (a, b) in zip(rows, pairs, strict=True):
        row[groups.index(a)], row[groups.index(b)] = 1.0, -1.0
    values = _limits(ahead, curve, np.eye(len(groups)), "level", kind, level, "group", groups)
    gaps = _limits(ahead, curve, rows, "gap", kind, level, "pair", pairs)
    return ForecastBand(curve, level, kind, values, gaps)


def calibrated_band(ahead: Trajectory, curve: str) -> ForecastBand | None:
    """Return the same where there is one, None for any other trajectory or curve."""
    kind, _ = kind_of(ahead)
    if kind is None or curve not in CURVES or curve not in ahead or "group" not in ahead[curve].dims:
        return None
    known = all(np.isfinite(factor(kind, curve, what, LEVEL)) for what in get_args(What))
    return forecast_band(ahead, curve) if known else None


def limits(
    ahead: Trajectory, curve: str, contrasts: np.ndarray, what: What, kind: Kind, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return lower limit, forecast and upper limit of contrasts of groups, each (looks, contrasts)."""
    found = scaled(ahead, curve, contrasts)
    half = factor(kind, curve, what, level) * found.scale
    least, most = _possible(curve, what, found.told)
    return np.maximum(found.told - half, least), found.told, np.minimum(found.told + half, most)


def _possible(curve: str, what: What, told: np.ndarray) -> tuple[float, float]:
    """The range of a rate or of a difference of rates; a loss that is never negative stays so."""
    if curve != "loss":
        return (0.0, 1.0) if what == "level" else (-1.0, 1.0)
    return (0.0 if what == "level" and np.nanmin(told) >= 0.0 else -np.inf), np.inf


def _limits(
    ahead: Trajectory,
    curve: str,
    contrasts: np.ndarray,
    what: What,
    kind: Kind,
    level: float,
    dim: str,
    names: list[Hashable] | list[tuple[Hashable, Hashable]],
) -> xr.DataArray:
    parts = limits(ahead, curve, contrasts, what, kind, level)
    coords = {"time": ahead[curve].coords["time"].values, dim: labels_array(names), "bound": ["low", "told", "high"]}
    return xr.DataArray(np.stack(parts, -1), dims=("time", dim, "bound"), coords=coords, name=curve)
