"""Scalars: the curves of a run as named numbers, step by step, as trackers take them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import xarray as xr

from tiltmeter.export.table import plain_label
from tiltmeter.record import Trajectory


def lines_over_time(curve: xr.DataArray) -> Iterator[tuple[tuple[str, ...], xr.DataArray]]:
    """Every line over time of a curve, with a word for its place in each other dimension.

    Groups have their own names; other dimensions include the name of the dimension: ("a", "seed=3").
    """
    others = [dim for dim in curve.dims if dim != "time"]
    for place in np.ndindex(*(curve.sizes[dim] for dim in others)):
        where = dict(zip(others, place, strict=True))
        labels = {
            dim: plain_label(curve.coords[dim].values[i]) if dim in curve.coords else i for dim, i in where.items()
        }
        words = [str(label) if dim in ("group", "pair") else f"{dim}={label}" for dim, label in labels.items()]
        yield tuple(words), curve.isel(where)


def check_whole_steps(run: Trajectory, who: str) -> None:
    """Refuse fractional times, which trackers would round."""
    for name, curve in run.items():
        times = curve.coords["time"].values
        if not np.array_equal(times, np.round(times)):
            raise ValueError(
                f"{who} counts whole steps. Found fractions in the times of {name!r} on clock {run.clock!r}: "
                'convert with `on_clock("step", ...)`, or export to CSV or Parquet.'
            )


def scalars(run: Trajectory, safe: Callable[[str], str] = str) -> Iterator[tuple[int, dict[str, float]]]:
    """All finite values of each step by name, in the order of steps.

    >>> from tiltmeter.record import Origin
    >>> loss = xr.DataArray([[1.0, 2.0]], dims=("time", "group"), coords={"time": [5], "group": ["a", "b"]})
    >>> list(scalars(Trajectory({"loss": loss}, "step", Origin("example"))))
    [(5, {'loss/a': 1.0, 'loss/b': 2.0})]

    Names that `safe` makes equal get a number, so that no two lines are mixed.
    """
    taken: set[str] = set()
    found: dict[int, dict[str, float]] = {}
    for curve_name, curve in run.items():
        for words, line in lines_over_time(curve):
            name = unlike(safe("/".join([curve_name, *(word.replace("/", "_") for word in words)])), taken)
            for time, value in zip(line.coords["time"].values, line.values, strict=True):
                if np.isfinite(value):
                    found.setdefault(int(time), {})[name] = float(value)
    yield from sorted(found.items())


def unlike(name: str, taken: set[str]) -> str:
    """The name, or one with a number if it is taken already.

    >>> taken = {"a"}
    >>> unlike("a", taken), unlike("a", taken), unlike("b", taken)
    ('a_2', 'a_3', 'b')
    """
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found


def plain_name(name: str) -> str:
    """Letters, digits, space and . - _ / only, which every tracker takes."""
    return re.sub(r"[^\w\-. /]", "_", name, flags=re.ASCII)[:250]
