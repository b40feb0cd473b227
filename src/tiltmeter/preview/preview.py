"""preview: what the theory of the user's own table says of a training, before any network is trained."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import checked_share
from tiltmeter.data.grouped import GroupedData
from tiltmeter.leaders.headline import Headline
from tiltmeter.leaders.leaders import leaders
from tiltmeter.preview.curves import Course, course_of, run_of
from tiltmeter.preview.doubt import (
    Doubt,
    denominators,
    disagreement_of,
    doubt_of,
    gain_of,
    half_width,
    rate_variance,
)
from tiltmeter.preview.features import Features, columns, columns_and_units
from tiltmeter.preview.flow import flow, mean_loss
from tiltmeter.preview.inputs import Inputs, inputs_of
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText
from tiltmeter.threads import one_blas_thread

if TYPE_CHECKING:
    from tiltmeter.preview.ladder import Ladder

#: What a preview says of itself, in every text.
COMPUTED = "Computed from the table; your network was not trained."


def preview(train: GroupedData, held_out: GroupedData | None = None, model: Any = None, recipe: Any = None) -> Preview:
    """What the theory of your table says of a training: every group's curves, who will be worse off, and why.

    >>> rng = np.random.default_rng(0)
    >>> x, late = rng.normal(size=(4000, 5)), rng.random(4000) < 0.3
    >>> y = (x[:, 0] + np.where(late, 1.5, 0.2) * rng.normal(size=4000) > 0).astype(int)
    >>> view = preview(*GroupedData(x, y, np.where(late, "late", "early")).split(0.3))
    >>> print(view.claim)
    Group late will have the higher error, 30 % against 7 %.

    A linear theory is solved on the columns of the table and on random units that are never trained: gradient flow from
    zero, until the pooled held-out loss is least. No network is trained. On tables its end rates are about as close to
    a training as another seed of that training is; the docs say how close, on tables that were not used to build it.

    Of a network (`model`) only what does not learn is used: where all layers but the last are frozen, the theory is
    that of its last layer. `recipe` brings the loss, group weights and proportions. A preview knows no interventions.

    Args:
        train: Points that a network would be trained on.
        held_out: Points that judge it; None: a fifth of `train` is set aside.
        model: Network whose frozen layers give the features; None: the columns.
        recipe: Training settings whose loss, weights and proportions are used; None: the loss that fits the labels.
    """
    if held_out is None:
        if not isinstance(train, GroupedData):
            raise TypeError(f"`train` should be GroupedData. Found {type(train).__name__}.")
        train, held_out = train.split()
    asked = _Asked.of(model, recipe)
    return Preview.of(train, held_out, asked)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of the theory besides the data: the same for an edited copy of them."""

    loss: Any = None
    weights: Mapping[Any, float] | None = None
    proportions: Mapping[Any, float] | None = None
    thresholds: Mapping[Hashable, float] | None = None
    stop: float = 1.0
    model: Any = None
    recipe: Any = None

    @classmethod
    def of(cls, model: Any, recipe: Any) -> _Asked:
        if recipe is None:
            return cls(model=model)
        from tiltmeter.recipe.recipe import checked_recipe

        given = checked_recipe(recipe)
        if given.interventions:
            names = ", ".join(type(one).__name__ for one in given.interventions)
            raise ValueError(f"A preview knows weights and proportions, not {names}: rehearse it with `tm.forecast`.")
        proportions = given.proportions
        if proportions is None and given.sampling is not None:
            proportions = getattr(given.sampling, "proportions", None)
        return cls(given.loss, given.weights, proportions, model=model, recipe=given)


@dataclass(frozen=True, eq=False)
class _Solved:
    """The theory of one table: its inputs, features, and the course of the held-out scores."""

    inputs: Inputs
    features: Features
    course: Course
    by_columns: Course


class Preview(NotebookText):
    """The answer of `tm.preview`: curves, causes, what-ifs; it prints as who will be worse off, and how sure that is.

    >>> rng = np.random.default_rng(0)
    >>> data = GroupedData(rng.normal(size=(600, 3)), rng.integers(0, 2, 600), ["a", "b"] * 300)
    >>> view = preview(*data.split(0.4))
    >>> view.run.clock, float(view.run["loss"].time[-1]), view.doubt.holds
    ('progress', 1.0, True)

    `run` is a `Trajectory` over *progress*: the share of the fall of the pooled held-out loss, 1 at its minimum. Its
    gaps have a band at the end where nine of ten trainings lie; `leaders` names nobody who is not clear by both the
    held-out points and this band.

    Args:
        run: Every group's curves over progress.
        doubt: Whether the preview holds for networks, and why not where it does not.
        sampled: How many rows the table had, where a sample was read; 0: all were.
    """

    def __init__(self, run: Trajectory, doubt: Doubt, sampled: int = 0) -> None:
        self.run, self.doubt, self.sampled = run, doubt, sampled
        self._given: tuple[GroupedData, GroupedData, _Asked] | None = None
        self._solved: _Solved | None = None
        self._causes: dict[Any, Any] = {}
        self._ladder: Ladder | None = None

    @classmethod
    def of(cls, train: GroupedData, held_out: GroupedData, asked: _Asked, like: Preview | None = None) -> Preview:
        """Solve the theory of these data; an edited copy takes the features of `like` where these stay the same."""
        with one_blas_thread():
            solved = _solve(train, held_out, asked, None if like is None else like._solved)
            doubt = like.doubt if like is not None else _doubt(solved)
            run = _with_band(
                run_of(solved.inputs, solved.course, _settings(solved, doubt), asked.thresholds), solved, doubt
            )
        made = cls(run, doubt, solved.inputs.sampled)
        made._given, made._solved = (train, held_out, asked), solved
        return made

    @cached_property
    def headline(self) -> Headline:
        """The claim as every surface of tiltmeter makes it."""
        return leaders(self.run).headline

    @property
    def claim(self) -> str:
        """Who will be worse off in one sentence, or that nothing is clear."""
        if not self.doubt.holds:
            return "This preview does not hold: rehearse the network (`tm.forecast`)."
        return self.headline.brief or self.headline.claim

    @property
    def group(self) -> Hashable:
        """The group that the claim is about: the one that will be worse off, else the first."""
        groups = self.run["loss"].coords["group"].values.tolist()
        pair, leader = self.headline.pair, self.headline.leader
        if pair is None or not self.doubt.holds:
            return groups[0]
        worse = [one for one in pair if one != leader and one in groups]
        return worse[0] if worse else groups[0]

    @property
    def curve(self) -> str:
        """The curve whose gap is asked about: the declared rate of the question, else that of the claim."""
        question = None if self._given is None else self._given[1].question
        if question is not None and question.asked in self.run:
            return question.asked
        curve = self.headline.curve
        return curve if curve in self.run and self.doubt.holds else "loss"

    def __str__(self) -> str:
        lines = [self.claim]
        if not self.doubt.holds:
            lines.append(f"The reason: {self.doubt.why}.")
        lines.append(f"{COMPUTED} {self.band_sentence()}".strip())
        if self.sampled:
            lines.append(f"The theory read {len(self._train()):,} of {self.sampled:,} rows, drawn at random.")
        lines += self._table()
        return "\n".join(lines)

    def band_sentence(self) -> str:
        """How far a training may be from the rate that is asked about, in one sentence; "" without a band."""
        curve = self.curve
        names = f"{curve}_gap_low", f"{curve}_gap_high"
        if not self.doubt.holds or any(name not in self.run for name in names):
            return ""
        low, high = (self.run[name].isel(time=-1).values for name in names)
        half = float(np.nanmax(high - low)) / 2.0 if np.isfinite(high - low).any() else float("nan")
        if not np.isfinite(half):
            return ""
        return f"The gap of a training of yours differs by up to {100 * half:.0f} points in nine of ten."

    @property
    def inputs(self) -> Inputs:
        """The data as the theory reads them."""
        if self._solved is None:
            raise ValueError("A saved preview does not hold its table: make the preview again.")
        return self._solved.inputs

    def by_columns(self) -> dict[str, list[float]]:
        """Every group's end rates by a linear model of the columns alone, without random units."""
        inputs = self.inputs
        assert self._solved is not None
        ends = end_rates(inputs, self._solved.by_columns.scores[-1])
        return {name: values.tolist() for name, values in ends.items()}

    def _train(self) -> np.ndarray:
        return np.zeros(0) if self._solved is None else self._solved.inputs.train.labels

    def _table(self) -> list[str]:
        """Every group's people and end rates."""
        run = self.run
        known = [name for name in ("tpr", "fpr", "positive_rate", "error", "loss") if name in run]
        groups = run["loss"].coords["group"].values.tolist()
        sizes = dict(run.origin.problem["held_out"]["sizes"]) if isinstance(run.origin.problem, dict) else {}
        heads = {"tpr": "TPR", "fpr": "FPR", "positive_rate": "selected", "error": "error", "loss": "loss"}
        rows = [["group", "people", *(heads[name] for name in known)]]
        for place, group in enumerate(groups):
            values = [float(run[name].values[-1, place]) for name in known]
            cells = [
                "no data" if not np.isfinite(value) else f"{value:.3f}" if name == "loss" else f"{100 * value:.0f} %"
                for name, value in zip(known, values, strict=True)
            ]
            count = sizes.get(group, sizes.get(str(group)))
            rows.append([str(group), "" if count is None else f"{count:,}", *cells])
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        return [
            "  "
            + "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]

    def what_if(
        self,
        weights: Mapping[Any, float] | None = None,
        proportions: Mapping[Any, float] | None = None,
        without: Sequence[str] = (),
        thresholds: Mapping[Hashable, float] | None = None,
        stop: float | None = None,
    ) -> Preview:
        """The preview of another training, or of other decisions: it equals that of data edited in this way.

        >>> rng = np.random.default_rng(0)
        >>> data = GroupedData(rng.normal(size=(600, 3)), rng.integers(0, 2, 600), ["a", "b"] * 300)
        >>> view = preview(*data.split(0.4))
        >>> strict = view.what_if(thresholds={"a": 0.9})
        >>> bool(strict.run["positive_rate"].sel(group="a")[-1] < view.run["positive_rate"].sel(group="a")[-1])
        True

        Args:
            weights: Factor on the loss of each group, or of each (group, label).
            proportions: How often each group is drawn.
            without: Columns that the network does not see.
            thresholds: Probability of the positive label above which a group is decided positive.
            stop: Progress at which training stops, between 0 and 1.
        """
        train, held_out, asked = self._data("what_if")
        if stop is not None:
            checked_share("stop", stop) if stop != 1.0 else None
        _check_thresholds(thresholds, train)
        if isinstance(without, str):
            without = (without,)
        if without:
            train, held_out = _without(train, without), _without(held_out, without)
        changed = _Asked(
            asked.loss,
            _combined(asked.weights, weights),
            asked.proportions if proportions is None else proportions,
            asked.thresholds if thresholds is None else thresholds,
            asked.stop if stop is None else stop,
            asked.model,
            asked.recipe,
        )
        return Preview.of(train, held_out, changed, self)

    def _data(self, what: str) -> tuple[GroupedData, GroupedData, _Asked]:
        if self._given is None:
            raise ValueError(f"`{what}` needs the table, which a saved preview does not hold: make the preview again.")
        return self._given


def _check_thresholds(thresholds: Mapping[Hashable, float] | None, train: GroupedData) -> None:
    if thresholds is None:
        return
    if len(train.labels) != 2:
        raise ValueError(f"`thresholds` are for two labels. Found {len(train.labels)} different ones.")
    for group, value in thresholds.items():
        if group not in train.groups:
            raise KeyError(f"`thresholds`: no group {group!r}. There are: {', '.join(map(repr, train.groups))}.")
        if isinstance(value, bool) or not 0 < value < 1:
            raise ValueError(f"`thresholds` should be probabilities strictly between 0 and 1. Found {value!r}.")


def _combined(one: Mapping[Any, float] | None, other: Mapping[Any, float] | None) -> Mapping[Any, float] | None:
    return one if other is None else other


def _without(data: GroupedData, names: Sequence[str]) -> GroupedData:
    """The same points without some columns; a column of words goes with all of its values."""
    from tiltmeter.preview.inputs import column_names

    known = column_names(data)
    away = []
    for name in names:
        own = [place for place, column in enumerate(known) if column == name or column.startswith(f"{name} = ")]
        if not own:
            listed = ", ".join(dict.fromkeys(column.partition(" = ")[0] for column in known))
            raise KeyError(f"`without`: no column {name!r}. There are: {listed}.")
        away += own
    kept = [place for place in range(len(known)) if place not in away]
    if not kept:
        raise ValueError("`without` should leave a column to learn from. Found none left.")
    smaller = data.with_points(data.x[:, kept])
    if data.reading is None or len(data.reading.columns) != len(known):
        return smaller
    from dataclasses import replace

    return smaller.with_reading(replace(data.reading, columns=tuple(known[place] for place in kept)))


def _solve(train: GroupedData, held_out: GroupedData, asked: _Asked, known: _Solved | None) -> _Solved:
    inputs = inputs_of(train, held_out, asked.loss, asked.weights, asked.proportions)
    same = (
        known is not None and known.inputs.train.x.shape == inputs.train.x.shape and known.inputs.names == inputs.names
    )
    if same and known is not None:
        features = known.features
        by_columns = known.by_columns
    else:
        features = columns_and_units(inputs.train.x)
        by_columns = solve(inputs, columns(inputs.train.x))
    only_decisions = (
        same
        and known is not None
        and np.array_equal(known.inputs.train.mass, inputs.train.mass)
        and known.course.progress[-1] >= 1.0
    )
    course = known.course if only_decisions and known is not None else solve(inputs, features)
    return _Solved(inputs, features, course.until(asked.stop), by_columns)


def solve(inputs: Inputs, features: Features) -> Course:
    """The course of the held-out scores in the theory of these features."""
    held = features.of(inputs.held_out.x)
    labels, mass = inputs.held_out.labels, inputs.held_out.mass

    def judged(weights: np.ndarray) -> float:
        return mean_loss(held @ weights, labels, mass, inputs.kind)

    path = flow(features.of(inputs.train.x), inputs.train.labels, inputs.train.mass, inputs.kind, judge=judged)
    scores = np.stack([held @ weights for weights in path.weights])
    return course_of(scores, labels, mass, inputs.kind, path.times)


def end_rates(inputs: Inputs, scores: np.ndarray) -> dict[str, np.ndarray]:
    """Every group's end rates by scores (points, outputs)."""
    data, codes, count = inputs.held_out_data, inputs.held_out.codes, len(inputs.groups)
    mass = inputs.held_out.mass

    def share(holds: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
        counted = mass if where is None else mass * where
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.bincount(codes, counted * holds, count) / np.bincount(codes, counted, count))

    if inputs.kind == "classes":
        return {"error": share(scores.argmax(1) != data.y)}
    if len(inputs.classes) != 2:
        return {}
    cut = 0.0 if inputs.kind == "binary" else sum(inputs.classes) / 2
    decided, positive = scores[:, 0] > cut, data.y == inputs.classes[1]
    return {
        "positive_rate": share(decided),
        "tpr": share(decided, positive),
        "fpr": share(decided, ~positive),
        "error": share(decided != positive),
    }


def _doubt(solved: _Solved) -> Doubt:
    inputs = solved.inputs
    ends = (end_rates(inputs, course.scores[-1]) for course in (solved.course, solved.by_columns))
    return doubt_of(gain_of(inputs, float(solved.course.loss[-1])), disagreement_of(*ends, inputs), inputs.tabular)


def _settings(solved: _Solved, doubt: Doubt) -> dict[str, Any]:
    inputs = solved.inputs
    return {
        "method": {"name": "Preview"},
        "train": inputs.data.to_json(),
        "loss": inputs.loss.definition,
        "calculation": {
            "rows": len(inputs.train.labels),
            "rows_of_the_table": inputs.sampled or len(inputs.train.labels),
            "features": int(solved.course.scores.shape[1] and solved.features.of(inputs.train.x[:1]).shape[1]),
            "gain": doubt.gain,
            "disagreement": doubt.disagreement,
            "holds": doubt.holds,
            "why": doubt.why,
        },
        "copies": 0,
        "promise": None,
    }


def _with_band(run: Trajectory, solved: _Solved, doubt: Doubt) -> Trajectory:
    """The run with the 90 % band of every gap at its end."""

    if not doubt.holds:
        return run
    people = denominators(solved.inputs)
    groups = list(solved.inputs.groups)
    pairs = list(combinations(range(len(groups)), 2))
    curves: dict[str, xr.DataArray] = dict(run)
    for name, counts in people.items():
        if name not in run or not pairs:
            continue
        values = run[name].values
        variance = rate_variance(values[-1], counts)
        first, second = (np.array(side) for side in zip(*pairs, strict=True))
        half = half_width(
            "gap", np.minimum(counts[first], counts[second]), variance[first] + variance[second], doubt.disagreement
        )
        gap = values[-1, first] - values[-1, second]
        coords = {"time": run[name].time.values, "pair": [f"{groups[a]} vs {groups[b]}" for a, b in pairs]}
        attrs = {"better": "neither", "long_name": f"limit of the gap in {name} in nine of ten trainings"}
        for word, edge in (("low", np.maximum(gap - half, -1.0)), ("high", np.minimum(gap + half, 1.0))):
            whole = np.full((len(values), len(pairs)), np.nan)
            whole[-1] = edge
            curves[f"{name}_gap_{word}"] = xr.DataArray(whole, coords, ("time", "pair"), attrs=attrs)
    promise = {
        "from": 1.0,
        "level": 0.1,
        "method": "Preview",
        "copies": 0,
        "reliable_until": 1.0,
        "sentence": "Computed from the table, 90 % band for the end of the training",
    }
    origin = Origin(run.origin.source, run.origin.problem, {**run.origin.settings, "promise": promise})
    return replace_origin(run, curves, origin)


def replace_origin(run: Trajectory, curves: Mapping[str, xr.DataArray], origin: Origin) -> Trajectory:
    """The same run with other curves and another account of where they come from."""
    return Trajectory(curves, run.clock, origin, run.diverged, points=run.points)
