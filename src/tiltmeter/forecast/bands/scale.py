"""Scale: how far a training is likely to be from its forecast at every look, before calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.record.trajectory import Trajectory

#: What the movement of a difference, of its levels, and the disagreement of replicas and halves count.
MOVED, LEVEL, SPREAD = 0.05, 0.05, 1.0
#: What movement within this factor in time, before and after, counts: of the difference and of its levels.
NEAR, SWING, SWING_LEVEL = 2.0, 0.1, 0.05
#: The scale grows by this much from the step at which the network leaves its linearisation (kernel only).
BENT = 0.1
#: Of the largest movement: what counts at the first look, where a forecast begins at the network itself.
FLOOR = 1e-3


@dataclass(frozen=True, eq=False)
class Scaled:
    """What was forecast of several contrasts of groups, and its scale; both (looks, contrasts)."""

    times: np.ndarray
    told: np.ndarray
    scale: np.ndarray


def scaled(ahead: Trajectory, curve: str, contrasts: np.ndarray) -> Scaled:
    """Return the value of every contrast (rows of weights of the groups) and its scale.

    The squared scale adds what is known of the sources of error: how far the difference and the levels have moved since
    the first look (the features, the width and the noise of batches that a route leaves out change them in proportion);
    how fast they move (a course that is right but early or late is far off where it is steep); the disagreement of
    twins, replicas and orders, and of the halves of the kernel's sample; and the departure from the linearisation. A
    forecast begins at the network itself, so that the scale begins near zero.
    """
    values = ahead[curve]
    if "seed" not in values.dims:
        values = values.expand_dims("seed")
    each = np.asarray(values.transpose("seed", "time", "group").values, dtype=float)
    gaps = each @ contrasts.T
    told = gaps.mean(0)
    times = values.coords["time"].values.astype(float)
    level, shares = each.mean(0), (np.abs(contrasts) / np.abs(contrasts).sum(1)[:, None]).T
    moved, levels = (_largest(np.abs(one - one[:1])) for one in (told, level))
    levels = levels @ shares
    spread = gaps.std(0, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.zeros_like(told)
    if curve == "loss" and "sample_error" in ahead:
        spread = np.hypot(spread, np.abs(_halves(ahead["sample_error"], values) @ contrasts.T))
    parts = (
        MOVED * moved,
        LEVEL * levels,
        SPREAD * _largest(spread),
        SWING * _swing(told, times),
        SWING_LEVEL * _swing(level, times) @ shares,
        BENT * _departed(ahead, times) * moved,
    )
    least = FLOOR * np.maximum(moved[-1:], levels[-1:])
    scale = np.sqrt(sum(part**2 for part in parts) + least**2)
    return Scaled(times, told, scale)


def _largest(values: np.ndarray) -> np.ndarray:
    """The largest value up to every look; looks without values do not count."""
    return np.asarray(np.maximum.accumulate(np.where(np.isfinite(values), values, 0.0), axis=0))


def _swing(values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The range of the values around every look, up to a factor `NEAR` earlier and later; 0 at time 0."""
    known = np.where(np.isfinite(values), values, values[:1])
    near = [known[(times >= time / NEAR) & (times <= time * NEAR)] for time in times]
    return np.stack([np.ptp(part, axis=0) for part in near])


def _halves(error: xr.DataArray, values: xr.DataArray) -> np.ndarray:
    found = error.reindex(time=values.coords["time"]).transpose("time", "group").values
    return np.asarray(np.nan_to_num(np.asarray(found, dtype=float)))


def _departed(ahead: Trajectory, times: np.ndarray) -> np.ndarray:
    """How far beyond the linearisation every look is, in factors of e; 0 before, and for other routes."""
    horizon = ahead.origin.settings.get("horizon")
    step = horizon.get("linear") if isinstance(horizon, dict) else None
    if not isinstance(step, (int, float)):
        return np.zeros((len(times), 1))
    return np.asarray(np.log(np.maximum(1.0, times / max(step, 1.0)))[:, None])
