"""Lead: who is ahead over time in a measured run, as the claims of several experiments ask it."""

from __future__ import annotations

import xarray as xr

from tiltmeter.analysis.crossings import Crossings, crossings
from tiltmeter.analysis.over_seeds import mean_and_error
from tiltmeter.analysis.pairs import Pair, pair_gap, the_pair
from tiltmeter.record import Trajectory


def leaders(run: Trajectory, curve: str = "loss") -> str:
    """The groups in the order in which they lead, as "-+": one more than there are crossings, "" where nobody leads.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> leaders(predict(*cases.three_phases()))
    '+-+'
    """
    return "".join(map(str, crossings(run, curve).leaders))


def final_gap(run: Trajectory, curve: str = "loss") -> tuple[float, float]:
    """Mean over seeds of the last gap, first group minus second, and its standard error."""
    last = run[curve].isel(time=-1)
    return mean_and_error(last.isel(group=0) - last.isel(group=1))


def on_all_points(run: Trajectory, curve: str = "loss", pair: Pair | None = None) -> Trajectory:
    """The mean over seeds with standard errors that count seeds *and* points: who leads among all, not among these.

    All seeds look at the same few points, so that their scatter alone says nothing about others.
    """
    a, b = the_pair(run[curve], pair)
    scatter = pair_gap(run, curve, (a, b))[1]
    of_points = run[f"{curve}_se"].sel(group=[a, b]).mean("seed")
    both = (of_points**2).sum("group")
    if run[curve].sizes["seed"] > 1 and scatter is not None:
        both = both + scatter**2
    # Half of the variance of the gap to each group: that of their difference is then right.
    each = xr.ones_like(of_points) * (both / 2.0) ** 0.5
    return run.replace({curve: run[curve].mean("seed", keep_attrs=True), f"{curve}_se": each})


def of_each_seed(run: Trajectory, curve: str = "loss", pair: Pair | None = None) -> list[Crossings]:
    """The crossings of every seed on its own, with standard errors from the points that were looked at."""

    def alone(seed: int) -> Trajectory:
        return run.replace({n: c.sel(seed=[seed]) if "seed" in c.dims else c for n, c in run.items()})

    return [crossings(alone(int(seed)), curve, pair) for seed in run[curve].coords["seed"].values]
