"""`tiltmeter measure`: a measure of simplicity or group bias, recorded while a model trains."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import xarray as xr
from cyclopts import Parameter
from rich import box
from rich.table import Table

from tiltmeter.cli.show import draw
from tiltmeter.cli.terminal import Json, Save, To, print_json, print_rows, print_table
from tiltmeter.cli.toml_file import made
from tiltmeter.cli.train_config import build_data, read_config, train_as_told
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, log_spaced
from tiltmeter.record.labelled import label_to_json, values_to_json
from tiltmeter.record.trajectory import Clock

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
        from tiltmeter_lab.plot.labelled_lines import labelled_lines

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


#: Without a file: a short training run that shows the measure.
STEPS, BATCH, LR, PER_DECADE = 200, 32, 0.1, 4


def measure(
    name: str | None = None,
    config: Path | None = None,
    /,
    *,
    list_all: Annotated[bool, Parameter(name="--list", negative="", show_default=False)] = False,
    curve: str | None = None,
    to: To = None,
    save: Save = (),
    json: Json = False,
) -> None:
    """Record a measure while a model trains; prints its first and last values together with the null value.

    Parameters
    ----------
    name
        The measure; --list shows all.
    config
        A TOML file of `tiltmeter train`; its table [measure] sets the options of the measure. Without a file: the
        built-in digits and a small network, or the measure's own example.
    list_all
        List all measures: what they need and cost, where they are exact, when the bias is absent.
    curve
        The curve of the measure to draw (default: its first).
    """
    if list_all:
        _list(json)
        return
    if name is None:
        raise ValueError("Which measure? `tiltmeter measure --list` shows all.")
    trajectory = _train(name, config, to)
    if to is not None:
        print(f"Saved to {to}", file=sys.stderr)
    found = readings_of(trajectory)
    if not found:
        raise ValueError(f"The measure {name!r} gave no values for this model and data.")
    chosen = next((one for one in found if one.curve == curve), found[0] if curve is None else None)
    if chosen is None:
        raise KeyError(f"No curve {curve!r} of {name}. There are: {', '.join(one.curve for one in found)}.")
    if save:
        draw(chosen.picture(trajectory.clock), save)
    if json:
        count = trajectory[found[0].curve].sizes["time"]
        curves = [one.to_json() for one in found]
        print_json({"measure": name, "clock": trajectory.clock, "evaluations": count, "curves": curves})
        return
    for one in found:
        print(one.sentence)
    rows = [(one.curve, *line) for one in found for line in one.lines]
    print_rows((name, "", "first", "last", "null, last"), rows, (name, ""))


def _train(name: str, config: Path | None, to: Path | None) -> Trajectory:
    from tiltmeter.training.loop import train
    from tiltmeter_lab.measures.catalogue import find
    from tiltmeter_lab.measures.measure import example_of

    kind = find(name)
    if config is not None:
        tables = read_config(config, ("measure",))
        chosen = made(kind, tables.get("measure", {}), "measure")
        return train_as_told(tables, config.parent, (chosen,), to=to)
    chosen, model, data = example_of(kind)
    held_out = data
    if not hasattr(kind, "example"):
        data, held_out = build_data({}, Path())
    print(f"Training on {len(data):,} points, with {len(held_out):,} held-out points ...", file=sys.stderr)
    watch = Watch(when=log_spaced(PER_DECADE), measures=(chosen,))
    return train(model, data, held_out, Recipe(lr=LR, steps=STEPS, batch=BATCH), watch=watch, to=to)


def _list(json: bool) -> None:
    from tiltmeter_lab.measures.overview import rows

    found = rows()
    if json:
        print_json([{**vars(row), "command": f"tiltmeter measure {row.name}"} for row in found])
        return
    print(
        f"{len(found)} measures; passes are forward passes over the held-out points, per observation, on the example."
    )
    table = Table(box=box.SIMPLE_HEAD)
    for head in ("measure", "what is measured", "what it takes", "passes", "where exact", "when absent"):
        table.add_column(head, justify="right" if head == "passes" else "left", no_wrap=head == "measure")
    for row in found:
        table.add_row(row.name, row.title, row.takes, row.cost, row.exact, row.absent)
    print_table(table)
