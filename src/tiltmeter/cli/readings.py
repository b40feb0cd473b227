"""Readings: the curves of a measure in words, with first and last values and the null value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.record.labelled import label_to_json, values_to_json
from tiltmeter.record.trajectory import Clock, Trajectory

#: Number of values of one curve in the table, and of values that a sentence lists one by one.
SHOWN, NAMED = 12, 3


@dataclass(frozen=True, eq=False)
class Reading:
    """One curve of a measure, and its null value: a curve, which may lack some of its dimensions, or words."""

    curve: str
    values: xr.DataArray
    null: xr.DataArray | str

    @property
    def first_time(self) -> float:
        """The first time with a value."""
        known = np.isfinite(self.values.values.reshape(self.values.sizes["time"], -1)).any(1)
        return float(self.values.coords["time"].values[int(known.argmax())])

    @property
    def sentence(self) -> str:
        """Every value at the first and last time with its null value, or the mean if there are many."""
        first, last = self.values.sel(time=self.first_time), self.values.isel(time=-1)
        what = f"{self.curve} ({self.values.attrs['long_name']})" if "long_name" in self.values.attrs else self.curve
        if first.size <= NAMED:
            parts = [
                f"{name + ' ' if name else ''}{a} to {b}" + (f" (null {null})" if null else "")
                for name, a, b, null in self.lines
            ]
            return f"{what}: {'; '.join(parts)}{self._words}."
        null = "" if self.last_null is None else f" (null {_mean(self.last_null)})"
        return f"{what}: {_mean(first)} to {_mean(last)} on average{null}{self._words}."

    @property
    def last_null(self) -> xr.DataArray | None:
        """The null value at the last time, one number for every value; None if it is given in words."""
        if isinstance(self.null, str):
            return None
        last = self.values.isel(time=-1, drop=True)
        return self.null.isel(time=-1, drop=True).broadcast_like(last).transpose(*last.dims)

    @property
    def _words(self) -> str:
        return f"; null: {self.null}" if isinstance(self.null, str) else ""

    @property
    def lines(self) -> list[tuple[str, str, str, str]]:
        """(labels, first, last, null) of every value; if there are many, the first and last few."""
        first, last = self.values.sel(time=self.first_time), self.values.isel(time=-1)
        null = None if self.last_null is None else self.last_null.values.ravel()
        names = [" ".join(map(str, label)) for label in _labels(first)]
        found = [
            (name, _text(a), _text(b), "" if null is None else _text(null[i]))
            for i, (name, a, b) in enumerate(zip(names, first.values.ravel(), last.values.ravel(), strict=True))
        ]
        if len(found) <= SHOWN:
            return found
        return [*found[: SHOWN // 2], ("...", "", "", ""), *found[-SHOWN // 2 :]]

    def picture(self, clock: Clock) -> Any:
        """The curve over time, with a line for every label; the null value as one black line, or one for each if
        they differ.
        """
        from tiltmeter.plot.labelled_lines import labelled_lines

        dim = " and ".join(str(d) for d in self.values.dims if d != "time") or "curve"
        own, null = _lines(self.values, self.curve), None
        if not isinstance(self.null, str):
            other = _lines(self.null.broadcast_like(self.values).transpose(*self.values.dims), self.curve)
            if np.allclose(other, other.isel(line=slice(1)), equal_nan=True):
                null = other.isel(line=0, drop=True)
            else:
                names = [f"{label} null" for label in other.line.values]
                own = xr.concat([own, other.assign_coords(line=names)], "line")
        words = f"{self.curve} ({self.values.attrs['long_name']})" if "long_name" in self.values.attrs else self.curve
        return labelled_lines(own.rename(line=dim), dim, null=null, y_title=words, clock=clock)

    def to_json(self) -> dict[str, Any]:
        """Everything in the text, for machines."""
        coords = {str(dim): self.values.coords[dim].values.tolist() for dim in self.values.dims if dim != "time"}
        return {
            "curve": self.curve,
            "sentence": self.sentence,
            "labels": {dim: [label_to_json(label) for label in labels] for dim, labels in coords.items()},
            "first_time": self.first_time,
            "first": values_to_json(self.values.sel(time=self.first_time).values),
            "last": values_to_json(self.values.isel(time=-1).values),
            "null": self.null if self.last_null is None else values_to_json(self.last_null.values),
        }


def readings_of(trajectory: Trajectory) -> list[Reading]:
    """The curves of measures: those with a null value. The default curves have none."""
    found = []
    for name, values in trajectory.items():
        if name.endswith(("_null", "_se")):
            continue
        null = trajectory[f"{name}_null"] if f"{name}_null" in trajectory else values.attrs.get("null")
        if null is not None:
            found.append(Reading(name, values, null))
    return found


def _lines(values: xr.DataArray, curve: str) -> xr.DataArray:
    """(time, line): the first few values, each named by its labels."""
    labels = [" ".join(map(str, label)) or curve for label in _labels(values.isel(time=0))][:SHOWN]
    flat = values.values.reshape(values.sizes["time"], -1)[:, :SHOWN].astype(float)
    return xr.DataArray(flat, {"time": values.coords["time"].values, "line": labels}, ("time", "line"))


def _labels(values: xr.DataArray) -> list[tuple[Any, ...]]:
    parts = [values.coords[dim].values.tolist() for dim in values.dims]
    grid = np.indices(values.shape).reshape(values.ndim, -1).T if values.ndim else np.empty((1, 0), dtype=int)
    return [tuple(part[i] for part, i in zip(parts, place, strict=True)) for place in grid]


def _mean(values: xr.DataArray) -> str:
    known = values.values[np.isfinite(values.values)]
    return _text(known.mean()) if known.size else _text(np.nan)


def _text(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.4g}"
