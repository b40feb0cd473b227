"""Starts: in how many of several starts a finding about time is seen, each start by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiltmeter.leaders.difference import Difference
from tiltmeter.report.findings import Findings


def turning(found: Findings, one: Difference, low: float, high: float) -> str:
    """In how many starts the difference has at both evaluations the sign that it has on average; "" of a single run.

    A change of lead between two evaluations is a change in these starts.
    """
    same = _same_sign(found, one)
    if same is None:
        return ""
    places = [int(np.abs(one.times - time).argmin()) for time in (low, high)]
    return f" (in {_of(np.all(same[places], axis=0))})"


def lasting(found: Findings, one: Difference, start: float) -> str:
    """In how many starts the difference keeps its sign from an evaluation on to the end, as a sentence; "" of a single
    run."""
    same = _same_sign(found, one)
    if same is None:
        return ""
    return f" It keeps its sign from there on in {_of(np.all(same[one.times >= start], axis=0))}."


def _of(starts: Any) -> str:
    return f"{int(np.sum(starts))} of {len(starts)} starts"


def _same_sign(found: Findings, one: Difference) -> np.ndarray | None:
    """(evaluations, starts): whether the difference of a start has the sign of the mean over starts."""
    curve = found.run[one.curve]
    if not found.two or "seed" not in curve.dims or curve.sizes["seed"] < 2:
        return None
    groups = curve.coords["group"].values.tolist()
    values = curve.sel(time=one.times).transpose("group", "time", "seed").values.astype(float)
    gaps = values[groups.index(one.pair[0])] - values[groups.index(one.pair[1])]
    gaps = gaps[:, np.isfinite(gaps).all(0)]
    return np.asarray(np.sign(gaps) == np.sign(one.gap)[:, None])
