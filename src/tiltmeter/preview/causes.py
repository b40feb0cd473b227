"""Causes: which property of the data makes the gap, and when; in populations in which that property is absent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.leaders.headline import RATES, capital, subject, term
from tiltmeter.preview.curves import PHASES, Course
from tiltmeter.preview.features import Features, columns
from tiltmeter.preview.flow import point_losses
from tiltmeter.preview.inputs import Inputs, Rows
from tiltmeter.preview.populations import Population, few_people, populations
from tiltmeter.preview.solution import course_in, seen_by
from tiltmeter.shown_text import NotebookText, group_name

if TYPE_CHECKING:
    import pandas as pd

#: Deals of random groups behind the limits; the observed ones are one of them, so a cause is named by chance in one of
#: twenty tables.
DEALS = 19
#: Training and judging rows that the limits are computed from, at most.
MOST_DEALT = 6000
#: Changes of a rate below this are never named, however sure they are.
LEAST = 0.03
#: Phases in which a cause of a rate is named. Before the end, decisions near the threshold turn over in a few steps,
#: and networks did not follow what the theory said of rates there; of the loss they did.
NAMED_OF_RATES = ("late",)
#: What stands before a cause in a sentence.
SHOWN = {
    "share": "equal shares",
    "base rate": "the same base rate",
    "position": "the same position",
    "spread": "the same spread",
    "rule": "one rule for both",
}


@dataclass(frozen=True)
class Cause:
    """One property of the data in one phase: the gap as it is, and in a population without that property.

    `change` is what the population does to the gap, in the theory of the columns. `named` says whether it is larger
    than what random groups would give and than the threshold on size.
    """

    cause: str
    phase: str
    gap: float
    change: float
    named: bool

    @property
    def gap_without(self) -> float:
        """The gap in the population."""
        return self.gap + self.change

    @property
    def makes(self) -> bool:
        """Whether it makes the gap: without it the gap moves towards zero, or beyond. Else it hides a part."""
        return self.change * self.gap < 0


@dataclass(frozen=True)
class Causes(NotebookText):
    """What makes the gap of one curve, of one group against another or all others, phase by phase.

    >>> row = Cause("position", "late", gap=-0.06, change=0.09, named=True)
    >>> print(Causes("tpr", "women", "men", (row,)).sentence())
    Position makes the gap of women: in a population with the same position it would be 3 instead of -6 points.

    It prints as a sentence for what is named and a table of all five populations.

    Args:
        curve: Curve whose gap is explained.
        group: Group whose value comes first in the gap.
        others: What it is compared with.
        rows: One `Cause` for each property and phase.
        refused: Why a property has no population.
        why_not: Why there are no causes at all; "" where there are.
        left_out: Groups of too few people, which are in none of these numbers.
    """

    curve: str
    group: Hashable
    others: str
    rows: tuple[Cause, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[Cause, ...]:
        """The causes that are named, the largest first."""
        return tuple(sorted((row for row in self.rows if row.named), key=lambda row: -abs(row.change)))

    def top(self, phase: str = "late") -> Cause | None:
        """The property whose absence changes the gap most in a phase, named or not; None without causes."""
        own = [row for row in self.rows if row.phase == phase]
        return max(own, key=lambda row: abs(row.change)) if own else None

    def of(self, cause: str, phase: str = "late") -> Cause:
        """One property in one phase."""
        for row in self.rows:
            if (row.cause, row.phase) == (cause, phase):
                return row
        known = dict.fromkeys(row.cause for row in self.rows)
        raise KeyError(f"No cause {cause!r} in phase {phase!r}. There are: {', '.join(known) or 'none'}.")

    def to_frame(self) -> pd.DataFrame:
        """One row for each property and phase."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "cause": row.cause,
                    "phase": row.phase,
                    "gap": row.gap,
                    "gap_without": row.gap_without,
                    "change": row.change,
                    "named": row.named,
                }
                for row in self.rows
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the rows, and what was refused."""
        return {
            "curve": self.curve,
            "group": str(self.group),
            "others": self.others,
            "rows": [vars(row) for row in self.rows],
            "refused": dict(self.refused),
            "why_not": self.why_not,
            "left_out": list(self.left_out),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], group: Hashable) -> Causes:
        rows = tuple(Cause(**row) for row in value["rows"])
        refused, left_out = dict(value["refused"]), tuple(value["left_out"])
        return cls(value["curve"], group, value["others"], rows, refused, value["why_not"], left_out)

    def __str__(self) -> str:
        if self.why_not:
            return f"No causes are named: {self.why_not}."
        lines = [self.sentence()]
        phases = list(dict.fromkeys(row.phase for row in self.rows))
        wide = max(len(text) for text in (*SHOWN.values(), "in a population with ..."))
        heads = "".join(phase.rjust(9) for phase in phases)
        lines.append("  " + "in a population with ...".ljust(wide) + heads + "   named")
        lines.append("  " + "as it is".ljust(wide) + "".join(self.size(self._gap(phase)).rjust(9) for phase in phases))
        for cause in dict.fromkeys(row.cause for row in self.rows):
            own = [self.of(cause, phase) for phase in phases]
            cells = "".join(self.size(row.gap_without).rjust(9) for row in own)
            when = [row.phase for row in own if row.named]
            lines.append("  " + SHOWN[cause].ljust(wide) + cells + f"   {', '.join(when) if when else 'no'}")
        lines += [f"  {capital(text)}: refused." for text in self.refused.values()]
        if self.left_out:
            lines.append(f"  Left out, with too few people: {', '.join(self.left_out)}.")
        lines.append(
            f"{self.caption()} People are reweighted, their values stay. At most 5 of 100 such tables name a cause "
            "where groups are alike."
        )
        return "\n".join(lines)

    def sentence(self) -> str:
        """What makes the gap and what hides a part of it at the end, or that nothing is named."""
        late = [row for row in self.named if row.phase == "late"]
        if not late:
            if not self.named:
                return "No property of the data is named as a cause of this gap."
            one = self.named[0]
            return f"At the end no cause is named; {one.phase} in training it was {one.cause}."
        parts = []
        for makes, verb in ((True, "makes"), (False, "hides a part of")):
            for row in [row for row in late if row.makes == makes][:1]:
                whose = subject(self.group)[0]
                parts.append(
                    f"{capital(row.cause)} {verb} the gap of {whose}: in a population with {SHOWN[row.cause]} it would "
                    f"be {self.size(row.gap_without)} instead of {self.size(row.gap)}{self._unit()}."
                )
        return " ".join(parts)

    def _gap(self, phase: str) -> float:
        return next(row.gap for row in self.rows if row.phase == phase)

    def caption(self) -> str:
        """What the numbers are, in one sentence."""
        unit = "points" if self.curve in RATES else "units of the loss"
        who = f"{group_name(self.group)} minus {self.others}"
        return f"Gap in {term(self.curve)}, {who}, in {unit}, in populations in which one difference is absent."

    def size(self, value: float) -> str:
        """A gap as it stands in the table and in sentences."""
        return f"{100 * value:.0f}".replace("-0", "0") if self.curve in RATES else f"{value:.3f}"

    def _unit(self) -> str:
        return " points" if self.curve in RATES else ""


@dataclass(frozen=True)
class Contrast:
    """A curve of one group minus that of another, or of all others together (`other` None)."""

    curve: str
    group: int
    other: int | None

    def of(self, scores: np.ndarray, rows: Rows, inputs: Inputs) -> float:
        """Its value by scores (points, outputs), with soft labels and masses."""
        own = rows.codes == self.group
        rest = ~own if self.other is None else rows.codes == self.other
        return self._value(scores, rows, inputs, own) - self._value(scores, rows, inputs, rest)

    def _value(self, scores: np.ndarray, rows: Rows, inputs: Inputs, where: np.ndarray) -> float:
        mass, labels, part = rows.mass[where], rows.labels[where], scores[where]
        if self.curve == "loss":
            return float(np.average(point_losses(part, labels, inputs.kind), weights=mass))
        if inputs.kind == "classes":
            return float(np.average(1.0 - labels[np.arange(len(part)), part.argmax(1)], weights=mass))
        low, high = (0.0, 1.0) if inputs.kind == "binary" else inputs.classes
        yes = (labels - low) / (high - low)
        decided = part[:, 0] > (0.0 if inputs.kind == "binary" else (low + high) / 2)
        counted = {"tpr": mass * yes, "fpr": mass * (1.0 - yes)}.get(self.curve, mass)
        value = yes * ~decided + (1.0 - yes) * decided if self.curve == "error" else decided
        total = counted.sum()
        return float((counted * value).sum() / total) if total > 0 else float("nan")


def causes_of(
    inputs: Inputs,
    course: Course,
    contrast: Contrast,
    phases: Mapping[str, float] = PHASES,
    deals: int = DEALS,
    seed: int = 0,
    least: float | None = None,
) -> Causes:
    """The causes of a contrast. The row "as it is" is the preview's own; changes come from the columns alone.

    `least` is the threshold on size; None: that of the product.
    """
    group = inputs.groups[contrast.group]
    others = "all others" if contrast.other is None else group_name(inputs.groups[contrast.other])
    few = few_people(inputs)
    asked = {contrast.group, *(() if contrast.other is None else (contrast.other,))}
    wanting = {inputs.groups[place]: why for place, why in few.items() if place in asked}
    if wanting or len(inputs.groups) - len(few) < 2:
        listed = ", ".join(f"{group_name(name)} ({why})" for name, why in wanting.items()) or "all others"
        return Causes(contrast.curve, group, others, (), {}, f"too few people to reweight in {listed}")
    left_out = tuple(group_name(inputs.groups[place]) for place in few)
    inputs, course, contrast = _without_groups(inputs, course, contrast, set(few))
    features = columns(inputs.train.x)
    worlds = populations(inputs)
    refused = {cause: world.refused for cause, world in worlds.items() if world.refused}
    kept = {cause: world for cause, world in worlds.items() if not world.refused}
    changes = _changes(inputs, kept, features, contrast, phases)
    rates = contrast.curve in RATES
    nameable = {key: one for key, one in changes.items() if not rates or key[1] in NAMED_OF_RATES}
    limits = _named(inputs, tuple(kept), contrast, phases, nameable, deals, seed)
    rows = []
    gaps = {phase: contrast.of(course.at(share), inputs.held_out, inputs) for phase, share in phases.items()}
    if least is None:
        least = LEAST if rates else LEAST * float(course.loss[0])
    for cause in kept:
        for phase in phases:
            change = changes[cause, phase]
            named = limits.get((cause, phase), False) and abs(change) >= least
            rows.append(Cause(cause, phase, gaps[phase], change, bool(named)))
    return Causes(contrast.curve, group, others, tuple(rows), refused, left_out=left_out)


def _without_groups(
    inputs: Inputs, course: Course, contrast: Contrast, away: set[int]
) -> tuple[Inputs, Course, Contrast]:
    """The same without the people of some groups."""
    if not away:
        return inputs, course, contrast
    kept = [place for place in range(len(inputs.groups)) if place not in away]
    codes = np.full(len(inputs.groups), -1)
    codes[kept] = np.arange(len(kept))
    parts = []
    for rows in (inputs.train, inputs.held_out):
        own = np.flatnonzero(codes[rows.codes] >= 0)
        mass = rows.mass[own]
        parts.append(Rows(rows.x[own], rows.labels[own], mass / mass.sum(), codes[rows.codes[own]]))
    judged = course.scores[:, codes[inputs.held_out.codes] >= 0]
    smaller = replace(inputs.with_rows(*parts), groups=tuple(inputs.groups[place] for place in kept))
    other = None if contrast.other is None else int(codes[contrast.other])
    return smaller, replace(course, scores=judged), Contrast(contrast.curve, int(codes[contrast.group]), other)


def _changes(
    inputs: Inputs,
    worlds: Mapping[str, Population],
    features: Features,
    contrast: Contrast,
    phases: Mapping[str, float],
) -> dict[tuple[str, str], float]:
    """What every population does to the contrast, in the theory of the columns, each at its own progress."""
    seen = seen_by(features, inputs)
    plain = course_in(inputs, seen)
    before = {phase: contrast.of(plain.at(share), inputs.held_out, inputs) for phase, share in phases.items()}
    found = {}
    for cause, world in worlds.items():
        changed = inputs.with_rows(world.train, world.held_out)
        course = course_in(changed, seen)
        for phase, share in phases.items():
            value = contrast.of(course.at(share), world.held_out, changed)
            found[cause, phase] = value - before[phase]
    return found


def _named(
    inputs: Inputs,
    causes: tuple[str, ...],
    contrast: Contrast,
    phases: Mapping[str, float],
    changes: Mapping[tuple[str, str], float],
    deals: int,
    seed: int,
) -> dict[tuple[str, str], bool]:
    """Which changes are larger than those of random groups, with one limit for all causes and phases together.

    `changes` are those that may be named. Groups are dealt again over the training and the judging people. A change is
    divided by its root mean square over all deals, the observed one among them; named is what exceeds the largest of
    every random deal.
    """
    if not deals or not changes:
        return dict.fromkeys(changes, True)
    rng = np.random.default_rng(seed)
    small, scale = _sampled(inputs, rng)
    keys = list(changes)
    table = [np.array([changes[key] for key in keys])]
    for _ in range(deals):
        train, held = (replace(rows, codes=rng.permutation(rows.codes)) for rows in (small.train, small.held_out))
        dealt = small.with_rows(train, held)
        worlds = populations(dealt, causes)
        own = _changes(dealt, worlds, columns(dealt.train.x), contrast, phases)
        table.append(scale * np.array([own[key] for key in keys]))
    values = np.nan_to_num(np.stack(table))
    size = np.sqrt(np.mean(values**2, axis=0))
    size = np.maximum(size, 1e-12)
    largest = (np.abs(values[1:]) / size).max(initial=0.0)
    return {key: bool(abs(value) / one > largest) for key, value, one in zip(keys, values[0], size, strict=True)}


def _sampled(inputs: Inputs, rng: np.random.Generator) -> tuple[Inputs, float]:
    """At most so many rows of both parts, and by how much changes of random groups shrink with all of them."""
    total = len(inputs.train.labels) + len(inputs.held_out.labels)
    if total <= MOST_DEALT:
        return inputs, 1.0
    parts = []
    for rows in (inputs.train, inputs.held_out):
        count = max(int(len(rows.labels) * MOST_DEALT / total), 1)
        chosen = np.sort(rng.permutation(len(rows.labels))[:count])
        mass = rows.mass[chosen]
        parts.append(Rows(rows.x[chosen], rows.labels[chosen], mass / mass.sum(), rows.codes[chosen]))
    return inputs.with_rows(*parts), float(np.sqrt(MOST_DEALT / total))
