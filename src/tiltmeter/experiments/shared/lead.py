"""Lead: who leads over time in a measured run, for the claims of several experiments."""

from __future__ import annotations

from tiltmeter.analysis.crossings import Crossings, crossings
from tiltmeter.analysis.over_seeds import mean_and_error
from tiltmeter.analysis.pairs import Pair
from tiltmeter.record import Trajectory


def leaders(run: Trajectory, curve: str = "loss") -> str:
    """Return the groups in the order in which they lead, such as "-+"; "" if nobody leads.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> leaders(predict(*cases.three_phases()))
    '+-+'
    """
    return "".join(map(str, crossings(run, curve).leaders))


def final_gap(run: Trajectory, curve: str = "loss") -> tuple[float, float]:
    """Return the mean over seeds of the last gap (first group minus second) and its standard error."""
    last = run[curve].isel(time=-1)
    return mean_and_error(last.isel(group=0) - last.isel(group=1))


def of_each_seed(run: Trajectory, curve: str = "loss", pair: Pair | None = None) -> list[Crossings]:
    """Return the crossings of every seed alone, shown by its held-out points."""

    def alone(seed: int) -> Trajectory:
        return run.replace({n: c.sel(seed=[seed]) if "seed" in c.dims else c for n, c in run.items()})

    return [crossings(alone(int(seed)), curve, pair) for seed in run[curve].coords["seed"].values]
