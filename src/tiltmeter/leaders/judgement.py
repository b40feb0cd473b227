"""Judgement: the differences of groups in the chosen curves, asked in three steps that share one error rate."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr

from tiltmeter.leaders.bands import Band, Limits, limits_of_rates
from tiltmeter.leaders.contrasts import Contrast, contrasts, every_pair, intersections
from tiltmeter.leaders.difference import Difference
from tiltmeter.leaders.points import (
    FEWEST,
    KeptPoints,
    PointCurve,
    described_held_out,
    diverged_at,
    few_held_out,
    held_out_facts,
    kept_points,
)
from tiltmeter.leaders.promised_gaps import gap_band
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS, TrainingLimits, recorded_errors, seed_bands
from tiltmeter.names import Better, better_of
from tiltmeter.pairs import Pair, groups_of, resolution
from tiltmeter.record.labelled import label_from_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import group_name

#: The source of the limits.
Basis = Literal["points", "standard errors", "seeds", "values", "forecast", "exact"]
#: What the statements are about: the network that was trained, these models, or trainings like these.
Scope = Literal["run", "models", "trainings"]
TOO_FEW = f"it is not judged, with fewer than {FEWEST} such points"
#: Groups with fewer points than this are tested, with a note that they are small.
FEW = 50
#: How a note begins that names groups without a verdict.
NOT_JUDGED = "Too few to judge"


class Shares(NamedTuple):
    """How the error rate is spent: on the declared rate at the end, on its path, and on all other rates at the end."""

    end: float = 0.6
    path: float = 0.2
    others: float = 0.2

    @property
    def handed_on(self) -> float:
        """For the path of a difference that was named at the end."""
        return self.end + self.path


SHARES = Shares()
#: A comparison with all others is promised if this share of it has a band; groups that are too small have none.
MOST_KNOWN = 0.9
#: Of the fall of the pooled held-out loss: evaluations before this much of it look at a network without training.
UNTRAINED = 0.05


@dataclass(frozen=True, eq=False)
class Judgement:
    """All differences of the chosen curves and groups, judged at `level`, and what the limits rest on.

    `declared` is the curve that was asked at the end and during training. `could_be_worst` are the groups that are not
    clearly better off in it than another. `reasons` says why a curve, or a group in a curve, is not judged; `notes`
    holds other remarks.
    """

    differences: tuple[Difference, ...]
    level: float
    scope: Scope
    basis: Basis
    evaluations: int
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    declared: str = ""
    could_be_worst: tuple[Hashable, ...] = ()


def judgement(
    run: Trajectory,
    names: Sequence[str],
    pair: Pair | None = None,
    level: float = 0.05,
    scope: Scope | None = None,
) -> Judgement:
    """Judge who is worse off: in the first of these curves at the end and during training, in the others at the end.

    At most a share `level` of runs whose groups are alike gets any statement. It is spent in three steps: 3/5 on the
    first curve at the last evaluation, 1/5 on its path (4/5 for a difference that was named at the end), 1/5 on the
    other curves at the last evaluation. Two groups are compared with each other, of more each with all others together.
    Groups by several attributes are compared by each attribute alone; their intersections are judged with the other
    curves. A group needs 20 points. If the first curve cannot be judged, the next one that can takes its place.

    With the points that a probe kept, limits are those of `Limits`; of three and more trainings `scope` says whether
    the statements are about these "models" or about "trainings" like these (default). Without points, recorded standard
    errors or the scatter over seeds give wider limits. Evaluations before the held-out loss has made a twentieth of its
    fall are left out. A run that diverged, or whose points are weighted, is not judged. Of a forecast, a group is named
    only where its band and its held-out points both exclude zero.
    """
    ended = diverged_at(run)
    if ended is not None:
        why = f"The run diverged at {run.clock} {ended:.4g}, so nobody is named"
        return Judgement((), level, "run", "points", 0, {}, (why,), names[0])
    if held_out_facts(run).get("weighted"):
        why = "it is not judged, since its points are weighted"
        return Judgement((), level, "run", "points", 0, dict.fromkeys(names, why), (), names[0])
    if run.origin.source == "forecast":
        return _of_forecast(run, names, pair, level)
    return _of_run(run, names, pair, level, scope)


def _of_run(
    run: Trajectory, names: Sequence[str], pair: Pair | None, level: float, scope: Scope | None = None
) -> Judgement:
    kept = kept_points(run)
    own = [name for name in names if kept is not None and kept.named([name])]
    if kept is None or not own:
        return _of_curves(run, names, pair, level)
    found = _of_points(run, kept, own, pair, level, scope)
    left = [name for name in names if name not in own]
    reasons = {**found.reasons, **dict.fromkeys(left, "it is not judged, since it was not kept point by point")}
    return replace(found, reasons=reasons)


class _Part(NamedTuple):
    """A part of a family: a curve, the groups that are compared in it, and how it is called in `Limits`."""

    name: str
    curve: PointCurve
    contrasts: list[Contrast]

    @property
    def weights(self) -> np.ndarray:
        return np.array([one.weights for one in self.contrasts])


def _of_points(
    run: Trajectory, kept: KeptPoints, names: Sequence[str], pair: Pair | None, level: float, scope: Scope | None
) -> Judgement:
    kept, loss_fell = _trained_part(run, kept)
    if scope is None:
        scope = "run" if kept.seeds == 1 else "models" if kept.seeds < FEWEST_SEEDS else "trainings"
    compared: dict[str, list[Contrast]] = {}
    for curve in kept.named(names):
        counts = curve.counts(kept.codes, len(kept.groups))
        compared[curve.name] = contrasts(kept.groups, counts, pair)
    judged = [name for name in names if any(_enough(kept, name, one) for one in compared[name])]
    reasons, notes = _small(kept, names)
    if not judged:
        return Judgement((), level, scope, "points", len(kept.times), reasons, notes, names[0])
    declared, several = judged[0], len(kept.times) > 1
    by_name = dict(zip(names, kept.named(names), strict=True))
    end, path = _Part("end", _last(by_name[declared]), compared[declared]), None
    families = {"end": [end]}
    if several:
        path = _Part("path", by_name[declared], compared[declared])
        families["path"] = [path]
    others = [_Part(name, _last(by_name[name]), compared[name]) for name in judged[1:]]
    if pair is None:
        for name in judged:
            counts = by_name[name].counts(kept.codes, len(kept.groups))
            if crossed := intersections(kept.groups, counts):
                others.append(_Part(f"{name} of intersections", _last(by_name[name]), crossed))
    families["others"] = others
    limits = _limits([part for family in families.values() for part in family], kept.codes, scope, by_name)
    # One evaluation has no path: its share goes to the end.
    ends = limits.of(["end"], level * (SHARES.end if several else SHARES.handed_on))["end"]
    in_path = limits.of(["path"], level * SHARES.path)["path"] if path is not None else ends
    if path is not None:
        in_path = _handed_on(path, ends, in_path, limits, kept.codes, scope, level, by_name)
    rest = limits.of([part.name for part in others], level * SHARES.others) if others else {}
    differences = [*differences_of(run, declared, end.contrasts, in_path, kept.times, ends)]
    for part in others:
        gaps = _gaps(by_name[part.curve.name], kept, part.weights)
        differences += differences_of(run, part.curve.name, part.contrasts, gaps, kept.times, rest[part.name])
    worst = _could_be_worst(by_name[declared], kept, differences[0].better, level, scope) if pair is None else ()
    notes += () if loss_fell else ("The held-out loss did not clearly fall",)
    return Judgement(tuple(differences), level, scope, "points", len(kept.times), reasons, notes, declared, worst)


def _limits(parts: Sequence[_Part], codes: np.ndarray, scope: Scope, whole: Mapping[str, PointCurve]) -> Limits:
    """Limits of these parts; how much trainings scatter is told by all evaluations of the `whole` curves."""
    curves = [replace(part.curve, name=part.name) for part in parts]
    weights = {part.name: part.weights for part in parts}
    if scope == "trainings":
        return TrainingLimits(curves, codes, weights, paths={part.name: whole[part.curve.name] for part in parts})
    return Limits([curve if curve.values.ndim == 2 else _mean_of(curve) for curve in curves], codes, weights)


def _mean_of(curve: PointCurve) -> PointCurve:
    return replace(curve, values=curve.values[0]) if len(curve.values) == 1 else curve.averaged


def _last(curve: PointCurve) -> PointCurve:
    return replace(curve, values=curve.values[..., -1:, :])


def _enough(kept: KeptPoints, name: str, contrast: Contrast) -> bool:
    counts = kept.named([name])[0].counts(kept.codes, len(kept.groups))
    return all(counts[side].sum() >= FEWEST for side in (contrast.weights > 0, contrast.weights < 0))


def _handed_on(
    path: _Part,
    ends: Band,
    in_path: Band,
    limits: Limits,
    codes: np.ndarray,
    scope: Scope,
    level: float,
    whole: Mapping[str, PointCurve],
) -> Band:
    """The path with the larger share of the error rate for every difference that was named at the end."""
    named = np.flatnonzero(ends.shown[-1])
    if not named.size:
        return in_path
    largest = int(named[np.abs(ends.gap[-1][named]).argmax()])
    if len(path.contrasts) > 1:
        alone = path._replace(contrasts=[path.contrasts[largest]])
        limits = _limits([alone], codes, scope, whole)
    with_more = limits.of(["path"], level * SHARES.handed_on)["path"]
    lower, upper = in_path.lower.copy(), in_path.upper.copy()
    place = 0 if len(path.contrasts) > 1 else largest
    lower[:, largest], upper[:, largest] = with_more.lower[:, place], with_more.upper[:, place]
    return replace(in_path, lower=lower, upper=upper)


def _gaps(curve: PointCurve, kept: KeptPoints, weights: np.ndarray) -> Band:
    """The differences of a curve at all evaluations, without limits."""
    values = _mean_of(curve).values if curve.values.ndim == 3 else curve.values
    groups = len(kept.groups)
    members = kept.codes if curve.where is None else np.where(curve.where, kept.codes, groups)
    means = np.zeros((groups, curve.evaluations))
    for group in range(groups):
        own = members == group
        if own.any():
            means[group] = values[:, own].mean(1, dtype=np.float64)
    above, below = np.maximum(weights, 0.0) @ means, np.maximum(-weights, 0.0) @ means
    none = np.full((curve.evaluations, len(weights)), np.nan)
    return Band((above - below).T, none, none, np.stack([above.T, below.T], 2))


def differences_of(
    run: Trajectory, name: str, compared: Sequence[Contrast], path: Band, times: np.ndarray, ends: Band
) -> list[Difference]:
    """The differences of a curve: limits of the path, and those of the last evaluation from the family of the end."""
    found = []
    for place, contrast in enumerate(compared):
        lower, upper = path.lower[:, place].copy(), path.upper[:, place].copy()
        lower[-1], upper[-1] = ends.lower[-1, place], ends.upper[-1, place]
        people = (0, 0) if ends.points is None else tuple(int(count) for count in ends.points[place])
        sides = path.sides[:, place] if path.sides is not None else np.full((len(times), 2), np.nan)
        found.append(
            Difference(
                name,
                better_of(name, run[name]) if name in run else "lower",
                contrast.pair,
                run.clock,
                np.asarray(times, dtype=float),
                np.where(np.isfinite(sides).all(1), sides[:, 0] - sides[:, 1], path.gap[:, place]),
                lower,
                upper,
                sides,
                None if ends.points is None else (people[0], people[1]),
                contrast.weights,
            )
        )
    return found


def trained(run: Trajectory, times: np.ndarray) -> np.ndarray:
    """Which of these times come after training has begun; all of them where only the start was evaluated."""
    if not (run.origin.measured or run.origin.source == "forecast") or len(times) < 2:
        return np.ones(len(times), dtype=bool)
    return np.asarray(times > 0)


def _trained_part(run: Trajectory, kept: KeptPoints) -> tuple[KeptPoints, bool]:
    """The evaluations of a network that has begun to learn, and whether the held-out loss clearly fell.

    They begin where the held-out loss of all points together has made a twentieth of its fall. If that fall is not
    clear, all evaluations but the untrained network's are kept.
    """
    begun = trained(run, kept.times)
    if begun.all():
        return kept, True
    loss = kept.named(["loss"])
    if not loss:
        return kept.at(begun), True
    values = loss[0].averaged.values if loss[0].values.ndim == 3 else loss[0].values
    pooled = values.mean(1, dtype=np.float64)
    least = int(pooled.argmin())
    fall = values[0].astype(float) - values[least]
    error = fall.std(ddof=1) / np.sqrt(len(fall)) if len(fall) > 1 else np.inf
    if not fall.mean() > 2.0 * error:
        return kept.at(begun), False
    return kept.at(begun & (np.arange(len(pooled)) >= _begun(pooled))), True


def _begun(pooled: np.ndarray) -> int:
    """The first evaluation at which a loss has made a twentieth of its fall."""
    return int(np.argmax(pooled <= pooled[0] - UNTRAINED * (pooled[0] - pooled.min())))


def _could_be_worst(
    curve: PointCurve, kept: KeptPoints, better: Better, level: float, scope: Scope
) -> tuple[Hashable, ...]:
    """The groups that are not clearly better off at the end than some other, one-sided, all together at one level.

    A single group is then the worst off (multiple comparisons with the worst; Hsu, 1996).
    """
    counts = curve.counts(kept.codes, len(kept.groups))
    judged = [place for place in range(len(kept.groups)) if counts[place] >= FEWEST]
    if len(judged) < 3 or isinstance(kept.groups[0], tuple):
        return ()
    tail = level * SHARES.end / (len(judged) - 1)
    values = curve.values if curve.values.ndim == 3 else curve.values[None]
    members = kept.codes if curve.where is None else np.where(curve.where, kept.codes, len(kept.groups))
    sign = 1.0 if better == "higher" else -1.0
    # (seeds, groups) at the last evaluation, and the variance of the points of the mean over seeds.
    means = np.array([[row[-1, members == group].mean() for group in judged] for row in values], dtype=float)
    mean, rate = means.mean(0), curve.rate
    own = [values[:, -1, members == group].mean(0, dtype=float) for group in judged]
    variance = np.array([one.var(ddof=1) / len(one) for one in own])
    quantile = NormalDist().inv_cdf(1.0 - tail)

    def surely_better(one: int, other: int) -> bool:
        gap = sign * (mean[one] - mean[other])
        if rate:
            pair, number = np.array([[mean[one], mean[other]]]), np.array([len(own[one]), len(own[other])])
            low, high = limits_of_rates(pair, number, tail)
            reach = float(mean[one] - mean[other] - low[0] if sign > 0 else high[0] - mean[one] + mean[other])
        else:
            reach = quantile * float(np.sqrt(variance[one] + variance[other]))
        if scope == "trainings":
            from scipy.special import stdtrit

            spread = (means[:, one] - means[:, other]).std(ddof=1) / np.sqrt(len(means))
            reach = float(np.hypot(reach, -stdtrit(len(means) - 1, tail) * spread))
        return bool(gap - reach > 0)

    places = range(len(judged))
    ahead = {one for one in places for other in places if one != other and surely_better(one, other)}
    return tuple(kept.groups[judged[place]] for place in sorted(set(places) - ahead, key=lambda p: sign * mean[p]))


def _of_forecast(run: Trajectory, names: Sequence[str], pair: Pair | None, level: float) -> Judgement:
    """The judgement of a forecast: by its held-out points, with limits widened to its band."""
    if any("seed" in curve.dims for name, curve in run.items() if name.endswith("_gap_low")):
        raise ValueError("A forecast has a promise of its own and is judged by itself. Found several, stacked.")
    unpromised = "it is not judged, since nothing is promised"
    promised = [name for name in names if gap_band(run, name) is not None]
    if not promised:
        note = "This forecast promises nothing, so nobody is named"
        return Judgement((), level, "run", "forecast", 0, dict.fromkeys(names, unpromised), (note,), names[0])
    by_points = _of_run(run, promised, pair, level)
    differences = promised_differences(run, by_points.differences)
    reasons = {**by_points.reasons, **dict.fromkeys([name for name in names if name not in promised], unpromised)}
    count = max((len(one.times) for one in differences), default=0)
    found = replace(by_points, differences=differences, basis="forecast", evaluations=count, reasons=reasons)
    # Who is the worst off is a ranking, which the bands of pairs do not make.
    return replace(found, scope="run", could_be_worst=())


def promised_differences(ahead: Trajectory, by_points: Sequence[Difference]) -> tuple[Difference, ...]:
    """Differences by the held-out points, widened to the promised band and cut to the evaluations that it covers.

    A leader is then named only where both exclude zero. Curves without a promise are left out.
    """
    kept = []
    for one in by_points:
        band = gap_band(ahead, one.curve)
        if band is None:
            continue
        sides = promised_limits(one, groups_of(ahead[one.curve]), band[1], band[2])
        times = band[1].coords["time"].values
        promised = times[np.isfinite(sides).all(0)]
        inside = np.isin(one.times, promised)
        if not inside.any():
            continue
        places = [int(np.flatnonzero(times == time)[0]) for time in one.times[inside]]
        below, above = sides[:, places]
        kept.append(
            replace(
                one,
                times=one.times[inside],
                gap=one.gap[inside],
                lower=np.minimum(one.lower[inside], below),
                upper=np.maximum(one.upper[inside], above),
                values=None if one.values is None else one.values[inside],
            )
        )
    return tuple(kept)


def promised_limits(one: Difference, groups: Sequence[Hashable], low: xr.DataArray, high: xr.DataArray) -> np.ndarray:
    """The promised limits (2, times) of a difference: those of the pairs of groups on its two sides, by their weights.

    A band of the difference itself would be narrower.
    """
    assert one.weights is not None
    parts, shares = [], []
    for a in np.flatnonzero(one.weights > 0).tolist():
        for b in np.flatnonzero(one.weights < 0).tolist():
            first, second = (low, high) if a < b else (-high, -low)
            name = f"{groups[min(a, b)]} vs {groups[max(a, b)]}"
            parts.append(np.stack([part.sel(pair=name).values for part in (first, second)]))
            shares.append(float(one.weights[a] * -one.weights[b]))
    known = np.isfinite(parts)
    # A group too small for a band of its own counts among the others by what a rate can be at all; of a loss, not.
    most = 1.0 if one.curve in ("error", "positive_rate", "tpr", "fpr") else 0.0
    bounds = np.array([-most, most])[:, None]
    filled = np.where(known, parts, bounds)
    limits = np.tensordot(shares, filled, axes=1)
    if not most:
        limits = limits / np.maximum(np.tensordot(shares, known.astype(float), axes=1), 1e-12)
    promised = np.tensordot(shares, known.astype(float), axes=1) >= MOST_KNOWN
    return np.where(promised, limits, np.nan)


def _of_curves(run: Trajectory, names: Sequence[str], pair: Pair | None, level: float) -> Judgement:
    """The same from recorded standard errors, from the scatter over seeds, or from values without errors."""
    reasons: dict[str, str] = {}
    differences: list[Difference] = []
    declared = ""
    basis: Basis = "values"
    counts = _sizes(run, groups_of(run[names[0]]))
    few = few_held_out(run)
    seeds = max(len(_array(run, run[name])) for name in names)
    judged = max(run[name].sizes["time"] for name in names)
    for name in names:
        curve = run[name].isel(time=_begun_evaluations(run, run[name]))
        values, error = _array(run, curve), run.get(f"{name}_se")
        errors = None if error is None else _array(run, error.sel(time=curve.coords["time"]))
        certain = errors is not None or len(values) > 1
        if not certain and held_out_facts(run):
            reasons[name] = "it is not judged, since no errors of it are known"
            continue
        groups = groups_of(curve)
        compared = contrasts(groups, counts, pair) if certain or pair is not None else every_pair(groups)
        weights = np.array([one.weights for one in compared])
        limits = _curve_limits(values, errors, weights, resolution(curve))
        if not declared:
            ends = limits(slice(-1, None), level * SHARES.end)
            named = len(compared) == 1 and bool(ends.shown.any())
            path = limits(slice(None), level * (SHARES.handed_on if named else SHARES.path))
        else:
            ends = limits(slice(-1, None), level * SHARES.others / (len(names) - 1))
            path = limits(slice(None), level)
            if certain:
                path = replace(path, lower=path.lower * np.nan, upper=path.upper * np.nan)
        if certain:
            basis = "seeds" if errors is None else "standard errors"
        mean = values.mean(0)
        sides = np.stack([mean @ np.maximum(weights, 0.0).T, mean @ np.maximum(-weights, 0.0).T], 2)
        silent = np.array([not few.isdisjoint(one.pair) for one in compared])
        path, ends = _silent(replace(path, sides=sides), silent), _silent(ends, silent)
        differences += differences_of(run, name, compared, path, curve.coords["time"].values, ends)
        declared = declared or name
        reasons.update({f"{name} of {group_name(group)}": TOO_FEW for group in groups if group in few})
    scope: Scope = "trainings" if basis == "seeds" or seeds >= FEWEST_SEEDS else "models" if seeds > 1 else "run"
    few_named = [group_name(group) for group in groups_of(run[names[0]]) if group in few]
    notes: tuple[str, ...] = ()
    if few_named:
        notes = (f"{NOT_JUDGED}: {', '.join(few_named)}",)
    if basis == "standard errors":
        notes += ("No points were kept: limits come from standard errors with Bonferroni's correction, which is wider",)
    return Judgement(tuple(differences), level, scope, basis, judged, reasons, notes, declared or names[0])


def _silent(band: Band, which: np.ndarray) -> Band:
    """The band with no limits for these contrasts, so that nothing is said of them."""
    return replace(band, lower=np.where(which, np.nan, band.lower), upper=np.where(which, np.nan, band.upper))


def _curve_limits(
    values: np.ndarray, errors: np.ndarray | None, weights: np.ndarray, rounding: float
) -> Callable[[slice, float], Band]:
    """The limits of some evaluations of a curve (seeds, evaluations, groups) at a level."""

    def limits(part: slice, level: float) -> Band:
        chosen = values[:, part]
        if errors is None and len(values) >= FEWEST_SEEDS:
            return seed_bands(chosen, weights, level)
        if errors is None and len(values) == 1:
            gap = chosen[0] @ weights.T
            return Band(gap, gap - rounding, gap + rounding)
        statements = chosen.shape[1] * len(weights)
        return recorded_errors(chosen, None if errors is None else errors[:, part], weights, level, statements)

    return limits


def _begun_evaluations(run: Trajectory, curve: xr.DataArray) -> np.ndarray:
    """Which evaluations of a curve look at a network that has begun to learn; all of exact values."""
    times = curve.coords["time"].values
    begun = trained(run, times)
    loss = run.get("loss")
    if begun.all() or loss is None or "group" not in loss.dims or not set(loss.dims) <= {"time", "group", "seed"}:
        return begun
    values = loss.mean("seed") if "seed" in loss.dims else loss
    sizes = _sizes(run, groups_of(loss))
    pooled = values.transpose("time", "group").values @ sizes / sizes.sum()
    if not np.isfinite(pooled).all():
        return begun
    return np.asarray(begun & (times >= loss.coords["time"].values[_begun(pooled)]))


def _sizes(run: Trajectory, groups: Sequence[Hashable]) -> np.ndarray:
    """How many held-out points the groups have, as far as the origin says; else all alike."""
    sizes = described_held_out(run).get("sizes")
    try:
        known = {label_from_json(group): float(size) for group, size in sizes or []}
        return np.array([known[group] for group in groups])
    except (KeyError, TypeError, ValueError):  # what stands in a file may be anything
        return np.ones(len(groups))


def _array(run: Trajectory, curve: xr.DataArray) -> np.ndarray:
    """(seeds, evaluations, groups) of the seeds that did not diverge."""
    if "seed" not in curve.dims:
        curve = curve.expand_dims("seed")
    elif run.diverged is not None and "seed" in run.diverged.dims:
        curve = curve.isel(seed=np.flatnonzero(run.diverged.isnull().values))
    return np.asarray(curve.transpose("seed", "time", "group").values, dtype=float)


def _small(kept: KeptPoints, names: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return which groups are not judged, and which are small."""
    reasons: dict[str, str] = {}
    few: dict[str, int] = {}
    for curve in kept.named(names):
        counts = curve.counts(kept.codes, len(kept.groups))
        for group, count in zip(kept.groups, counts, strict=True):
            if count < FEWEST:
                reasons[f"{curve.name} of {group_name(group)}"] = TOO_FEW
            elif count < FEW:
                few[group_name(group)] = min(int(count), few.get(group_name(group), FEW))
    told = ", ".join(f"{group} has {count}" for group, count in few.items())
    counts = kept.named(names)[0].counts(kept.codes, len(kept.groups)).tolist()
    tiny = ", ".join(
        f"{group_name(group)} ({count})" for group, count in zip(kept.groups, counts, strict=True) if count < FEWEST
    )
    notes = (
        f"{NOT_JUDGED}: {tiny}" if tiny else "",
        f"Few held-out cases: {told} in at least one measure" if few else "",
    )
    return reasons, tuple(note for note in notes if note)
