"""A grid axis: the values of one parameter as cells of a map, on the scale of the grid (linear or logarithmic)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.plot.theme import axis
from tiltmeter.plot.time_axis import log_ticks, tick_labels


@dataclass(frozen=True)
class GridAxis:
    """The edges of the cells, the order that sorts the grid, and whether the scale is logarithmic."""

    name: str
    edges: np.ndarray
    order: np.ndarray
    log: bool

    @classmethod
    def of(cls, coordinate: xr.DataArray) -> GridAxis:
        """The axis of a coordinate.

        >>> GridAxis.of(xr.DataArray([0.1, 1.0, 10.0], dims="lr", name="lr")).log
        True
        """
        values = coordinate.values
        if values.dtype.kind not in "fiu":
            raise TypeError(f"The axes of a phase diagram are numbers. Found {values.dtype} in {coordinate.name!r}.")
        order = np.argsort(values)
        log = is_log_spaced(values[order])
        return cls(str(coordinate.name), cell_edges(values[order], log), order, log)

    def at(self, fraction: np.ndarray) -> np.ndarray:
        """The values at these fractions of the axis: 0 is the first edge, 1 the last."""
        low, high = (np.log(self.edges[[0, -1]]) if self.log else self.edges[[0, -1]]).tolist()
        found = low + (high - low) * fraction
        return np.asarray(np.exp(found) if self.log else found)

    def cell(self, values: np.ndarray) -> np.ndarray:
        """The cell in which each value lies."""
        return np.clip(np.searchsorted(self.edges, values) - 1, 0, self.order.size - 1)

    def channel(self) -> dict[str, Any]:
        """Scale and axis of a position channel."""
        domain = [float(self.edges[0]), float(self.edges[-1])]
        if not self.log:
            scale = alt.Scale(domain=domain, nice=False, zero=False)
            return {"scale": scale, "axis": axis(self.name, grid=False, tickCount=6)}
        ticks = log_ticks(*domain)
        written = axis(self.name, grid=False, values=ticks, labelExpr=tick_labels(ticks))
        return {"scale": alt.Scale(type="log", domain=domain, nice=False), "axis": written}


def is_log_spaced(values: np.ndarray) -> bool:
    """Whether positive values increase by a constant factor and not by a constant step.

    >>> is_log_spaced(np.array([1.0, 10.0, 100.0])), is_log_spaced(np.array([1.0, 2.0, 3.0]))
    (True, False)
    """
    if values.size < 3 or values[0] <= 0:
        return False
    factors = np.diff(np.log(values))
    return bool(np.allclose(factors, factors[0], rtol=1e-6) and not np.allclose(np.diff(values), values[1] - values[0]))


def cell_edges(values: np.ndarray, log: bool) -> np.ndarray:
    """Halfway between neighbours, on the scale of the axis; the outer cells are symmetric.

    >>> cell_edges(np.array([0.0, 1.0, 2.0]), log=False)
    array([-0.5,  0.5,  1.5,  2.5])
    """
    scaled = np.log(values) if log else values.astype(float)
    if scaled.size == 1:
        return np.asarray(scaled[0] + np.array([-0.5, 0.5]))
    middle = (scaled[1:] + scaled[:-1]) / 2
    found = np.concatenate([[2 * scaled[0] - middle[0]], middle, [2 * scaled[-1] - middle[-1]]])
    return np.exp(found) if log else found
