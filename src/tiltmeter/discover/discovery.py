"""Discovery: the groups that were found and which of them are clear, as one frozen result that names any rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.discover.clusters import Layer, checked_features, contact_sheet, layer_columns, words_of_labels
from tiltmeter.discover.curves import LearningCurves, regrouped
from tiltmeter.discover.group import (
    EVERYONE_ELSE,
    VERDICTS,
    DiscoveredGroup,
    and_more,
    clear_when,
    counted,
    judged_points,
    rounded,
    subject_of,
    told_apart,
)
from tiltmeter.discover.rules import Columns, InCluster, columns_of
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS
from tiltmeter.record.labelled import JSON
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, percent, shortened, visible

if TYPE_CHECKING:
    import pandas as pd

#: Columns that are named in a sentence.
NAMED = 3


@dataclass(frozen=True)
class Discovery(NotebookText):
    """Groups that nobody labelled, found on some held-out points and judged on the others.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> x, jobs = rng.normal(size=(2000, 3)).astype("float32"), rng.choice(["clerk", "cook", "driver"], 2000)
    >>> y = (np.where(jobs == "cook", x[:, 1], x[:, 0]) > 0).astype(int)  # cooks have a rule of their own
    >>> data = tm.GroupedData(x, y, ["all"] * 2000)
    >>> run = tm.train(torch.nn.Linear(3, 1), data, data, tm.Recipe(lr=0.5, steps=30))
    >>> result = tm.discover(run, {"job": jobs})
    >>> print(result.claim)
    The group job = cook, 33 % of the points, is worse off at the end: its loss is 0.73, that of everyone else 0.37.
    >>> result.parts
    ('job = cook', 'everyone else')

    `parts` are the groups of `group` and `data`: every point belongs to the smallest clear group that holds it, else to
    "everyone else".

    Args:
        groups: Every rule that was tried, the clear ones first.
        parts: Groups of `group` and `data`: the clear ones and "everyone else".
        level: Error rate of all statements together.
        searched: Points on which rules were found.
        judged: Points on which they were judged.
        evaluations: Evaluations that were tested together.
        seeds: Seeds of the run.
        clock: What time counts: "step", "epoch", "round" or "t".
        source: What made the run: "training" or "forecast".
        promise: What a forecast promises, in words; empty for a training.
        left_out: Columns that offered no rules, and why.
        notes: Other remarks.
        layers: What is needed to find the clusters of features again.
        curves: Loss of every held-out point over training; not stored.
        judges: Places of the points that judged; not stored.
        columns: Table of the held-out points; not stored.
    """

    groups: tuple[DiscoveredGroup, ...]
    parts: tuple[str, ...]
    level: float
    searched: int
    judged: int
    evaluations: int
    seeds: int
    clock: str
    source: str = "training"
    promise: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    layers: Mapping[str, Layer] = field(default_factory=dict, repr=False, compare=False)
    curves: LearningCurves | None = field(default=None, repr=False, compare=False)
    judges: np.ndarray | None = field(default=None, repr=False, compare=False)
    columns: Columns | None = field(default=None, repr=False, compare=False)

    @property
    def clear(self) -> tuple[DiscoveredGroup, ...]:
        """The findings: groups that are clearly worse off at the end, or clearly learned later."""
        return tuple(group for group in self.groups if group.clear)

    def __getitem__(self, key: int | str) -> DiscoveredGroup:
        """One group, by its place in `groups` or by its name."""
        if isinstance(key, (int, np.integer)):
            if not -len(self.groups) <= key < len(self.groups):
                raise KeyError(f"No group {key}: {len(self.groups)} were found.")
            return self.groups[key]
        for group in self.groups:
            if group.name == key:
                return group
        names = shortened(", ".join(repr(group.name) for group in self.groups), 300)
        raise KeyError(f"No group {key!r}. There are: {names or 'none'}.")

    def group(self, table: Any = None, features: Any = None, labels: Any = None) -> np.ndarray:
        """The group of every row, of any rows with the same columns: those that were trained on, too.

        Groups of features need `features` of the same layers, and `labels`. Without any argument, the held-out points
        of the run.
        """
        columns = self._columns(table, features, labels)
        rows = len(next(iter(columns.values()))) if columns else 0
        groups = np.full(rows, EVERYONE_ELSE, dtype=object)
        for group in sorted(self.clear, key=lambda group: -group.points):  # the smallest is written last
            groups[group.rule.holds(columns)] = group.name
        return groups

    def data(self, grouped: GroupedData, table: Any = None, features: Any = None) -> GroupedData:
        """The same points in the groups that are clear, to forecast, advise, intervene or report on.

        `table` (or `features`) has one row for every point. Without it, `grouped` should be the held-out data.
        """
        if not self.clear:
            raise ValueError("No group is clear, so there are none to divide the data into.")
        if table is None and features is None:
            self._check_held_out(grouped)
        labels = None if features is None else grouped.y
        members = self.group(table, features, labels)
        if len(members) != len(grouped):
            raise ValueError(
                f"`table` should have a row for each of {len(grouped):,} points. Found {len(members):,} rows."
            )
        present = [part for part in self.parts if (members == part).any()]
        others = [part for part in dict.fromkeys(members.tolist()) if part not in present]
        return GroupedData(grouped.x, grouped.y, members, grouped.weights, groups=[*present, *others])

    def run(self, key: int | str | None = None) -> Trajectory:
        """The run on the points that judged, in two groups: this one, and whom it was compared with.

        Without a key, in all clear groups, as `group` divides the points; for a report, for example.
        """
        if self.curves is None or self.judges is None or self.columns is None:
            raise ValueError(
                "The run is not stored with a discovery. Call `tm.discover` on it again: the same seed gives the same."
            )
        if key is not None:
            group = self[key]
            places, codes = judged_points(group.rule, self.columns, self.judges)
            return regrouped(self.curves, places, codes, (group.name, group.against), max(len(self.groups), 1))
        if not self.clear:
            raise ValueError("No group is clear, so there are none to divide the points into.")
        places = np.flatnonzero(self.judges)
        members = self.group()[places]
        parts = [part for part in self.parts if (members == part).any()]
        return regrouped(self.curves, places, np.array([parts.index(member) for member in members]), parts)

    def write_examples(
        self, folder: str | os.PathLike[str], images: Any = None, texts: Sequence[str] | None = None
    ) -> tuple[Path, ...]:
        """Write the examples of every group to a new folder, for you to look at; where they were written.

        `images` or `texts` hold one for every held-out point. A sheet of images has two rows, and a file of text two
        parts: the points nearest to the centre of the group, and those with the largest loss at the end.
        """
        given, place = (images if texts is None else texts), Path(folder)
        if given is None or (images is not None and texts is not None):
            raise TypeError("`images` or `texts` should hold one for every held-out point. Found both or neither.")
        if self.curves is not None and len(given) != self.curves.points:
            raise ValueError(f"There should be one for each of {self.curves.points:,} points. Found {len(given):,}.")
        if place.exists():
            raise ValueError(f"`folder` should be a new folder. Found {place}.")
        shown = [group for group in self.groups if group.nearest]
        if not shown:
            raise ValueError("Only groups of features have examples. Found none.")
        place.mkdir(parents=True)
        written = []
        for number, group in enumerate(shown, 1):
            file = place / f"group-{number}.{'png' if texts is None else 'txt'}"
            if texts is None:
                file.write_bytes(contact_sheet(images, (group.nearest, group.hardest)))
            else:
                parts = {"Nearest to the centre:": group.nearest, "Largest loss at the end:": group.hardest}
                lines = [line for head, places in parts.items() for line in (head, *(texts[at] for at in places), "")]
                text = "\n".join(visible(str(line)) for line in (group.name, "", *lines))
                file.write_text(text, encoding="utf-8")
            written.append(file)
        return tuple(written)

    def to_frame(self) -> pd.DataFrame:
        """One row for each group that was tried."""
        import pandas as pd

        names = ("name", "verdict", "points", "share", "loss", "loss_of_others", "first", "last", "score", "target")
        return pd.DataFrame([{name: getattr(group, name) for name in names} for group in self.groups], columns=names)

    def to_json(self) -> dict[str, JSON]:
        names = ("level", "searched", "judged", "evaluations", "seeds", "clock", "source", "promise")
        return {
            "claim": self.claim,
            "licence": self.licence,
            **{name: getattr(self, name) for name in names},
            "groups": [group.to_json() for group in self.groups],
            "parts": list(self.parts),
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
            "layers": {name: layer.to_json() for name, layer in self.layers.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Discovery:
        """The discovery that `to_json` wrote; it names groups of any rows, but no longer holds the run."""
        parts = {name: part for name, part in value.items() if name not in ("claim", "licence")}
        parts["groups"] = tuple(DiscoveredGroup.from_json(group) for group in value["groups"])
        parts |= {name: tuple(value[name]) for name in ("parts", "notes")}
        parts["layers"] = {name: Layer.from_json(layer) for name, layer in value["layers"].items()}
        return cls(**parts)

    @property
    def claim(self) -> str:
        """The answer in one line."""
        forecast = self.source == "forecast"
        worse = [group for group in self.groups if group.verdict == "worse at the end"]
        later = [group for group in self.groups if group.verdict == "learned later"]
        if not worse and not later:
            what = "will clearly be worse off or learned later" if forecast else "is clearly worse off or learned later"
            return f"No group that {'the features' if self.layers else 'the table'} can name {what}."
        sentences = []
        if worse:
            group, be = worse[0], "will be" if forecast else "is"
            high, low = told_apart(group.loss, group.loss_of_others)
            sentences.append(
                f"{subject_of(group)} {be} worse off at the end: its loss {be} {high}, that of {group.against} {low}."
                f"{and_more(len(worse) - 1, 'worse off at the end', forecast)}"
            )
        if later:
            group, be = later[0], "will be" if forecast else "is"
            when, not_be = clear_when(group, self.clock), "will not be" if forecast else "is not"
            end = f"at the end it {not_be} clearly higher"
            if group.caught_up:
                end = f"by the end it {'will have' if forecast else 'has'} clearly caught up"
            sentences.append(
                f"{subject_of(group)} {be} learned later: its loss {be} clearly higher {when}; {end}."
                f"{and_more(len(later) - 1, 'learned later', forecast)}"
            )
        return " ".join(sentences)

    @property
    def licence(self) -> str:
        """What the claim rests on, in one line."""
        runs = "One run" if self.seeds == 1 else f"{self.seeds} {'runs' if self.seeds < FEWEST_SEEDS else 'seeds'}"
        if self.source == "forecast":
            runs = f"Forecast. {self.promise}" if self.promise else "Forecast"
        count = len(self.groups)
        if not count:
            rest = (
                f"{runs}: no rule stood out on {self.searched:,} points, so {self.judged:,} others had none to judge."
            )
        else:
            rules = f"{count} rule{'s' if count > 1 else ''}"
            together = "one evaluation" if self.evaluations == 1 else f"{self.evaluations} evaluations"
            rest = (
                f"{runs}: {rules} found on {self.searched:,} points and judged on {self.judged:,} others, {together} "
                f"tested together, {100 * self.level:g} % error rate."
            )
        counts = {verdict: sum(group.verdict == verdict for group in self.groups) for verdict in VERDICTS}
        if counts["not clear"]:
            rest += f" {counted(counts['not clear'])} not clear."
        if counts["not judged"]:
            rest += f" {counted(counts['not judged'])} not judged: too few points."
        if self.clear:
            rest += " Other names may describe much the same points."
        return " ".join([rest, *self._remarks()])

    def __str__(self) -> str:
        return f"{visible(self.claim)}\n{visible(self.licence)}"

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads of a table of the groups."""
        return "group", "", "points", "share", "loss at the end", "of the others"

    def cells(self, group: DiscoveredGroup) -> tuple[str, ...]:
        """One group as a row of that table."""
        losses = rounded(group.loss), rounded(group.loss_of_others)
        return group.name, self.verdict_text(group), f"{group.points:,}", percent(group.share), *losses

    def _repr_html_(self) -> str:
        style = " style='text-align:left'"
        rows = "".join(
            "<tr>" + "".join(f"<td{style * (k < 2)}>{escape(cell)}</td>" for k, cell in enumerate(self.cells(group)))
            for group in self.groups
        )
        head = "".join(f"<th{style}>{name}</th>" for name in self.heads)
        table = f"<table><tr>{head}</tr>{rows}</table>" if rows else ""
        claim, licence = (escape(visible(line)) for line in (self.claim, self.licence))
        return f"<div><p>{claim}</p>{table}<p><small>{licence}</small></p></div>"

    def verdict_text(self, group: DiscoveredGroup) -> str:
        """The verdict with its steps, as a table shows it."""
        if group.verdict == "learned later":
            return (
                f"clear: learned later, {clear_when(group, self.clock)}{', then caught up' if group.caught_up else ''}"
            )
        return {"worse at the end": "clear: worse at the end", "not clear": "found, not clear"}.get(
            group.verdict, "not judged: too few points"
        )

    def _remarks(self) -> list[str]:
        remarks = [f"{note}." for note in self.notes]
        if self.left_out:
            named = [f"{name} ({reason})" for name, reason in list(self.left_out.items())[:NAMED]]
            more = len(self.left_out) - len(named)
            remarks.append(f"Left out: {', '.join(named)}{f' and {more} more' if more else ''}.")
        return remarks

    def _columns(self, table: Any, features: Any, labels: Any) -> Columns:
        """The columns that the rules need, of the given rows or of the held-out points."""
        if table is None and features is None:
            if self.columns is None:
                raise ValueError("`table` should hold the rows to name. Found none, and the run is not stored.")
            return self.columns
        conditions = [condition for group in self.groups for condition in group.rule.conditions]
        columns: dict[str, np.ndarray] = {}
        if table is not None:
            names = [condition.column for condition in conditions if not isinstance(condition, InCluster)]
            columns |= columns_of(table, names) if names else dict(list(columns_of(table).items())[:1])
        if features is not None:
            if labels is None:
                raise ValueError(
                    "`labels` should give the label of every point, since clusters lie within labels. Found none."
                )
            checked = checked_features(features, len(labels))
            columns |= layer_columns(self.layers, checked, self._label_words(labels))
        return columns

    def _label_words(self, labels: Any) -> np.ndarray:
        values = np.asarray(labels)
        if any(label == "positive" for layer in self.layers.values() for label, _ in layer.centres):
            values = values == values.max()
        return words_of_labels(values)

    def _check_held_out(self, grouped: GroupedData) -> None:
        curves = self.curves
        if curves is None or len(grouped) != curves.points:
            raise ValueError(
                "`table` should have one row for every point of `grouped`, which is not the held-out data."
            )
        labels = curves.labels
        if labels is not None:
            given = grouped.y == grouped.y.max() if labels.dtype == bool else grouped.y
            if not np.array_equal(given, labels):
                raise ValueError(
                    "`grouped` should be the held-out data of the run. Found other labels: pass its `table`."
                )
