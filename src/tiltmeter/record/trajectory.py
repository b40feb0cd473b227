"""Trajectory: the one data type. An immutable mapping from curve name to labelled array over time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, cast

import numpy as np
import pandas as pd
import xarray as xr

from tiltmeter.arguments import checked_kind, checked_list
from tiltmeter.record.labelled import JSON, array_from_json, array_to_json
from tiltmeter.record.origin import Origin
from tiltmeter.record.points import HeldPoints, Points, join_points
from tiltmeter.shown_text import visible


class LazyCurves(Mapping[str, xr.DataArray]):
    """Curves by name, each given as an array or as a function that computes it once.

    >>> def gap():
    ...     print("computed now")
    ...     return xr.DataArray([0.5, 0.25], dims="time")
    >>> curves = LazyCurves({"loss_gap": gap})
    >>> list(curves)
    ['loss_gap']
    >>> curves["loss_gap"].values
    computed now
    array([0.5 , 0.25])
    >>> curves["loss_gap"].values
    array([0.5 , 0.25])

    A function may be called twice by two threads at once, so it should always return the same values.
    """

    __slots__ = ("_curves",)

    def __init__(self, curves: Mapping[str, xr.DataArray | Callable[[], xr.DataArray]]) -> None:
        self._curves = dict(curves)

    def __getitem__(self, name: str) -> xr.DataArray:
        found = self._curves[name]
        if not isinstance(found, xr.DataArray):
            found = self._curves[name] = found()
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._curves

    def __iter__(self) -> Iterator[str]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def changed(self, change: Callable[[str, xr.DataArray], xr.DataArray]) -> LazyCurves:
        """Return the curves after `change(name, curve)`, which is called at the first use of a curve."""

        def make(name: str) -> xr.DataArray:
            return change(name, self[name])

        return LazyCurves({name: partial(make, name) for name in self})


#: "progress" is the share of the fall of the pooled held-out loss, from 0 at the first evaluation to 1 at its minimum.
Clock: TypeAlias = Literal["t", "step", "epoch", "round", "progress"]
CLOCKS: tuple[Clock, ...] = ("t", "step", "epoch", "round", "progress")


class Evaluate(Protocol):
    """Evaluates an exact trajectory at other times: all of its curves, or those named."""

    def __call__(self, times: Any, curves: Iterable[str] | None = None) -> Trajectory: ...


class Trajectory(Mapping[str, xr.DataArray]):
    """Curves over training, each with its own time coordinate, and what made them.

    >>> loss = xr.DataArray([[0.5, 0.5], [0.2, 0.4]], dims=("time", "group"),
    ...                     coords={"time": [0.0, 1.0], "group": ["+", "-"]})
    >>> trajectory = Trajectory({"loss": loss}, clock="t", origin=Origin("theory"))
    >>> float(trajectory["loss"].sel(group="-", time=1.0))
    0.4
    >>> trajectory
    <Trajectory theory, clock t, 1 curve>
      loss  (time: 2, group: 2)  time 0 .. 1

    Theory, simulation, forecast and training all return one; analysis, plots and reports consume it.
    Selecting and averaging are xarray's: `trajectory["loss"].sel(group="+").mean("seed")`.

    Every curve has `time` as its first dimension. `evaluate`, set by exact theory, returns the same curves, or those
    named, at other times: `trajectory.evaluate([1.0], curves=("loss",))`; it is neither stored nor compared.
    `LazyCurves` are computed at their first use.

    Points are not compared by `==` (compare `a.points == b.points`). `save` stores them, `load` returns them without
    reading them, `stack` joins them over the evaluations that all runs kept, `on_clock` and `replace` keep them,
    `to_json` leaves them out.

    Args:
        curves: Arrays by name, with `time` as their first dimension.
        clock: What time counts: "t" (steps / d), "step", "epoch", "round" or "progress" (of a preview, 0 to 1).
        origin: What made the curves.
        diverged: Time of divergence per seed or grid point, NaN where nothing diverged; None: nothing did.
        evaluate: Returns the same curves at other times, set by exact theory; neither stored nor compared.
        points: Arrays with one value per point at each kept evaluation; read only when used.
    """

    __slots__ = ("_curves", "clock", "diverged", "evaluate", "origin", "points")
    _curves: Mapping[str, xr.DataArray]
    clock: Clock
    origin: Origin
    diverged: xr.DataArray | None
    evaluate: Evaluate | None
    points: Points

    def __init__(
        self,
        curves: Mapping[str, xr.DataArray],
        clock: Clock,
        origin: Origin,
        diverged: xr.DataArray | None = None,
        evaluate: Evaluate | None = None,
        points: Mapping[str, xr.DataArray] | None = None,
    ) -> None:
        if clock not in CLOCKS:
            raise ValueError(
                f'`clock` should be one of "t", "step", "epoch", "round", "progress". Found clock = {clock!r}.'
            )
        if not isinstance(origin, Origin):
            raise TypeError(f"`origin` should be an Origin. Found {type(origin).__name__}.")
        object.__setattr__(self, "_curves", _changed(curves, _freeze))
        object.__setattr__(self, "clock", clock)
        object.__setattr__(self, "origin", origin)
        if diverged is not None and not isinstance(diverged, xr.DataArray):
            raise TypeError(f"`diverged` should be an xarray.DataArray. Found {type(diverged).__name__}.")
        object.__setattr__(self, "diverged", None if diverged is None else _read_only(diverged))
        object.__setattr__(self, "evaluate", evaluate)
        held = (
            points
            if isinstance(points, Points)
            else Points({str(name): HeldPoints(_freeze(str(name), array)) for name, array in (points or {}).items()})
        )
        object.__setattr__(self, "points", held)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A Trajectory is immutable: build a new one instead.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("A Trajectory is immutable: build a new one instead.")

    def __getitem__(self, name: str) -> xr.DataArray:
        if name not in self._curves:
            raise KeyError(f"No curve {name!r}. There are: {', '.join(self._curves) or 'none'}.")
        return self._curves[name]

    def __contains__(self, name: object) -> bool:
        return name in self._curves

    def __iter__(self) -> Iterator[str]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectory):
            return NotImplemented
        return (
            self.clock == other.clock
            and self.origin == other.origin
            and list(self) == list(other)
            and all(self[name].equals(other[name]) for name in self)
            and _same(self.diverged, other.diverged)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays: compares by value

    def __reduce__(self) -> tuple[Any, ...]:
        # Only for passing a value to another process; nothing is stored or loaded this way.
        return (Trajectory, (dict(self), self.clock, self.origin, self.diverged, None, self.points))

    def to_frame(self) -> pd.DataFrame:
        """One row for each time, group and seed, one column for each curve over these.

        >>> loss = xr.DataArray([[0.5, 0.4]], dims=("time", "group"), coords={"time": [0], "group": ["a", "b"]})
        >>> Trajectory({"loss": loss}, "step", Origin("training")).to_frame().to_dict("records")[1]
        {'time': 0, 'group': 'b', 'loss': 0.4}
        """
        import pandas as pd

        dims: tuple[str, ...] = ("time", "group", "seed")
        kept = xr.Dataset({name: curve for name, curve in self.items() if set(curve.dims) <= set(dims)})
        dims = tuple(dim for dim in dims if dim in kept.dims)
        places = np.meshgrid(*(np.arange(kept.sizes[dim]) for dim in dims), indexing="ij")
        columns = {dim: kept.coords[dim].values[place.ravel()] for dim, place in zip(dims, places, strict=True)}
        shown = xr.broadcast(*kept.data_vars.values())
        values = {str(curve.name): curve.transpose(*dims).values.ravel() for curve in shown}
        return pd.DataFrame({name: list(column) for name, column in columns.items()} | values)

    def replace(self, curves: Mapping[str, xr.DataArray], evaluate: Evaluate | None = None) -> Trajectory:
        """The same clock and origin with other curves."""
        return Trajectory(curves, self.clock, self.origin, self.diverged, evaluate, self.points)

    def to_dataset(self, *names: str) -> xr.Dataset:
        """The named curves (default: all) as one Dataset; they must share one time coordinate."""
        chosen = {name: self[name] for name in (names or self)}
        times = [curve.coords["time"].values for curve in chosen.values()]
        if any(not np.array_equal(times[0], other) for other in times[1:]):
            spans = "; ".join(f"{name} has {curve.sizes['time']} times" for name, curve in chosen.items())
            raise ValueError(f"These curves do not share one time coordinate: {spans}. Name those that do.")
        return xr.Dataset(chosen, attrs={"clock": self.clock, "source": self.origin.source})

    def to_dataframe(self) -> pd.DataFrame:
        """Long format: one row per value, columns curve, time, every dimension that occurs, value."""
        parts = []
        for name, curve in self.items():
            plain = curve.drop_vars([c for c in curve.coords if c not in curve.dims])
            frame = plain.rename("value").to_dataframe().reset_index()
            frame.insert(0, "curve", name)
            parts.append(frame)
        if not parts:
            return pd.DataFrame(columns=["curve", "time", "value"])
        table = pd.concat(parts, ignore_index=True)
        return table[[c for c in table.columns if c != "value"] + ["value"]]

    def to_json(self) -> dict[str, JSON]:
        """Plain JSON that `from_json` reads back to an equal trajectory."""
        return {
            "clock": self.clock,
            "origin": self.origin.to_json(),
            "diverged": None if self.diverged is None else array_to_json(self.diverged),
            "curves": {name: array_to_json(curve) for name, curve in self.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Trajectory:
        return cls(
            curves={name: array_from_json(curve) for name, curve in value["curves"].items()},
            clock=value["clock"],
            origin=Origin.from_json(value["origin"]),
            diverged=None if value.get("diverged") is None else array_from_json(value["diverged"]),
        )

    def on_clock(self, clock: Clock, *, d: float | None = None, steps_per_epoch: float | None = None) -> Trajectory:
        """Return the same curves on another clock: t = step/d, epoch = step/steps_per_epoch.

        >>> loss = xr.DataArray([0.5, 0.2], dims="time", coords={"time": [0.0, 2.0]})
        >>> run = Trajectory({"loss": loss}, clock="t", origin=Origin("theory"))
        >>> run.on_clock("step", d=100)["loss"].time.values
        array([  0., 200.])
        """
        if clock == self.clock:
            return self
        steps = {"t": d, "step": 1.0, "epoch": steps_per_epoch}
        if "progress" in (clock, self.clock):
            raise ValueError(
                f'Progress is a share of the fall of the loss: there is no fixed way from "{self.clock}" to "{clock}". '
                "A preview says its steps by `on_steps`."
            )
        if "round" in (clock, self.clock):
            raise ValueError(f'Rounds of boosting are no steps: there is no way from "{self.clock}" to "{clock}".')
        if clock not in steps:
            raise ValueError(f'`clock` should be one of "t", "step", "epoch". Found clock = {clock!r}.')
        for side in (self.clock, clock):
            if steps[side] is None:
                missing = "d" if side == "t" else "steps_per_epoch"
                raise ValueError(f'To go from clock "{self.clock}" to "{clock}", pass {missing}=.')
            if not cast(float, steps[side]) > 0:
                raise ValueError(f"A clock needs a positive number of steps. Found {steps[side]}.")
        factor = cast(float, steps[self.clock]) / cast(float, steps[clock])

        def convert(_: str, curve: xr.DataArray) -> xr.DataArray:
            return curve.assign_coords(time=curve.coords["time"] * factor)

        inner = self.evaluate

        def again(times: Any, curves: Iterable[str] | None = None) -> Trajectory:
            assert inner is not None
            return inner(np.asarray(times) / factor, curves).on_clock(clock, d=d, steps_per_epoch=steps_per_epoch)

        return Trajectory(
            _changed(self._curves, convert),
            clock,
            self.origin,
            None if self.diverged is None else self.diverged * factor,
            None if inner is None else again,
            self.points.with_times_scaled(factor),
        )

    def __repr__(self) -> str:
        count = f"{len(self)} curve" + ("" if len(self) == 1 else "s")
        lines = [f"<Trajectory {self.origin.source}, clock {self.clock}, {count}>"]
        width = max((len(name) for name in self), default=0)
        lines += [f"  {name:<{width}}  {_shape(curve)}  {_span(curve)}" for name, curve in self.items()]
        if self.diverged is not None:
            lines.append(f"  diverged: {int(np.isfinite(self.diverged.values).sum())} of {self.diverged.size}")
        if self.points:
            lines.append(f"  points: {', '.join(self.points)}")
        return visible("\n".join(lines))

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td style='text-align:left'><b>{escape(name)}</b></td>"
            f"<td style='text-align:left'>{escape(str(curve.attrs.get('long_name', '')))}</td>"
            f"<td>{escape(_shape(curve))}</td><td>{escape(_span(curve))}</td></tr>"
            for name, curve in self.items()
        )
        return (
            f"<div>{'' if NotebookCard.of is None else NotebookCard.of(self)}"
            f"<p><b>Trajectory</b> from {escape(self.origin.source)}, clock <i>{self.clock}</i>, "
            f"tiltmeter {escape(self.origin.version)}</p>"
            f"<table><tr><th>curve</th><th>meaning</th><th>dimensions</th><th>time</th></tr>{rows}</table></div>"
        )


class NotebookCard:
    """What a notebook shows above the table of curves: set by `leaders` when it is first used, which lies above."""

    of: ClassVar[Callable[[Trajectory], str] | None] = None


def stack(
    trajectories: Sequence[Trajectory], dim: str = "seed", labels: Sequence[Hashable] | None = None
) -> Trajectory:
    """Join runs of the same experiment into one trajectory with one more dimension (default: `seed`).

    >>> loss = xr.DataArray([0.5, 0.2], dims="time", coords={"time": [0, 10]})
    >>> runs = [Trajectory({"loss": loss}, "step", Origin("training", seeds=(seed,))) for seed in (3, 4)]
    >>> stack(runs)["loss"].coords["seed"].values
    array([3, 4])

    Points are joined at their first use, over the evaluations that all runs kept; those that not all runs kept in the
    same shape are left out.

    Args:
        trajectories: Runs of the same experiment.
        dim: Name of the new dimension.
        labels: Labels along it; None: the seeds of the runs if each has exactly one, else 0, 1, 2, ...
    """
    checked_kind("dim", dim, str, "the name of a dimension")
    if labels is not None:
        labels = checked_list("labels", labels, "a list of labels")
    trajectories = checked_list("trajectories", trajectories, "a list of trajectories")
    for one in trajectories:
        checked_kind("trajectories", one, Trajectory, "a list of trajectories")
    if not trajectories:
        raise ValueError("`stack` needs at least one trajectory.")
    first = trajectories[0]
    for other in trajectories[1:]:
        if other.clock != first.clock:
            raise ValueError(f'Cannot stack clocks "{first.clock}" and "{other.clock}": convert one with `on_clock`.')
        if set(other) != set(first):
            raise ValueError(
                f"Cannot stack runs with different curves: {', '.join(sorted(set(first) ^ set(other)))} "
                "occurs in some only."
            )
    seeds = tuple(seed for trajectory in trajectories for seed in trajectory.origin.seeds)
    if labels is None:
        own = all(len(trajectory.origin.seeds) == 1 for trajectory in trajectories) and len(set(seeds)) == len(seeds)
        labels = seeds if own else range(len(trajectories))
    if len(labels) != len(trajectories):
        raise ValueError(f"`labels` should name every run. Found {len(labels)} labels for {len(trajectories)} runs.")
    index = pd.Index(list(labels), name=dim, tupleize_cols=False)
    curves = {}
    for name in first:
        arrays = [trajectory[name] for trajectory in trajectories]
        if dim in arrays[0].dims:
            raise ValueError(f"Curve {name!r} already has a dimension {dim!r}.")
        joined = xr.concat(
            arrays, dim=index, join="outer", combine_attrs="override", coords="minimal", compat="override"
        )
        curves[name] = joined.transpose(*arrays[0].dims, dim)
    times = [
        xr.DataArray(np.nan) if trajectory.diverged is None else trajectory.diverged for trajectory in trajectories
    ]
    diverged = None
    if any(trajectory.diverged is not None for trajectory in trajectories):
        diverged = xr.concat(times, dim=index, coords="minimal", compat="override", join="outer")
    points = join_points([trajectory.points for trajectory in trajectories], dim, tuple(labels))
    return Trajectory(curves, first.clock, replace(first.origin, seeds=seeds), diverged, points=points)


def _changed(
    curves: Mapping[str, xr.DataArray], change: Callable[[str, xr.DataArray], xr.DataArray]
) -> Mapping[str, xr.DataArray]:
    if isinstance(curves, LazyCurves):
        return curves.changed(change)
    return {str(name): change(str(name), curve) for name, curve in curves.items()}


def _freeze(name: str, curve: xr.DataArray) -> xr.DataArray:
    if not isinstance(curve, xr.DataArray):
        raise TypeError(f"Curve {name!r} should be an xarray.DataArray. Found {type(curve).__name__}.")
    if not curve.dims or curve.dims[0] != "time" or "time" not in curve.coords:
        raise ValueError(
            f"Curve {name!r} should have `time` as its first dimension, with coordinates. Found dims {curve.dims}."
        )
    times = curve.coords["time"].values
    if times.dtype.kind not in "fiu" or not np.isfinite(times).all() or (times[1:] <= times[:-1]).any():
        raise ValueError(f"The times of curve {name!r} should be finite and strictly increasing.")
    if curve.dtype.kind not in "fiub":
        raise TypeError(f"Curve {name!r} should hold numbers. Found values of type {curve.dtype}.")
    return _read_only(curve).rename(name)


def _read_only(array: xr.DataArray) -> xr.DataArray:
    # Arrays that the caller could still change are copied once, so that a trajectory never changes.
    values = array.values.copy() if array.values.flags.writeable else array.values
    values.flags.writeable = False
    return array.copy(deep=False, data=values)


def _same(a: xr.DataArray | None, b: xr.DataArray | None) -> bool:
    return a is b if a is None or b is None else a.equals(b)


def _shape(curve: xr.DataArray) -> str:
    return "(" + ", ".join(f"{dim}: {size}" for dim, size in curve.sizes.items()) + ")"


def _span(curve: xr.DataArray) -> str:
    times = curve.coords["time"].values
    return f"time {times[0]:.4g} .. {times[-1]:.4g}" if len(times) else "no evaluations"
