"""Agreement: how far apart two trajectories are, in absolute terms and in standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from tiltmeter.arguments import A_RUN, checked_kind
from tiltmeter.leaders.exact import exact_curve
from tiltmeter.over_seeds import over_seeds
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText

How = Literal["evaluated", "interpolated", "same times"]
_HOWS: dict[How, str] = {
    "evaluated": "with exact values at the times of the second",
    "interpolated": "with the first interpolated to the times of the second",
    "same times": "at the times of both",
}


@dataclass(frozen=True)
class CurveAgreement:
    """The distance of one curve: largest and root mean square, absolute and in standard errors (NaN: not known)."""

    curve: str
    largest: float
    rms: float
    largest_in_se: float
    rms_in_se: float
    count: int
    how: How


@dataclass(frozen=True)
class Agreement(NotebookText):
    """The distances of all curves that two trajectories share."""

    rows: tuple[CurveAgreement, ...]

    def __getitem__(self, curve: str) -> CurveAgreement:
        for row in self.rows:
            if row.curve == curve:
                return row
        raise KeyError(f"No curve {curve!r} was compared. There are: {', '.join(r.curve for r in self.rows)}.")

    def __str__(self) -> str:
        worst = max(self.rows, key=lambda row: row.largest)
        text = f"The largest distance is {worst.largest:.3g}, in {worst.curve}"
        known = [row for row in self.rows if np.isfinite(row.largest_in_se)]
        if known:
            far = max(known, key=lambda row: row.largest_in_se)
            text += f"; in standard errors {far.largest_in_se:.3g}, in {far.curve}"
        parts = []
        for how in dict.fromkeys(row.how for row in self.rows):
            count = sum(row.how == how for row in self.rows)
            parts.append(f"{count} curve{'' if count == 1 else 's'} {_HOWS[how]}")
        return f"{text}. Compared: {'; '.join(parts)}."


def agreement(a: Trajectory, b: Trajectory, *curves: str) -> Agreement:
    """Return the distance of `a` from `b` at the times of `b`, for every curve they share (or for those named).

    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> problem, sgd, times = cases.centred_crossing()
    >>> agreement(predict(problem, sgd, times), predict(problem, sgd, [1.0, 2.0]))["loss"].largest
    0.0

    Exact theory in `a` is evaluated at those times; anything else is interpolated in log time within the common range.
    Each row says which. Seeds are averaged. Standard errors come from the scatter over seeds, or from curves
    `<name>_se`.

    Args:
        a: Run that is compared; exact theory is evaluated at the times of `b`.
        b: Run whose times count.
        *curves: Curves to compare; none: all that both have.
    """
    for name, run in (("a", a), ("b", b)):
        checked_kind(name, run, Trajectory, A_RUN)
    if a.clock != b.clock:
        raise ValueError(
            f'The clocks differ: "{a.clock}" and "{b.clock}". Convert one with `on_clock`, as in '
            f'`trajectory.on_clock("{a.clock}", d=...)`.'
        )
    names = curves or tuple(name for name in b if name in a and not name.endswith("_se"))
    if not names:
        raise ValueError(f"The trajectories share no curve: {', '.join(a)} against {', '.join(b)}.")
    return Agreement(tuple(_compare(a, b, name) for name in names))


def _compare(a: Trajectory, b: Trajectory, name: str) -> CurveAgreement:
    one, two = a[name], b[name]
    definitions = [curve.attrs.get("definition") for curve in (one, two)]
    if None not in definitions and definitions[0] != definitions[1]:
        raise ValueError(
            f"Curve {name!r} has two definitions, {definitions[0]} and {definitions[1]}: they cannot be compared."
        )
    value_b, error_b = _mean(b, name, two)
    value_a, error_a, how = _at(a, name, value_b.coords["time"].values)
    times = value_a.coords["time"].values
    value_b = value_b.sel(time=times)
    try:
        value_a, value_b = xr.align(value_a, value_b, join="exact")
    except ValueError:
        raise ValueError(
            f"Curve {name!r} has different labels in the two: {_labels(value_a)} against {_labels(value_b)}."
        ) from None
    distance = abs(value_a - value_b)
    squared = sum(
        (e.sel(time=times) if e.sizes["time"] != len(times) else e) ** 2 for e in (error_a, error_b) if e is not None
    )
    in_se = np.full(1, np.nan)
    if isinstance(squared, xr.DataArray):
        error = squared**0.5
        ratio = (distance / error.where(error > 0)).values
        in_se = ratio[np.isfinite(ratio)] if np.isfinite(ratio).any() else in_se
    known = distance.values[np.isfinite(distance.values)]
    if known.size == 0:
        raise ValueError(f"Curve {name!r} has no value at a time where both trajectories have one.")
    return CurveAgreement(
        curve=name,
        largest=float(known.max()),
        rms=float(np.sqrt(np.mean(known**2))),
        largest_in_se=float(in_se.max()),
        rms_in_se=float(np.sqrt(np.mean(in_se**2))),
        count=int(known.size),
        how=how,
    )


def _mean(trajectory: Trajectory, name: str, curve: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray | None]:
    if "seed" in curve.dims:
        mean, error = over_seeds(curve)
        return mean, error if curve.sizes["seed"] > 1 else None
    return curve, trajectory.get(f"{name}_se")


def _at(a: Trajectory, name: str, times: np.ndarray) -> tuple[xr.DataArray, xr.DataArray | None, How]:
    exact = exact_curve(a, name) if "seed" not in a[name].dims else None
    if exact is not None:
        return exact(times), None, "evaluated"
    value, error = _mean(a, name, a[name])
    own = value.coords["time"].values
    if np.isin(times, own).all():
        return value.sel(time=times), None if error is None else error.sel(time=times), "same times"
    inside = times[(times >= max(own[0], np.nextafter(0.0, 1.0))) & (times <= own[-1])]
    positive = own > 0
    if inside.size == 0 or positive.sum() < 2:
        raise ValueError(f"Curve {name!r} has no time within the range of the other run.")

    def interpolated(curve: xr.DataArray) -> xr.DataArray:
        logs = curve.isel(time=positive)
        moved = logs.assign_coords(time=np.log(own[positive])).interp(time=np.log(inside))
        return moved.assign_coords(time=inside)

    return interpolated(value), None if error is None else interpolated(error), "interpolated"


def _labels(curve: xr.DataArray) -> str:
    return ", ".join(f"{dim} {list(curve.coords[dim].values)}" for dim in curve.dims if dim != "time") or "none"
