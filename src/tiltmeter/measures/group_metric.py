"""GroupMetric: any function f(y_true, y_score) as a curve with one value per group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.measures.snapshot import Measure, Snapshot
from tiltmeter.names import CURVES, Better
from tiltmeter.record import When


@dataclass(frozen=True)
class Sometimes:
    """The measure, evaluated only at the steps that `when` selects, and at the last one.

    >>> from tiltmeter.measures.default_curves import error
    >>> from tiltmeter.record import every
    >>> Sometimes(error, every(500)).when(1000)
    True

    Args:
        measure: Measure to evaluate.
        when: Steps at which it is evaluated.
    """

    measure: Measure
    when: When

    def __call__(self, snapshot: Snapshot) -> Mapping[str, xr.DataArray]:
        return self.measure(snapshot)


@dataclass(frozen=True)
class GroupMetric:
    """Your own f(y_true, y_score) -> number, evaluated on the points of each group: a curve of this name.

    >>> def spread(y_true, y_score):
    ...     return y_score.std()
    >>> GroupMetric(spread).name
    'spread'

    `y_score` holds the model's outputs: one number or one row per point. Unless you set `better`, no group leads in
    this curve. Its standard error is not known.

    Args:
        function: Takes labels and scores of the points of a group and returns a number.
        name: Name of the curve; empty: that of the function.
        better: "lower", "higher" or "neither": which values are better.
    """

    function: Callable[[np.ndarray, np.ndarray], Any]
    name: str = ""
    better: Better = "neither"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"A measure should be a function. Found {type(self.function).__name__}.")
        name = self.name or getattr(self.function, "__name__", "")
        if not name.isidentifier():
            raise ValueError(f'A measure needs a name for its curve: GroupMetric(f, "my_name"). Found {name!r}.')
        if name in CURVES:
            raise ValueError(f"{name!r} already means {CURVES[name].meaning}: choose another name for this measure.")
        object.__setattr__(self, "name", name)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        assert snapshot.score is not None
        values = []
        for code, group in enumerate(snapshot.data.groups):
            members = snapshot.data.codes == code
            try:
                value = self.function(snapshot.data.y[members], snapshot.score[members]) if members.any() else np.nan
                values.append(float(value))
            except Exception as error:
                error.add_note(f"Raised by the measure {self.name!r} in group {group!r}.")
                raise
        return {self.name: snapshot.by_group(self.name, np.asarray(values), long_name=self.name, better=self.better)}
