"""Standing: who is shown to be better off, in which curve and when, at one error rate for all of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import comb

import numpy as np
import xarray as xr

from tiltmeter.analysis.difference import ALL, Difference
from tiltmeter.analysis.forecast_standing import forecast_bands
from tiltmeter.analysis.kept_points import JUDGED, KeptPoints, kept_points
from tiltmeter.analysis.look_facts import diverged_at, looked_at
from tiltmeter.analysis.pairs import AskedPair, Pair, groups_of, resolution, the_pair
from tiltmeter.analysis.simultaneous.band import Band
from tiltmeter.analysis.simultaneous.bands import bands
from tiltmeter.analysis.simultaneous.contrasts import against_all, pairs
from tiltmeter.analysis.simultaneous.point_curve import FEWEST, PointCurve
from tiltmeter.analysis.simultaneous.recorded_errors import recorded_errors
from tiltmeter.analysis.simultaneous.seed_bands import seed_bands
from tiltmeter.analysis.simultaneous.two_way import FEWEST_SEEDS, two_way
from tiltmeter.analysis.statements import Basis, Scope, Standing
from tiltmeter.forecast.bands.kind import kind_of
from tiltmeter.forecast.horizon import UNTESTED, noted_horizon
from tiltmeter.names import better_of
from tiltmeter.record.trajectory import Trajectory

#: From this many groups on, each is compared with the mean of all instead of with every other group.
MANY = 6
#: Groups with fewer points than this are tested, with a note that they are small.
FEW = 50


def standing(
    trajectory: Trajectory,
    *curves: str,
    pair: AskedPair | None = None,
    level: float = 0.05,
    every_pair: bool | None = None,
) -> Standing:
    """Test who is better off in these curves (default: loss, error, positive_rate, tpr, fpr), and when.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> rng = np.random.default_rng(0)
    >>> coords = {"time": [0, 10], "group": ("point", ["a", "b"] * 200)}
    >>> losses = rng.normal(size=(2, 400)) - np.outer([0, 1], [1, 0] * 200)
    >>> means = losses.reshape(2, 200, 2).mean(1)
    >>> loss = xr.DataArray(means, dims=("time", "group"), coords={"time": [0, 10], "group": ["a", "b"]})
    >>> kept = xr.DataArray(losses, dims=("time", "point"), coords=coords)
    >>> print(standing(Trajectory({"loss": loss}, "step", Origin("training"), points={"loss": kept})))
    In this run (all 2 looks, one curve together, 5 %): a has the lower loss at step 10; before, no difference is shown
    and it is at most 0.36.

    A probe keeps the loss and the decision of every point. From these, bands are computed that hold at all looks, for
    all pairs of groups and in all chosen curves together, with probability 1 - `level`. So any of the statements may be
    quoted alone. With one run the statements are about this run, with two to four seeds about these runs, with five or
    more about the recipe (points and seeds together). Up to five groups are compared pair by pair; from six on, each is
    compared with the mean of all. `every_pair` True or False chooses one or the other. With `pair=` only these two are
    compared, and the error rate holds for them alone: choose them before looking at the data.

    A forecast is judged by its calibrated band (see `forecast_band`), at 10 % or, if it is larger, at `level`, and for
    each curve by itself; where the band contains zero the forecast names no leader.

    "No difference shown" is not "no difference": the bound says what is ruled out. Without kept points, recorded
    standard errors are used with Bonferroni's correction; the limits are then wider, and the text says so. The error
    rate does not hold for points that were also used to choose when to stop or which run to take.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` should lie strictly between 0 and 1. Found level = {level}.")
    names = _names(trajectory, curves)
    if pair is None:
        return _standing(trajectory, names, None, level, every_pair)
    found = _standing(trajectory, names, the_pair(trajectory[names[0]], pair), level, every_pair)
    return replace(found, one_of=comb(len(groups_of(trajectory[names[0]])), 2))


def _standing(
    trajectory: Trajectory, names: Sequence[str], pair: Pair | None, level: float, every_pair: bool | None
) -> Standing:
    ended = diverged_at(trajectory)
    if ended is not None:
        why = f"The run diverged at {trajectory.clock} {ended:.4g}, so no leader is named"
        return Standing((), level, "run", "points", 0, {}, (why,))
    if looked_at(trajectory).get("weighted"):
        why = "it is not judged, since its points are weighted"
        return Standing((), level, "run", "points", 0, dict.fromkeys(names, why))
    if (forecast := _of_forecast(trajectory, names, pair, level, every_pair)) is not None:
        return forecast
    found = _of_run(trajectory, names, pair, level, every_pair)
    if trajectory.origin.source != "forecast":
        return found
    note = f"This is a forecast without a calibrated band ({kind_of(trajectory)[1]}): its own errors are not covered"
    return replace(found, notes=(*found.notes, note))


def _of_run(
    trajectory: Trajectory, names: Sequence[str], pair: Pair | None, level: float, every_pair: bool | None
) -> Standing:
    kept = kept_points(trajectory)
    own = [name for name in names if kept is not None and kept.named([name])]
    if kept is not None and own:
        found = _of_points(trajectory, kept, own, pair, level, every_pair)
        left = [name for name in names if name not in own]
        reasons = {**found.reasons, **dict.fromkeys(left, "it is not judged, since it was not kept point by point")}
        return Standing(found.differences, level, found.scope, "points", found.looks, reasons, found.notes)
    return _of_curves(trajectory, names, pair, level, every_pair)


def _of_points(
    trajectory: Trajectory,
    kept: KeptPoints,
    names: Sequence[str],
    pair: Pair | None,
    level: float,
    every_pair: bool | None,
) -> Standing:
    chosen = kept.named(names)
    asked = {}
    labels: list[tuple[Hashable, Hashable]] = []
    for curve in chosen:
        counts = np.where(curve.judged(kept.codes, len(kept.groups)), curve.counts(kept.codes, len(kept.groups)), 0)
        asked[curve.name], labels = _contrasts(kept.groups, counts, pair, every_pair)
    if kept.seeds > 1:
        found = two_way(chosen, kept.codes, asked, level, recipe=kept.seeds >= FEWEST_SEEDS)
        scope: Scope = "recipe" if kept.seeds >= FEWEST_SEEDS else "runs"
    else:
        found, scope = bands([_single(curve) for curve in chosen], kept.codes, asked, level), "run"
    differences = _differences(trajectory, found, labels, dict.fromkeys(names, kept.times))
    reasons, notes = _small(kept, chosen)
    return Standing(differences, level, scope, "points", len(kept.times), reasons, notes)


def _of_forecast(
    trajectory: Trajectory, names: Sequence[str], pair: Pair | None, level: float, every_pair: bool | None
) -> Standing | None:
    """Return the same for a forecast, from its calibrated band; None for anything else."""
    if trajectory.origin.source != "forecast":
        return None
    groups = tuple(groups_of(trajectory[names[0]]))
    contrasts, labels = _contrasts(groups, np.ones(len(groups)), pair, every_pair)
    found = forecast_bands(trajectory, names, contrasts, level)
    if found is None:
        return None
    bands_of, used = found
    times = {name: trajectory[name].coords["time"].values for name in bands_of}
    differences = _differences(trajectory, bands_of, labels, times)
    left = [name for name in names if name not in bands_of]
    reasons = dict.fromkeys(left, "it is not judged, since bands of it are not calibrated")
    silent: dict[Pair, list[str]] = {}
    for one in differences:
        if one.sign[-1] == 0:
            silent.setdefault(one.pair, []).append(one.curve)
    notes = tuple(
        f"At the last step the forecast names no leader of {a} and {b} in {', '.join(curves)}: its band contains zero"
        for (a, b), curves in silent.items()
    )
    noted = noted_horizon(trajectory)
    if noted is not None and not noted.linear_tested:
        notes = (*notes, UNTESTED)
    return Standing(differences, used, "run", "forecast", max(map(len, times.values())), reasons, notes)


def _of_curves(
    trajectory: Trajectory, names: Sequence[str], pair: Pair | None, level: float, every_pair: bool | None
) -> Standing:
    """Return the same from recorded standard errors, from the scatter over seeds, or from values without errors."""
    found: dict[str, Band] = {}
    times: dict[str, np.ndarray] = {}
    reasons: dict[str, str] = {}
    labels: list[tuple[Hashable, Hashable]] = []
    basis: Basis = "values"
    shapes = [trajectory[name].sizes for name in names]
    seeds = max(len(_array(trajectory, trajectory[name])) for name in names)
    for name in names:
        curve = trajectory[name]
        groups = tuple(groups_of(curve))
        contrasts, labels = _contrasts(groups, np.ones(len(groups)), pair, every_pair)
        values = _array(trajectory, curve)
        # A forecast is computed without noise; its horizon says how far to trust it.
        error = None if trajectory.origin.source == "forecast" else trajectory.get(f"{name}_se")
        errors = None if error is None else _array(trajectory, error.sel(time=curve.coords["time"]))
        times[name] = curve.coords["time"].values
        statements = sum(shape["time"] for shape in shapes) * len(contrasts)
        if errors is None and len(values) >= FEWEST_SEEDS:
            basis, found[name] = "seeds", seed_bands(values, contrasts, level / len(names))
        elif errors is not None or len(values) > 1:
            basis = "seeds" if errors is None else "standard errors"
            found[name] = recorded_errors(values, errors, contrasts, level, statements)
        elif looked_at(trajectory):
            reasons[name] = "it is not judged, since no errors of it are known"
        else:
            gap = values[0] @ contrasts.T
            found[name] = Band(gap, gap - resolution(curve), gap + resolution(curve))
    scope: Scope = "recipe" if seeds >= FEWEST_SEEDS or basis == "seeds" else "runs" if seeds > 1 else "run"
    notes: tuple[str, ...] = ()
    if basis == "standard errors":
        notes = ("No points were kept: limits come from standard errors with Bonferroni's correction, which is wider",)
    differences = _differences(trajectory, found, labels, times)
    return Standing(differences, level, scope, basis, max(shape["time"] for shape in shapes), reasons, notes)


def _differences(
    trajectory: Trajectory,
    found: Mapping[str, Band],
    labels: Sequence[tuple[Hashable, Hashable]],
    times: Mapping[str, np.ndarray],
) -> tuple[Difference, ...]:
    return tuple(
        Difference(
            name,
            better_of(name, trajectory[name]) if name in trajectory else "lower",
            label,
            trajectory.clock,
            np.asarray(times[name], dtype=float),
            *(np.ascontiguousarray(part[:, place]) for part in (band.gap, band.lower, band.upper)),
        )
        for name, band in found.items()
        for place, label in enumerate(labels)
    )


def _contrasts(
    groups: tuple[Hashable, ...], counts: np.ndarray, pair: Pair | None, every_pair: bool | None
) -> tuple[np.ndarray, list[tuple[Hashable, Hashable]]]:
    """Return the rows of weights and the names that each compares."""
    if pair is not None:
        row = np.zeros((1, len(groups)))
        row[0, groups.index(pair[0])], row[0, groups.index(pair[1])] = 1.0, -1.0
        return row, [(pair[0], pair[1])]
    if len(groups) > 2 and (len(groups) >= MANY if every_pair is None else not every_pair):
        enough = counts if (counts > 0).sum() > 1 else np.ones(len(groups))
        return against_all(enough), [(group, ALL) for group in groups]
    rows = pairs(len(groups))
    return rows, [(groups[int(np.argmax(row))], groups[int(np.argmin(row))]) for row in rows]


def _names(trajectory: Trajectory, curves: tuple[str, ...]) -> list[str]:
    if not curves:
        curves = tuple(name for name in JUDGED if name in trajectory and "group" in trajectory[name].dims)
        if not curves:
            raise ValueError(f"There is none of the curves {', '.join(JUDGED)} with groups: name the curves to judge.")
    for name in dict.fromkeys(curves):
        values = trajectory[name]
        if len(groups_of(values)) < 2:
            raise ValueError("There is one group only: nothing to compare.")
        if better_of(name, values) == "neither":
            raise ValueError(f"Curve {name!r} is neither better high nor better low, so no group leads in it.")
        extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
        if extra:
            raise ValueError(f"`standing` is for one run; select one point of {', '.join(extra)} first.")
        if not values.sizes["time"]:
            raise ValueError(f"Curve {name!r} has no looks: nothing is recorded yet.")
    return list(dict.fromkeys(curves))


def _array(trajectory: Trajectory, curve: xr.DataArray) -> np.ndarray:
    """(seeds, looks, groups) of the seeds that did not diverge."""
    if "seed" not in curve.dims:
        curve = curve.expand_dims("seed")
    elif trajectory.diverged is not None and "seed" in trajectory.diverged.dims:
        curve = curve.isel(seed=np.flatnonzero(trajectory.diverged.isnull().values))
    return np.asarray(curve.transpose("seed", "time", "group").values, dtype=float)


def _single(curve: PointCurve) -> PointCurve:
    return replace(curve, values=curve.values[0]) if curve.values.ndim == 3 else curve


def _named(group: Hashable) -> str:
    """A group as text; the attributes of an intersection are joined."""
    return " & ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def _small(kept: KeptPoints, chosen: Sequence[PointCurve]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return which groups are not tested, and which are small."""
    reasons: dict[str, str] = {}
    few: dict[str, int] = {}
    for curve in chosen:
        counts = curve.counts(kept.codes, len(kept.groups))
        for group, count, judged in zip(kept.groups, counts, curve.judged(kept.codes, len(kept.groups)), strict=True):
            if not judged:
                need = "no such points" if curve.rate else f"fewer than {FEWEST} points"
                reasons[f"{curve.name} of {_named(group)}"] = f"it is not judged, with {need}"
            elif count < FEW:
                few[_named(group)] = min(int(count), few.get(_named(group), FEW))
    told = ", ".join(f"{group} has {count}" for group, count in few.items())
    return reasons, (f"Few points: {told} in at least one curve",) if few else ()
