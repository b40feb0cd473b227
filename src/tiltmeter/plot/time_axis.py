"""The time axis: logarithmic, from the first positive time on, with ticks at round numbers."""

from __future__ import annotations

import math

import altair as alt
import numpy as np

from tiltmeter.plot.theme import axis
from tiltmeter.record.trajectory import Clock

#: What each clock counts, as an axis title.
CLOCK_TITLE: dict[Clock, str] = {
    "t": "t = steps/d",
    "step": "step",
    "epoch": "epoch",
    "round": "round",
    "progress": "progress (share of the fall of the loss)",
}
#: A line needs no more points than the picture has pixels.
LINE_POINTS = 500

Domain = tuple[float, float]


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between `low` and `high` for a logarithmic axis: 1, 3, 10, 30, or only powers of ten on a long one.

    >>> log_ticks(1.0, 2000.0)
    [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]
    >>> log_ticks(1e-3, 1e5)
    [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for mantissas in ((1,) if last - first > 5 else (1, 3), (1, 2, 5), tuple(range(1, 10))):
        found = [float(f"{m}e{power}") for power in range(first, last + 1) for m in mantissas]
        found = [tick for tick in found if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(found) >= 3:
            return found[:: math.ceil(len(found) / 9)]
    return [low, high] if high > low else [low]


def to_the_end(ticks: list[float], domain: Domain) -> list[float]:
    """The ticks and the last time; those too close to it go.

    >>> to_the_end([1.0, 10.0, 100.0, 1000.0], (1.0, 2500.0)), to_the_end([1.0, 10.0, 100.0], (1.0, 110.0))
    ([1.0, 10.0, 100.0, 1000.0, 2500.0], [1.0, 10.0, 110.0])
    """
    end = float(f"{domain[1]:.4g}")
    return [*(tick for tick in ticks if pixels(tick, domain, 1.0) < 0.92), end if end <= domain[1] else domain[1]]


def tick_labels(ticks: list[float]) -> str:
    """The Vega expression that formats the ticks: 0.01, 1, 1,000; or 1k, 1M if there are millions."""
    large = "',~r'" if max(ticks) < 1e6 else "'~s'"
    return f"format(datum.value, datum.value < 1e-4 ? '.3~e' : datum.value < 1 ? '.3~r' : {large})"


def log_scale(domain: Domain) -> alt.Scale:
    return alt.Scale(type="log", domain=list(domain), nice=False)


def time_axis(clock: Clock, domain: Domain, *, labels: bool = True) -> alt.X:
    """The x channel of every picture over time; use `labels=False` for all but the lowest of stacked panels."""
    ticks = to_the_end(log_ticks(*domain), domain)
    title = CLOCK_TITLE[clock] if labels else None
    written = axis(title, values=ticks, labelExpr=tick_labels(ticks), labels=labels, ticks=labels)
    return alt.X("time:Q", scale=log_scale(domain), axis=written)


def time_domain(times: np.ndarray) -> Domain:
    """First and last positive time; a single time gets space on both sides.

    >>> time_domain(np.array([0.0, 0.5, 8.0]))
    (0.5, 8.0)
    """
    positive = times[times > 0]
    if positive.size == 0:
        raise ValueError("A picture over log time needs a time after 0. Found none.")
    low, high = float(positive.min()), float(positive.max())
    return (low, high) if high > low else (low / 2, high * 2)


def thinned(times: np.ndarray, most: int = LINE_POINTS) -> np.ndarray:
    """Indices of the positive times to draw: all, or about `most` evenly spread in log time, including both ends.

    >>> thinned(np.array([0.0, 1.0, 2.0]))
    array([1, 2])
    >>> thinned(np.arange(10_001), most=5)
    array([    1,    10,   100,  1000, 10000])
    """
    positive = np.flatnonzero(times > 0)
    if positive.size <= most:
        return positive
    logs = np.log(times[positive])
    wanted = np.linspace(logs[0], logs[-1], most)
    after = np.clip(np.searchsorted(logs, wanted), 1, logs.size - 1)
    nearest = np.where(wanted - logs[after - 1] < logs[after] - wanted, after - 1, after)
    return np.asarray(positive[np.unique(nearest)])


def pixels(time: float, domain: Domain, width: float) -> float:
    """Where a time lies on the axis."""
    return width * math.log(time / domain[0]) / math.log(domain[1] / domain[0])
