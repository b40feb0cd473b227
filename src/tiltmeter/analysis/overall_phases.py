"""overall_phases: intervals of training in which one of several groups is ahead of all others."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
import xarray as xr

from tiltmeter.analysis.crossing_sentences import ahead_of_all
from tiltmeter.analysis.crossings import Crossings
from tiltmeter.analysis.pairs import groups_of, leader_sign, resolution
from tiltmeter.analysis.statements import Standing
from tiltmeter.names import NOBODY

#: Times at which the lead within an exact interval is averaged.
LOOKS = 64


@dataclass(frozen=True)
class Interval:
    """From `start` to `stop` this group is ahead of all others ("": none); `size` is its mean lead over the next."""

    start: float
    stop: float
    leader: Hashable
    size: float


def exact_intervals(
    curve: xr.DataArray, found: Crossings, exact: Callable[[np.ndarray], xr.DataArray]
) -> list[Interval]:
    """The intervals between changes of the overall leader of an exact curve, sizes averaged over log time."""
    from tiltmeter.analysis.drivers import mean_over_log_time

    times = curve.coords["time"].values
    times = times[times > 0]
    if not times.size:
        return []
    groups, sign = groups_of(curve), leader_sign(str(curve.name), curve)

    def order(at: np.ndarray) -> xr.DataArray:
        return (exact(at).transpose("time", "group") * sign).assign_attrs(exact(at).attrs)

    def leader(low: float, high: float) -> Hashable:
        values = order(np.array([np.sqrt(low * high)]))
        best = np.sort(values.values[0])
        sure = best[1] - best[0] > resolution(values)
        return groups[int(np.argmin(values.values[0]))] if sure else NOBODY

    edges = [float(times[0]), *sorted({crossing.time for crossing in found}), float(times[-1])]
    parts = [(leader(low, high), low, high) for low, high in pairwise(edges) if high > low]
    intervals = []
    for who, same in groupby(parts, key=lambda part: part[0]):
        run = list(same)
        low, high = run[0][1], run[-1][2]
        values = order(np.geomspace(low, high, LOOKS))
        ranked = np.sort(values.values, axis=1)
        lead = xr.DataArray(ranked[:, 1] - ranked[:, 0], dims=("time",), coords={"time": values.coords["time"].values})
        intervals.append(Interval(low, high, who, mean_over_log_time(lead)))
    return intervals if any(one.leader != NOBODY for one in intervals) else []


def measured_intervals(curve: xr.DataArray, judged: Standing) -> list[Interval]:
    """The same for a measured curve: a leader is shown to be ahead of every other group at each of its looks.

    Where each group is compared with the mean of all, a leader is shown if all others are shown to be behind the mean.
    """
    if not judged.differences:
        return []
    looks = judged.differences[0].times
    leaders = [ahead_of_all({one.pair: one.leader[k] for one in judged.differences}) for k in range(len(looks))]
    if all(leader == NOBODY for leader in leaders):
        return []
    mean = (curve.mean("seed") if "seed" in curve.dims else curve).transpose("time", "group")
    ranked = np.sort(mean.sel(time=looks).values * leader_sign(str(curve.name), curve), axis=1)
    lead = ranked[:, 1] - ranked[:, 0]
    stretches = [list(same) for _, same in groupby(range(len(looks)), key=lambda k: leaders[k])]
    edges = [float(looks[0])]
    for one, two in pairwise(stretches):
        # A leader is shown only at its own looks; the undecided interval begins and ends there.
        last, first = float(looks[one[-1]]), float(looks[two[0]])
        edges.append(last if leaders[two[0]] == NOBODY else first if leaders[one[0]] == NOBODY else (last + first) / 2)
    edges.append(float(looks[-1]))
    return [
        Interval(low, high, leaders[own[0]], float(np.nanmean(lead[own])))
        for (low, high), own in zip(pairwise(edges), stretches, strict=True)
    ]
