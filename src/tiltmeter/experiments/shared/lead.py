"""Lead: who is ahead first and last in a measured run, as far as that is decided."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.analysis.crossings import crossings
from tiltmeter.analysis.pairs import SURE, Pair, leader_sign, pair_gap, the_pair
from tiltmeter.names import NOBODY
from tiltmeter.record import Trajectory


@dataclass(frozen=True)
class Lead:
    """The leader at the first and at the last decided look ("" where none is), and the times of all crossings.

    A look is decided where the gap exceeds two standard errors. Leading says nothing about how well a group is served.
    """

    first: Hashable
    last: Hashable
    crossings: tuple[float, ...]

    @property
    def changes(self) -> bool:
        """Whether the first leader is not the last."""
        return self.first != self.last

    def __str__(self) -> str:
        if self.first == NOBODY:
            return "nobody leads beyond doubt"
        if not self.crossings:
            return f"{self.first} leads throughout"
        times = ", ".join(f"{time:.3g}" for time in self.crossings)
        return f"{self.first} leads first and {self.last} last (crossing at {times})"


def lead(run: Trajectory, curve: str = "loss", pair: Pair | None = None) -> Lead:
    """The lead of a run on the points looked at; seeds, where there are several, are averaged and give the error.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> theory = predict(*cases.centred_crossing())
    >>> print(lead(theory))
    - leads first and + last (crossing at 5.64)
    """
    two = the_pair(run[curve], pair)
    gap, error = pair_gap(run, curve, two)
    margin = 0.0 if error is None else SURE * error.values
    sign = np.where(np.abs(gap.values) > margin, np.sign(gap.values), 0.0) * leader_sign(curve, run[curve])
    decided = sign[np.nan_to_num(sign) != 0]
    times = tuple(crossing.time for crossing in crossings(run, curve, two))
    if not decided.size:
        return Lead(NOBODY, NOBODY, times)
    return Lead(two[int(decided[0] > 0)], two[int(decided[-1] > 0)], times)


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


def alone(run: Trajectory, seed: int) -> Trajectory:
    """One seed of several, as a run with standard errors from the points that were looked at."""
    return run.replace({n: c.sel(seed=[seed]) if "seed" in c.dims else c for n, c in run.items()})


def leads(run: Trajectory, curve: str = "loss", pair: Pair | None = None) -> list[Lead]:
    """The lead of every seed on its own."""
    return [lead(alone(run, int(seed)), curve, pair) for seed in run[curve].coords["seed"].values]


def share(marks: list[bool]) -> tuple[float, float]:
    """The share of runs that are marked, and its standard error (with one success and one failure added).

    >>> share([True, True, False, True])
    (0.75, 0.192...)
    """
    hits, count = sum(marks), len(marks)
    middle = (hits + 1) / (count + 2)
    return hits / count, float((middle * (1 - middle) / (count + 2)) ** 0.5)
