"""Order of leaders: who is ahead over time in a measured run, as the claims of several experiments ask it."""

from __future__ import annotations

import numpy as np

from tiltmeter.analysis.crossings import crossings
from tiltmeter.record import Trajectory


def leaders(run: Trajectory, curve: str = "loss") -> str:
    """The groups in the order in which they lead beyond doubt, as "-+": one more than there are crossings.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> leaders(predict(*cases.three_phases()))
    '+-+'
    """
    found = crossings(run, curve)
    if found:
        return str(found[0].leader_before) + "".join(str(one.leader_after) for one in found)
    text = str(found)
    return text.split(" leads")[0] if " leads throughout" in text else ""


def final_gap(run: Trajectory, curve: str = "loss") -> tuple[float, float]:
    """Mean over seeds of the last gap, first group minus second, and its standard error."""
    values = run[curve].isel(time=-1)
    first, second = values.coords["group"].values.tolist()[:2]
    gap = values.sel(group=first) - values.sel(group=second)
    return float(gap.mean("seed")), float(gap.std("seed", ddof=1) / np.sqrt(gap.sizes["seed"]))
