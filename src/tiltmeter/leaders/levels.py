"""levels: groups by each attribute alone and by several together, judged with one error rate."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.leaders.leaders import Leaders, leaders
from tiltmeter.leaders.points import FEWEST, KeptPoints, described_held_out, kept_points
from tiltmeter.names import described
from tiltmeter.question import Question
from tiltmeter.record.labelled import label_to_json, labels_array
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name


@dataclass(frozen=True)
class SmallGroup(NotebookText):
    """An intersection with too few points to be judged, and the groups of the levels above that its points count in."""

    group: Hashable
    points: int
    counts_in: tuple[Hashable, ...]

    def __str__(self) -> str:
        above = " and in ".join(group_name(one) for one in self.counts_in)
        plural = "" if self.points == 1 else "s"
        return f"{group_name(self.group)} ({self.points} point{plural}, counted in {above})"


@dataclass(frozen=True, eq=False)
class Levels(NotebookText):
    """Who leads at every level: by each attribute alone, and by several together. All statements hold together.

    `leaders` maps the name of a level to who leads there, `runs` to the run in the groups of this level. `small` are
    the groups that are too small to be judged.
    """

    leaders: Mapping[str, Leaders]
    level: float
    small: tuple[SmallGroup, ...] = ()
    runs: Mapping[str, Trajectory] = field(default_factory=dict, repr=False)

    @property
    def claims(self) -> dict[str, str]:
        """The answer at every level."""
        return {name: judged.headline.claim for name, judged in self.leaders.items()}

    @property
    def licence(self) -> str:
        """What the answers rest on."""
        return f"At most {100 * self.level:.3g} of 100 such lists are wrong."

    @property
    def too_small(self) -> str:
        """A sentence about the groups that are not judged; empty if there are none."""
        return f"Too small to judge alone: {'; '.join(map(str, self.small))}." if self.small else ""

    def __str__(self) -> str:
        told = [f"By {name}: {claim}" for name, claim in self.claims.items()]
        return "\n".join([*told, *filter(None, [self.too_small]), self.licence])


def levels(
    trajectory: Trajectory,
    *curves: str,
    question: Question | None = None,
    level: float = 0.05,
) -> Levels:
    """Say who leads by each attribute alone and by several together, of a run whose groups are intersections.

    >>> import pandas as pd, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"sex": rng.choice(["women", "men"], 3000), "race": rng.choice(["x", "y"], 3000)})
    >>> table["label"] = rng.integers(0, 2, 3000)
    >>> sure = np.where(table.sex == "women", 0.7, 0.9)
    >>> table["score"] = np.where(rng.random(3000) < sure, table.label, 1 - table.label)
    >>> print(levels(tm.predictions.run(table, label="label", group=["sex", "race"]), "error"))
    By sex: Women have the higher error: 29 % against 10 %.

    A point belongs to one group of every level. The error rate `level` is shared by the levels (Bonferroni). Groups
    with fewer than 20 points are not judged; their points count in the levels above.

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        *curves: Curves to judge; none: those of `leaders`.
        question: What a positive decision means to a person; None: the question that the data carry.
        level: Error rate, shared by the levels.
    """
    kept = kept_points(trajectory)
    if kept is None:
        raise ValueError(
            "Levels need the points of a run, as a probe or a table of predictions keeps them. Found none."
        )
    width = {len(group) if isinstance(group, tuple) else 1 for group in kept.groups}
    if width == {1} or len(width) > 1:
        raise ValueError("Levels need groups of several attributes, as group=['sex', 'race']. Found one.")
    columns = _columns(trajectory)
    plain = tuple(f"attribute {number + 1}" for number in range(max(width)))
    names = columns if len(columns) == len(plain) else plain
    chosen = [parts for size in range(1, len(names) + 1) for parts in combinations(range(len(names)), size)]
    runs = {" and ".join(names[part] for part in parts): _at_level(trajectory, kept, parts) for parts in chosen}
    runs = {name: run for name, run in runs.items() if next(iter(run.values())).sizes["group"] > 1}
    asked = {"question": question, "level": level / max(len(runs), 1)}
    found = {name: leaders(run, *curves, **asked) for name, run in runs.items()}  # type: ignore[arg-type]
    return Levels(found, level, _small(kept), runs)


def _small(kept: KeptPoints) -> tuple[SmallGroup, ...]:
    counts = np.bincount(kept.codes, minlength=len(kept.groups)).tolist()
    return tuple(
        SmallGroup(group, count, tuple(group))  # type: ignore[arg-type]
        for group, count in zip(kept.groups, counts, strict=True)
        if count < FEWEST
    )


def _columns(trajectory: Trajectory) -> tuple[str, ...]:
    """The columns that the groups of a table come from."""
    columns: Any = trajectory.origin.settings.get("columns")
    if columns is None and isinstance(trajectory.origin.problem, Mapping):
        held_out: Any = trajectory.origin.problem.get("held_out")
        columns = held_out.get("reading") if isinstance(held_out, Mapping) else None
    groups = columns.get("group") if isinstance(columns, Mapping) else None
    return tuple(map(str, groups)) if isinstance(groups, list) else ()


def _at_level(trajectory: Trajectory, kept: KeptPoints, parts: tuple[int, ...], last: bool = False) -> Trajectory:
    """The run in groups by these attributes alone, at all evaluations or at the last one."""
    short = [group[parts[0]] if len(parts) == 1 else tuple(group[part] for part in parts) for group in kept.groups]  # type: ignore[index]
    groups = list(dict.fromkeys(short))
    codes = np.array([groups.index(one) for one in short])[kept.codes]
    return regrouped(trajectory, kept, np.arange(len(codes)), codes, groups, last)


def regrouped(
    run: Trajectory,
    kept: KeptPoints,
    places: np.ndarray,
    codes: np.ndarray,
    groups: Sequence[Hashable],
    last: bool = False,
) -> Trajectory:
    """The run on these points in other groups (`codes` into `groups`), with curves, points and sizes of those."""
    members, seeds = labels_array(groups), _seeds(run)
    labels: dict[str, Any] = {"time": kept.times[-1:] if last else kept.times, "group": members, "seed": seeds}
    curves: dict[str, xr.DataArray] = {}
    for curve in kept.curves:
        readings = (curve.values[..., -1:, :] if last else curve.values)[..., places]
        counted = np.full(len(places), True) if curve.where is None else curve.where[places]
        for name, values in _means(curve.name, readings[..., counted], codes[counted], len(groups)).items():
            dims = ("seed", "time", "group")[-values.ndim :]
            array = xr.DataArray(values, dims=dims, coords={dim: labels[dim] for dim in dims})
            array = array.transpose("time", "group", *dims[:-2])
            attrs = dict(run[name].attrs) if name in run else {}
            curves[name] = array.assign_attrs(attrs) if attrs else described(name, array)
    points = {
        name: _part(run.points[name], seeds, last).isel(point=places).assign_coords(group=("point", members[codes]))
        for name in run.points
        if "point" in run.points.sizes(name)
    }
    origin = replace(run.origin, problem={"held_out": _facts(run, kept, places, codes, groups)})
    return Trajectory(curves, run.clock, origin, points=points)


def _means(name: str, values: np.ndarray, codes: np.ndarray, groups: int) -> dict[str, np.ndarray]:
    """The mean of every group with its standard error, (seeds,) evaluations x groups."""
    means, errors = [], []
    for code in range(groups):
        chosen = values[..., codes == code].astype(np.float64)
        missing = np.full(chosen.shape[:-1], np.nan)
        count = chosen.shape[-1]
        means.append(chosen.mean(-1) if count else missing)
        errors.append(chosen.std(-1, ddof=1) / np.sqrt(count) if count > 1 else missing)
    return {name: np.stack(means, -1), f"{name}_se": np.stack(errors, -1)}


def _seeds(run: Trajectory) -> np.ndarray | None:
    """The labels of the seeds that are judged: those of the curves, without those that diverged; None of one run."""
    points = next((run.points[name] for name in ("loss", "decided_positive", "wrong") if name in run.points), None)
    if points is None or "seed" not in points.dims:
        return None
    shown = next((curve for curve in run.values() if "seed" in curve.dims), None)
    if shown is not None:
        points = points.sel(seed=shown.coords["seed"].values)
    finite = np.isfinite(points.transpose("seed", "time", "point").values).all((1, 2))
    return np.asarray(points.coords["seed"].values[finite if finite.any() else slice(None)])


def _part(points: xr.DataArray, seeds: np.ndarray | None, last: bool) -> xr.DataArray:
    points = points if seeds is None or "seed" not in points.dims else points.sel(seed=seeds)
    return points.isel(time=[-1]) if last and "time" in points.dims else points


def _facts(
    run: Trajectory, kept: KeptPoints, places: np.ndarray, codes: np.ndarray, groups: Sequence[Hashable]
) -> dict[str, Any]:
    """What the origin says of the held-out points, for the new groups."""
    left = ("sizes", "label_rates", "reading")
    facts = {name: value for name, value in described_held_out(run).items() if name not in left}
    sizes = np.bincount(codes, minlength=len(groups)).tolist()
    facts |= {"points": len(places), "weighted": False}
    facts["sizes"] = [[label_to_json(group), size] for group, size in zip(groups, sizes, strict=True)]
    positives = kept.named(["tpr"])
    if positives and positives[0].where is not None:
        rates = np.bincount(codes, positives[0].where[places], len(groups)) / np.maximum(sizes, 1)
        facts["label_rates"] = [
            [label_to_json(group), [[0.0, 1.0 - rate], [1.0, rate]]]
            for group, rate in zip(groups, rates.tolist(), strict=True)
        ]
    return facts
