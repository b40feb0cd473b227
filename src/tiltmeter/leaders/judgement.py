"""Judgement: the differences of groups in the chosen curves, with limits that hold together at one error rate."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import xarray as xr

from tiltmeter.leaders.bands import Band, bands
from tiltmeter.leaders.difference import ALL, Difference
from tiltmeter.leaders.headline import term
from tiltmeter.leaders.points import (
    FEWEST,
    KeptPoints,
    PointCurve,
    against_all,
    diverged_at,
    few_held_out,
    held_out_facts,
    kept_points,
    pairs,
)
from tiltmeter.leaders.promised_gaps import gap_band
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS, recorded_errors, seed_bands, two_way
from tiltmeter.names import better_of
from tiltmeter.pairs import Pair, groups_of, resolution
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import group_name

#: The source of the limits.
Basis = Literal["points", "standard errors", "seeds", "values", "forecast", "exact"]
#: What the statements are about: the networks that were trained, or all seeds of their settings.
Scope = Literal["run", "runs", "recipe"]
#: From this many groups on, each is compared with the mean of all instead of with every other group.
MANY = 6
TOO_FEW = f"it is not judged, with fewer than {FEWEST} such points"
#: Groups with fewer points than this are tested, with a note that they are small.
FEW = 50
#: How a note begins that names groups without a verdict.
NOT_JUDGED = "Not judged"


@dataclass(frozen=True, eq=False)
class Judgement:
    """All differences of the chosen curves and groups, tested together at `level`, and what the limits rest on.

    `reasons` says why a curve, or a group in a curve, is not tested; `notes` holds other remarks.
    """

    differences: tuple[Difference, ...]
    level: float
    scope: Scope
    basis: Basis
    evaluations: int
    reasons: Mapping[str, str]
    notes: tuple[str, ...] = ()


def judgement(
    trajectory: Trajectory,
    names: Sequence[str],
    pair: Pair | None = None,
    level: float = 0.05,
    every_pair: bool | None = None,
) -> Judgement:
    """Test who is better off in these curves, in all pairs of groups or in one pair.

    A probe keeps the loss and the decision of every point. From these, bands are computed that hold at all evaluations,
    for all pairs of groups and in all chosen curves together, with probability 1 - `level`. So any of the statements
    may be quoted alone. With one run they are about this run, with two to four seeds about these runs, with five or
    more about the training settings (points and seeds together). Up to five groups are compared pair by pair; from six
    on, each is compared with the mean of all (`every_pair` chooses one or the other). With `pair` only these two are
    compared, and the error rate holds for them alone: choose them before you see the data.

    Without kept points, recorded standard errors are used with Bonferroni's correction; the limits are then wider. The
    untrained network is never judged. A run that diverged, or whose points are weighted, is not judged.
    Of a forecast, a leader is named only where its promised band (90 %, see `tm.forecast`) and its held-out points both
    exclude zero; nothing is said outside the promise.
    """
    ended = diverged_at(trajectory)
    if ended is not None:
        why = f"The run diverged at {trajectory.clock} {ended:.4g}, so no leader is named"
        return Judgement((), level, "run", "points", 0, {}, (why,))
    if held_out_facts(trajectory).get("weighted"):
        why = "it is not judged, since its points are weighted"
        return Judgement((), level, "run", "points", 0, dict.fromkeys(names, why))
    if (forecast := _of_forecast(trajectory, names, pair, level)) is not None:
        return forecast
    return _of_run(trajectory, names, pair, level, every_pair)


def trained(trajectory: Trajectory, times: np.ndarray) -> np.ndarray:
    """Which of these times come after training has begun; all of them where only the start was evaluated."""
    origin = trajectory.origin
    if not (origin.measured or origin.source == "forecast") or len(times) < 2:
        return np.ones(len(times), dtype=bool)
    return np.asarray(times > 0)


def _of_run(
    trajectory: Trajectory, names: Sequence[str], pair: Pair | None, level: float, every_pair: bool | None
) -> Judgement:
    kept = kept_points(trajectory)
    kept = None if kept is None else kept.at(trained(trajectory, kept.times))
    own = [name for name in names if kept is not None and kept.named([name])]
    if kept is not None and own:
        found = _of_points(trajectory, kept, own, pair, level, every_pair)
        left = [name for name in names if name not in own]
        reasons = {**found.reasons, **dict.fromkeys(left, "it is not judged, since it was not kept point by point")}
        return Judgement(found.differences, level, found.scope, "points", found.evaluations, reasons, found.notes)
    return _of_curves(trajectory, names, pair, level, every_pair)


def _of_points(
    trajectory: Trajectory,
    kept: KeptPoints,
    names: Sequence[str],
    pair: Pair | None,
    level: float,
    every_pair: bool | None,
) -> Judgement:
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
    differences = differences_of(trajectory, found, labels, dict.fromkeys(names, kept.times))
    reasons, notes = _small(kept, chosen)
    return Judgement(differences, level, scope, "points", len(kept.times), reasons, notes)


def _of_forecast(trajectory: Trajectory, names: Sequence[str], pair: Pair | None, level: float) -> Judgement | None:
    """Return the same for a forecast; None for anything else."""
    if trajectory.origin.source != "forecast":
        return None
    if any("seed" in curve.dims for name, curve in trajectory.items() if name.endswith("_gap_low")):
        raise ValueError("A forecast has a promise of its own and is judged by itself. Found several, stacked.")
    if all(gap_band(trajectory, name) is None for name in names):
        why = "it is not judged, since nothing is promised"
        note = "This forecast promises nothing, so no leader is named"
        return Judgement((), level, "run", "forecast", 0, dict.fromkeys(names, why), (note,))
    by_points = _of_run(trajectory, names, pair, level, every_pair=True)
    differences = promised_differences(trajectory, by_points.differences)
    judged = {one.curve for one in differences}
    reasons = {
        **by_points.reasons,
        **dict.fromkeys([name for name in names if name not in judged], "it is not judged, since nothing is promised"),
    }
    silent: dict[Pair, list[str]] = {}
    for one in differences:
        if one.sign[-1] == 0:
            silent.setdefault(one.pair, []).append(one.curve)
    notes = tuple(
        f"At the end no difference between {group_name(a)} and {group_name(b)} is clear in "
        f"{' or '.join(map(term, curves))}"
        for (a, b), curves in silent.items()
    )
    count = max((len(one.times) for one in differences), default=0)
    return Judgement(differences, level, "run", "forecast", count, reasons, notes)


def _of_curves(
    trajectory: Trajectory, names: Sequence[str], pair: Pair | None, level: float, every_pair: bool | None
) -> Judgement:
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
        curve = curve.isel(time=trained(trajectory, curve.coords["time"].values))
        groups = tuple(groups_of(curve))
        contrasts, labels = _contrasts(groups, np.ones(len(groups)), pair, every_pair)
        values = _array(trajectory, curve)
        error = trajectory.get(f"{name}_se")
        errors = None if error is None else _array(trajectory, error.sel(time=curve.coords["time"]))
        times[name] = curve.coords["time"].values
        statements = sum(shape["time"] for shape in shapes) * len(contrasts)
        if errors is None and len(values) >= FEWEST_SEEDS:
            basis, found[name] = "seeds", seed_bands(values, contrasts, level / len(names))
        elif errors is not None or len(values) > 1:
            basis = "seeds" if errors is None else "standard errors"
            found[name] = recorded_errors(values, errors, contrasts, level, statements)
        elif held_out_facts(trajectory):
            reasons[name] = "it is not judged, since no errors of it are known"
        else:
            gap = values[0] @ contrasts.T
            found[name] = Band(gap, gap - resolution(curve), gap + resolution(curve))
        few = few_held_out(trajectory) & set(groups)
        reasons.update({f"{name} of {group_name(group)}": TOO_FEW for group in groups if group in few})
        if name in found:
            found[name] = _silent(found[name], np.abs(contrasts) @ np.array([group in few for group in groups]) > 0)
    scope: Scope = "recipe" if seeds >= FEWEST_SEEDS or basis == "seeds" else "runs" if seeds > 1 else "run"
    few_named = [group_name(group) for group in groups if group in few]
    notes: tuple[str, ...] = ()
    if few_named:
        notes = (f"{NOT_JUDGED}, with fewer than {FEWEST} held-out points: {', '.join(few_named)}",)
    if basis == "standard errors":
        notes += ("No points were kept: limits come from standard errors with Bonferroni's correction, which is wider",)
    differences = differences_of(trajectory, found, labels, times)
    return Judgement(differences, level, scope, basis, max(shape["time"] for shape in shapes), reasons, notes)


def _silent(band: Band, contrasts: np.ndarray) -> Band:
    """A band without limits of these contrasts."""
    return replace(band, **{side: np.where(contrasts, np.nan, getattr(band, side)) for side in ("lower", "upper")})


def differences_of(
    trajectory: Trajectory,
    found: Mapping[str, Band],
    labels: Sequence[tuple[Hashable, Hashable]],
    times: Mapping[str, np.ndarray],
) -> tuple[Difference, ...]:
    """The differences of a run, of the bands by curve, the compared pairs and the times by curve."""
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


def _array(trajectory: Trajectory, curve: xr.DataArray) -> np.ndarray:
    """(seeds, evaluations, groups) of the seeds that did not diverge."""
    if "seed" not in curve.dims:
        curve = curve.expand_dims("seed")
    elif trajectory.diverged is not None and "seed" in trajectory.diverged.dims:
        curve = curve.isel(seed=np.flatnonzero(trajectory.diverged.isnull().values))
    return np.asarray(curve.transpose("seed", "time", "group").values, dtype=float)


def _single(curve: PointCurve) -> PointCurve:
    return replace(curve, values=curve.values[0]) if curve.values.ndim == 3 else curve


def _small(kept: KeptPoints, chosen: Sequence[PointCurve]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return which groups are not tested, and which are small."""
    reasons: dict[str, str] = {}
    few: dict[str, int] = {}
    for curve in chosen:
        counts = curve.counts(kept.codes, len(kept.groups))
        for group, count, judged in zip(kept.groups, counts, curve.judged(kept.codes, len(kept.groups)), strict=True):
            if not judged:
                reasons[f"{curve.name} of {group_name(group)}"] = TOO_FEW
            elif count < FEW:
                few[group_name(group)] = min(int(count), few.get(group_name(group), FEW))
    told = ", ".join(f"{group} has {count}" for group, count in few.items())
    return reasons, (f"Few held-out cases: {told} in at least one measure",) if few else ()


def promised_differences(ahead: Trajectory, by_points: Sequence[Difference]) -> tuple[Difference, ...]:
    """Differences by the held-out points, widened to the promised band and cut to the evaluations that it covers.

    A leader is then named only where both exclude zero. Curves without a promise are left out.
    """
    kept = []
    for one in by_points:
        band = gap_band(ahead, one.curve)
        if band is None:
            continue
        gap, low, high = (part.sel(pair=f"{one.pair[0]} vs {one.pair[1]}") for part in band)
        promised = low.coords["time"].values[np.isfinite(low.values)]
        inside = np.isin(one.times, promised)
        if not inside.any():
            continue
        times = one.times[inside]
        below, above = (part.sel(time=times).values for part in (low, high))
        kept.append(
            replace(
                one,
                times=times,
                gap=gap.sel(time=times).values,
                lower=np.minimum(one.lower[inside], below),
                upper=np.maximum(one.upper[inside], above),
            )
        )
    return tuple(kept)
