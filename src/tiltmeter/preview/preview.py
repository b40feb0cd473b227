"""preview: what the theory of the user's own table says of a training, before any network is trained."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.arguments import checked_share
from tiltmeter.data.grouped import GroupedData
from tiltmeter.leaders.headline import Headline, term
from tiltmeter.leaders.leaders import leaders
from tiltmeter.preview.causes import DEALS, Causes, Contrast, causes_of
from tiltmeter.preview.curves import Course, run_of
from tiltmeter.preview.doubt import Doubt, disagreement_of, doubt_of, fall_of, with_band
from tiltmeter.preview.edits import checked_thresholds, without_columns
from tiltmeter.preview.flow import point_losses
from tiltmeter.preview.inputs import Inputs
from tiltmeter.preview.ladder import Ladder, ladder_of
from tiltmeter.preview.solution import Asked, Solution, end_rates, solution
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name
from tiltmeter.threads import one_blas_thread

if TYPE_CHECKING:
    from tiltmeter.preview.confirm import Confirmed

#: What a preview says of itself, in every text.
COMPUTED = "Computed from the table; your network was not trained."
#: The columns of the printed table, and their heads.
HEADS = {"tpr": "TPR", "fpr": "FPR", "positive_rate": "selected", "error": "error", "loss": "loss"}


def preview(
    train: Any,
    held_out: GroupedData | None = None,
    model: Any = None,
    recipe: Any = None,
    *,
    label: Hashable | None = None,
    group: Any = None,
    positive: Hashable | None = None,
) -> Preview:
    """What the theory of your table says of a training: every group's curves, who will be worse off, and why.

    >>> rng = np.random.default_rng(0)
    >>> x, late = rng.normal(size=(4000, 5)), rng.random(4000) < 0.3
    >>> y = (x[:, 0] + np.where(late, 1.5, 0.2) * rng.normal(size=4000) > 0).astype(int)
    >>> view = preview(*GroupedData(x, y, np.where(late, "late", "early")).split(0.3))
    >>> print(view.claim)
    Group late will have the higher error: 30 % against 6 %. 24 points apart, 17 to 31.

    A linear theory is solved on the columns of the table and on random units that are never trained: gradient flow from
    zero, until the pooled held-out loss is least. No network is trained. On tables its end rates are about as close to
    a training as another seed of that training is; docs/preview.md says how close, on tables that were not used to
    build it.

    Of a network (`model`) only what does not learn is used: where all layers but the last are frozen, the theory is
    that of its last layer, whose inputs are computed. `recipe` brings the loss, group weights and proportions; a
    preview knows no interventions. Tables need neither torch nor a recipe.

    Args:
        train: Points that a network would be trained on: GroupedData, or a table with `label` and `group`.
        held_out: Points that judge it; None: a fifth of `train` is set aside.
        model: Network whose frozen layers give the features; None: the columns.
        recipe: Training settings whose loss, weights and proportions are used; None: the loss that fits the labels.
        label: Of a table: the column to predict.
        group: Of a table: the column of groups, or several.
        positive: Of a table: which of two labels is a yes.
    """
    if label is not None or group is not None:
        train = GroupedData.from_frame(train, label=label, group=group, positive=positive)
    if not isinstance(train, GroupedData):
        raise TypeError(
            "`train` should be GroupedData, or a table with its columns, as tm.preview(table, label='repaid', "
            f"group='sex'). Found {type(train).__name__}."
        )
    if held_out is None:
        train, held_out = train.split()
    frozen = False
    if model is not None:
        from tiltmeter.preview.network_features import frozen_features

        found = frozen_features(model, train, held_out)
        if found is not None:
            (train, held_out), frozen = found, True
    return Preview.of(train, held_out, Asked.of(recipe, frozen))


class Preview(NotebookText):
    """The answer of `tm.preview`: curves, causes, what-ifs; it prints as who will be worse off, and how sure that is.

    >>> rng = np.random.default_rng(0)
    >>> data = GroupedData(rng.normal(size=(600, 3)), rng.integers(0, 2, 600), ["a", "b"] * 300)
    >>> view = preview(*data.split(0.4))
    >>> view.run.clock, float(view.run["loss"].time[-1])
    ('progress', 1.0)

    `run` is a `Trajectory` over *progress*: the share of the fall of the pooled held-out loss, 1 at its minimum. Its
    gaps have a band at the end where nine of ten trainings lie; `leaders` names nobody who is not clear by both the
    held-out points and this band.

    Args:
        run: Every group's curves over progress.
        doubt: Whether the preview holds for networks, and why not where it does not.
    """

    def __init__(self, run: Trajectory, doubt: Doubt) -> None:
        self.run, self.doubt = run, doubt
        self._given: tuple[GroupedData, GroupedData, Asked] | None = None
        self._solution: Solution | None = None
        self._causes: dict[Any, Causes] = {}
        self._ladder: Ladder | None = None

    @classmethod
    def of(cls, train: GroupedData, held_out: GroupedData, asked: Asked, like: Preview | None = None) -> Preview:
        """Solve the theory of these data; an edited copy takes over what stays the same in `like`."""
        with one_blas_thread():
            solved = solution(train, held_out, asked, None if like is None else like._solution)
            ends = [end_rates(solved.inputs, course.scores[-1]) for course in (solved.whole, solved.by_columns)]
            disagreement = disagreement_of(ends[0], ends[1], solved.inputs)
            tabular = solved.inputs.tabular or asked.frozen
            doubt = doubt_of(disagreement, tabular, _fall(solved)) if like is None else like.doubt
            run = run_of(solved.inputs, solved.course, _settings(solved, doubt), asked.thresholds)
            made = cls(with_band(run, solved.inputs, doubt), doubt)
        made._given, made._solution = (train, held_out, asked), solved
        return made

    @cached_property
    def headline(self) -> Headline:
        """The claim as every surface of tiltmeter makes it."""
        return leaders(self.run).headline

    @property
    def claim(self) -> str:
        """Who will be worse off in one sentence, or that nothing is clear."""
        if not self.doubt.holds:
            return "This preview does not hold for networks, so nobody is named: rehearse yours (`tm.forecast`)."
        if self.run.origin.settings.get("promise") is None:
            return self._without_band()
        return f"{self.headline.claim} {self.headline.gap}".strip()

    def _without_band(self) -> str:
        """The end values of the loss, of which no band is known."""
        values, groups = self.run["loss"].values[-1], self._groups()
        order = np.argsort(-values)[:3].tolist()
        listed = ", ".join(f"{values[place]:.3g} for {group_name(groups[place])}" for place in order)
        more = "" if len(groups) <= len(order) else ", less for the others"
        return f"The loss will be {listed}{more}; previews have no band for it, so nobody is named."

    @property
    def named(self) -> Hashable:
        """The group that will be worse off by the claim; "" where nobody is named."""
        pair, leader = self.headline.pair, self.headline.leader
        if pair is None or not self.doubt.holds or leader == "":
            return ""
        return next((one for one in pair if one != leader), "")

    @property
    def group(self) -> Hashable:
        """The group whose gap is explained: the one that is named, else the one with the worse end value."""
        groups = self._groups()
        if self.named in groups:
            return self.named
        values = self.run[self.curve].values[-1]
        worst = np.nanargmin(values) if self.curve in ("tpr", "positive_rate") else np.nanargmax(values)
        return groups[int(worst)]

    @property
    def curve(self) -> str:
        """The curve whose gap is asked about: the declared rate of the question, else that of the claim."""
        question = None if self._given is None else self._given[1].question
        if question is not None and question.asked in self.run:
            return question.asked
        curve = self.headline.curve
        rate = curve in self.run and curve != "squared_error"
        return curve if rate and self.doubt.holds else "loss"

    @property
    def inputs(self) -> Inputs:
        """The data as the theory reads them; a saved preview has none."""
        if self._solution is None:
            raise ValueError("This needs the table, which a saved preview does not hold: make the preview again.")
        return self._solution.inputs

    @property
    def course(self) -> Course:
        """The held-out scores over progress; a saved preview has none."""
        if self._solution is None:
            raise ValueError("This needs the table, which a saved preview does not hold: make the preview again.")
        return self._solution.course

    def by_columns(self) -> dict[str, list[float]]:
        """Every group's end rates by a linear model of the columns alone, without random units."""
        inputs = self.inputs
        assert self._solution is not None
        ends = end_rates(inputs, self._solution.by_columns.scores[-1])
        return {name: values.tolist() for name, values in ends.items()}

    def __str__(self) -> str:
        lines = [self.claim]
        if not self.doubt.holds:
            lines.append(f"The reason: {self.doubt.why}.")
        lines.append(" ".join(filter(None, (COMPUTED, self.band_sentence()))))
        read = self._read()
        if read:
            lines.append(read)
        return "\n".join([*lines, *self._table()])

    def band_sentence(self) -> str:
        """How far the gap of a training may be from this one, in one sentence; "" without a band."""
        low, high = (self.run.get(f"{self.curve}_gap_{word}") for word in ("low", "high"))
        if low is None or high is None:
            return ""
        half = (high.values[-1] - low.values[-1]) / 2.0
        if not np.isfinite(half).any():
            return ""
        points = f"{100 * float(np.nanmax(half)):.0f}"
        word = "point" if points == "1" else "points"
        return f"The gap in {term(self.curve)} of a training of yours differs by up to {points} {word} in nine of ten."

    def _read(self) -> str:
        facts: Any = self.run.origin.settings["calculation"]
        if facts["rows"] == facts["rows_of_the_table"]:
            return ""
        return f"The theory read {facts['rows']:,} of {facts['rows_of_the_table']:,} training rows, drawn at random."

    def _groups(self) -> list[Hashable]:
        return list(self.run["loss"].coords["group"].values.tolist())

    def _table(self) -> list[str]:
        """Every group's people and end rates."""
        facts: Any = self.run.origin.problem
        sizes = {str(group): size for group, size in facts["held_out"]["sizes"]}
        known = [name for name in HEADS if name in self.run]
        rows = [["group", "people", *(HEADS[name] for name in known)]]
        for place, group in enumerate(self._groups()):
            values = [float(self.run[name].values[-1, place]) for name in known]
            cells = [
                "no data" if not np.isfinite(value) else f"{value:.3f}" if name == "loss" else f"{100 * value:.0f} %"
                for name, value in zip(known, values, strict=True)
            ]
            rows.append([group_name(group), f"{sizes.get(str(group), 0):,}", *cells])
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        return [
            "  " + "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
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
        """The preview of another training, or of other decisions: its curves equal those of data edited in this way.

        >>> rng = np.random.default_rng(0)
        >>> data = GroupedData(rng.normal(size=(600, 3)), rng.integers(0, 2, 600), ["a", "b"] * 300)
        >>> view = preview(*data.split(0.4))
        >>> strict = view.what_if(thresholds={"a": 0.9})
        >>> bool(strict.run["positive_rate"].sel(group="a")[-1] < view.run["positive_rate"].sel(group="a")[-1])
        True

        The doubt, and so the width of the band, is that of this preview.

        Args:
            weights: Factor on the loss of each group, or of each (group, label).
            proportions: How often each group is drawn.
            without: Columns that the network does not see.
            thresholds: Probability of the positive label above which a group is decided positive.
            stop: Progress at which training stops, between 0 and 1.
        """
        if self._given is None:
            raise ValueError("`what_if` needs the table, which a saved preview does not hold: make the preview again.")
        train, held_out, asked = self._given
        if stop is not None and stop != 1.0:
            checked_share("stop", stop)
        if thresholds is not None:
            checked_thresholds(thresholds, train)
        if without:
            names = (without,) if isinstance(without, str) else tuple(without)
            train, held_out = without_columns(train, names), without_columns(held_out, names)
        changed = Asked(
            asked.loss,
            asked.weights if weights is None else weights,
            asked.proportions if proportions is None else proportions,
            asked.thresholds if thresholds is None else thresholds,
            asked.stop if stop is None else float(stop),
            asked.frozen,
        )
        return Preview.of(train, held_out, changed, self)

    def causes(self, curve: str | None = None, group: Hashable = None, deals: int = DEALS) -> Causes:
        """Which property of the data makes the gap, early, middle and late: in populations where it is absent.

        >>> rng = np.random.default_rng(1)
        >>> late = rng.random(6000) < 0.4
        >>> x = rng.normal(size=(6000, 3)) + np.outer(late, [1.0, 0.0, 0.0])
        >>> y = (x[:, 0] + rng.normal(size=6000) > 0.5).astype(int)
        >>> view = preview(*GroupedData(x, y, np.where(late, "late", "early")).split(0.4))
        >>> view.causes("fpr").top().cause
        'position'

        People are reweighted, their values stay: each of share, base rate, position, spread and rule is absent in one
        population, the theory of the columns is solved again there, and the change of the gap is added to that of the
        preview. A cause is named where its change exceeds those of random groups, for all causes and phases together,
        and three points; of rates only at the end, of the loss in every phase.

        Args:
            curve: Curve whose gap is explained; None: the declared rate of the question, else that of the claim.
            group: Group whose gap to the others it is; None: the one that the claim is about.
            deals: Random groups behind the limits; 0: nothing is held back.
        """
        curve = self.curve if curve is None else curve
        group = self.group if group is None else group
        key = curve, group, deals
        if key not in self._causes:
            if self._solution is None:
                known = ", ".join(f"{name} of {who}" for name, who, _ in self._causes) or "none"
                raise ValueError(f"A saved preview holds the causes that were asked for before it was saved: {known}.")
            with one_blas_thread():
                inputs = self.inputs
                contrast = Contrast(_checked_curve(curve, inputs), *self._sides(group))
                self._causes[key] = causes_of(inputs, self._solution.whole, contrast, deals=deals)
        return self._causes[key]

    def ladder(self) -> Ladder:
        """The directions of the table in the order in which they are learned, and what each adds to the loss gap.

        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(2000, 2)) * [3.0, 1.0]
        >>> data = GroupedData(x, np.sign(x[:, 1]), np.where(x[:, 0] > 0, "a", "b"))
        >>> len(preview(*data.split(0.4)).ladder().modes)
        3
        """
        if self._ladder is None:
            self._ladder = ladder_of(self.inputs, *self._sides(self.group))
        return self._ladder

    def _sides(self, group: Hashable) -> tuple[int, int | None]:
        groups = self._groups()
        if group not in groups:
            raise KeyError(f"No group {group!r}. There are: {', '.join(map(repr, groups))}.")
        if len(groups) < 2:
            raise ValueError("There is one group only: nothing to compare.")
        place = groups.index(group)
        return place, (1 - place if len(groups) == 2 else None)

    def on_steps(self, model: Any, recipe: Any) -> Trajectory:
        """The same curves over the steps of a training; the first 2 % of its steps are taken on a copy of the network.

        These steps tell how many of them a unit of the theory's time takes. The factor is measured once: a training
        that changes its pace, by a schedule or late in Adam, is not followed. The run ends with the training. Of a
        linear model under plain SGD with the squared loss (in `recipe` of the preview, too) the mean run is exact, and
        nothing is trained.

        Args:
            model: Network that would be trained; it is not changed.
            recipe: Its training settings.
        """
        if self._given is None or self._solution is None:
            raise ValueError("`on_steps` needs the table, which a saved preview does not hold: make the preview again.")
        from tiltmeter.preview.steps import exact_layer, exact_over_steps, over_steps

        train, held_out, _ = self._given
        layer = exact_layer(model, recipe, self.inputs)
        if layer is not None:
            return exact_over_steps(self.run, self.inputs, layer, recipe)
        return over_steps(self.run, self._solution.course, train, held_out, model, recipe)

    def confirm(self, top: int = 2, seeds: int = 5, model: Any = None, recipe: Any = None) -> Confirmed:
        """Train networks in the populations of the largest causes, and print what came beside what was said.

        Nothing was trained so far: this trains `seeds` networks in each population and as many without a change.
        `tiltmeter init`'s network and settings are taken where none are given.

        Args:
            top: How many of the largest causes at the end are tried.
            seeds: Trainings in every population, paired by seed.
            model: Function that makes the network; None: one hidden layer of 64 units.
            recipe: Training settings; None: AdamW with a learning rate of 0.001, 2,000 steps of 32 points.
        """
        from tiltmeter.preview.confirm import confirmed

        return confirmed(self.inputs, self.causes(), self._sides(self.group), top, seeds, model, recipe)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Keep curves, causes and ladder in a new folder: no inputs, no weights. `tm.results.load_preview` reads it.

        Args:
            folder: The new folder.
        """
        from tiltmeter.preview.saved import save_preview

        return save_preview(self, Path(folder))


def _fall(solved: Solution) -> float:
    """The fall of the pooled held-out loss in standard errors."""
    rows, kind = solved.inputs.held_out, solved.inputs.kind
    first, last = (point_losses(solved.whole.scores[place], rows.labels, kind) for place in (0, -1))
    return fall_of(first, last, rows.mass)


def _checked_curve(curve: str, inputs: Inputs) -> str:
    known = ["loss"]
    if inputs.kind == "classes":
        known.append("error")
    elif len(inputs.classes) == 2:
        known += ["error", "positive_rate", "tpr", "fpr"]
    if curve not in known:
        raise KeyError(f"`curve`: no gap of {curve!r} can be explained. There are: {', '.join(known)}.")
    return curve


def _settings(solved: Solution, doubt: Doubt) -> dict[str, Any]:
    inputs = solved.inputs
    rows = len(inputs.train.labels)
    return {
        "method": {"name": "Preview"},
        "train": inputs.data.to_json(),
        "loss": inputs.loss.definition,
        "calculation": {
            "rows": rows,
            "rows_of_the_table": inputs.sampled or rows,
            "disagreement": doubt.disagreement,
            "holds": doubt.holds,
            "why": doubt.why,
        },
        "copies": 0,
        "promise": None,
    }
