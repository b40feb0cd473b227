"""Scores of a forecast against a run: final leader, gap over time, crossings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

import tiltmeter as tm

#: Crossings before this step are not scored: there are too few evaluations before it.
EARLIEST = 10.0
#: A crossing counts as predicted if it is within this factor of the interval in which it was found.
FACTOR = 1.5
#: With fewer evaluations, the gap over time is not scored.
FEWEST = 4


@dataclass(frozen=True)
class Scored:
    """One run compared with its forecast. `right` is None if no leader of the run is shown at its last evaluation.

    Leaders and crossings of the run are those shown by simultaneous bands over all its evaluations (`standing`).

    `stated` is whether the forecast names a leader at the end: its promise and its points exclude zero. For every
    crossing shown, `foretold` is whether the forecast has it.
    """

    gap: float
    gap_error: float
    decided: bool
    forecast_gap: float
    correlation: float
    stated: bool
    foretold: tuple[bool, ...]

    @property
    def right(self) -> bool | None:
        return self.gap * self.forecast_gap > 0 if self.decided else None


def score(ahead: tm.Trajectory, run: tm.Trajectory) -> Scored:
    """Compare the loss gap of the first two groups, over the log-spaced evaluations of the run after step 0."""
    real, told = (_gap(one).sel(time=slice(1, None)) for one in (run, ahead))
    told = told.interp(time=real.time)
    error = np.sqrt((run["loss_se"].values ** 2).sum(run["loss_se"].get_axis_num("group")))
    groups = run["loss"].coords["group"].values.tolist()
    led = tm.leaders(run, "loss", groups=(groups[0], groups[1]))
    judged = led.differences
    found = [one for one in led.changes if one.time > EARLIEST]
    return Scored(
        gap=float(real[-1]),
        gap_error=float(error[-1]),
        decided=bool(judged) and bool(judged[0].sign[-1] != 0),
        forecast_gap=float(told[-1]),
        correlation=_correlation(real.values, told.values),
        stated=_stated(ahead),
        foretold=tuple(_foretold(one, ahead) for one in found),
    )


def _stated(ahead: tm.Trajectory) -> bool:
    if ahead.origin.settings.get("promise") is None:
        return False
    judged = tm.leaders(ahead, "loss").differences
    return bool(judged) and bool(judged[0].sign[-1] != 0)


def median_error(values: np.ndarray) -> float | None:
    """Return the standard error of a median by bootstrap."""
    if len(values) < 3:
        return None
    drawn = np.random.default_rng(0).choice(values, (2000, len(values)))
    return float(np.median(drawn, axis=1).std())


def _gap(run: tm.Trajectory) -> xr.DataArray:
    loss = run["loss"].mean("seed") if "seed" in run["loss"].dims else run["loss"]  # of several twins
    return loss.isel(group=0, drop=True) - loss.isel(group=1, drop=True)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    if len(a) < FEWEST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def _foretold(found: tm.results.Crossing, ahead: tm.Trajectory) -> bool:
    """Whether the forecast gap changes sign in the same direction, within the factor of the interval.

    The forecast is computed without noise on the same points, so its change of sign counts however small the gap is.
    """
    gap = _gap(ahead).sel(time=slice(1, None))
    values, times = gap.values, gap.time.values
    groups = [label.item() for label in ahead["loss"].coords["group"]]
    falling = found.leader_after == groups[0]  # the first group leads where its loss minus the other's is negative
    change = ((values[:-1] < 0) != (values[1:] < 0)) & ((values[1:] < 0) == falling)
    for i in np.flatnonzero(change):
        part = values[i] / (values[i] - values[i + 1])
        at = float(np.exp((1 - part) * np.log(times[i]) + part * np.log(times[i + 1])))
        if found.low / FACTOR <= at <= found.high * FACTOR:
            return True
    return False
