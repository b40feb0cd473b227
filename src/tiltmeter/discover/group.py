"""Group: one rule that was found, what the judging points say about it, and how it stands in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tiltmeter.discover.rules import Columns, InCluster, Rule
from tiltmeter.leaders.difference import Difference
from tiltmeter.leaders.headline import at, capital
from tiltmeter.record.labelled import JSON
from tiltmeter.shown_text import percent

#: Whoever is in none of the groups.
EVERYONE_ELSE = "everyone else"
#: What the judging points say about a rule.
Verdict = Literal["worse at the end", "learned later", "not clear", "not judged"]
VERDICTS: tuple[Verdict, ...] = ("worse at the end", "learned later", "not clear", "not judged")
#: What the rule was found by: the loss at the end, or the loss beyond the model's own doubt during training.
Target = Literal["end", "later"]


@dataclass(frozen=True)
class DiscoveredGroup:
    """One rule, and what the points that did not find it say about it.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> x, jobs = rng.normal(size=(2000, 3)).astype("float32"), rng.choice(["clerk", "cook", "driver"], 2000)
    >>> y = (np.where(jobs == "cook", x[:, 1], x[:, 0]) > 0).astype(int)  # cooks have a rule of their own
    >>> data = tm.GroupedData(x, y, ["all"] * 2000)
    >>> run = tm.train(torch.nn.Linear(3, 1), data, data, tm.Recipe(lr=0.5, steps=30))
    >>> result = tm.discover(run, {"job": jobs})
    >>> group = result.clear[0]
    >>> str(group.rule), group.points, group.loss > group.loss_of_others
    ("Rule(conditions=(Equals(column='job', value='cook'),))", 334, True)

    Args:
        rule: Conditions that a point of the group meets.
        points: Judging points in the group.
        share: Their share of all judging points.
        score: How strongly the rule showed on the points that found it.
        target: What it was found by: the loss at the end, or the course of training.
        verdict: What the judging points say.
        loss: Mean loss of the group at the last evaluation.
        loss_of_others: Mean loss of those it is compared with.
        first: First evaluation at which the loss is clearly higher; None: at none.
        last: Last such evaluation; None: there is none.
        clear_at: Number of such evaluations.
        most_at_end: Upper limit of the difference at the end.
        caught_up: Whether that limit lies below a lower limit before: the group was learned later.
        against: Whom it is compared with.
        nearest: Typical examples among the held-out points, for groups of features.
        hardest: Examples with the largest losses, for groups of features.
        described: Rule of the table that fits a group of features best, with its overlap.
        difference: All evaluations with their limits; not stored in JSON.
    """

    rule: Rule
    points: int
    share: float
    score: float
    target: Target
    verdict: Verdict
    # One NaN for all: two results are equal if their missing numbers are the same object.
    loss: float = math.nan
    loss_of_others: float = math.nan
    first: float | None = None
    last: float | None = None
    clear_at: int = 0
    most_at_end: float = math.nan
    caught_up: bool = False
    against: str = EVERYONE_ELSE
    nearest: tuple[int, ...] = ()
    hardest: tuple[int, ...] = ()
    described: str = ""
    difference: Difference | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def clear(self) -> bool:
        return self.verdict in ("worse at the end", "learned later")

    @property
    def gap(self) -> float:
        """How much higher the loss is at the end."""
        return self.loss - self.loss_of_others

    def to_json(self) -> dict[str, JSON]:
        plain: dict[str, JSON] = {"name": self.name}
        for name, value in vars(self).items():
            missing = isinstance(value, float) and not math.isfinite(value)
            plain[name] = None if missing else list(value) if isinstance(value, tuple) else value
        del plain["difference"]
        return {**plain, "rule": self.rule.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DiscoveredGroup:
        parts = {name: part for name, part in value.items() if name not in ("name", "rule")}
        for name in ("loss", "loss_of_others", "most_at_end"):
            parts[name] = math.nan if parts[name] is None else float(parts[name])
        for name in ("nearest", "hardest"):
            parts[name] = tuple(parts[name])
        return cls(rule=Rule.from_json(value["rule"]), **parts)


def judged_points(rule: Rule, columns: Columns, judges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of the points that judge a rule, and 0 for its members, 1 for the others.

    A cluster lies within a label, so it is compared with the other points of this label: the difference between labels
    is not its own.
    """
    compared = judges.copy()
    for condition in rule.conditions:
        if isinstance(condition, InCluster):
            words = columns[condition.column]
            starts = f"{condition.label}, cluster "
            compared &= np.array([word is not None and word.startswith(starts) for word in words.tolist()])
    places = np.flatnonzero(compared)
    return places, np.where(rule.holds(columns)[places], 0, 1)


def rest_name(rule: Rule) -> str:
    """Whom a rule is compared with."""
    labels = [condition.label for condition in rule.conditions if isinstance(condition, InCluster)]
    return f"other points of label {labels[0]}" if labels else EVERYONE_ELSE


def subject_of(group: DiscoveredGroup) -> str:
    return capital(f"the group {group.name}, {percent(group.share)} of the points,")


def and_more(count: int, what: str, forecast: bool) -> str:
    """How many more groups are like the one that is named; nothing for none.

    >>> and_more(1, "worse off at the end", forecast=False), and_more(2, "learned later", forecast=True)
    (' One more group is worse off at the end.', ' 2 more groups will be learned later.')
    """
    if not count:
        return ""
    verb = "will be" if forecast else "is" if count == 1 else "are"
    return f" {'One more group' if count == 1 else f'{count} more groups'} {verb} {what}."


def clear_when(group: DiscoveredGroup, clock: str) -> str:
    """Between which evaluations the loss is clearly higher."""
    assert group.first is not None
    assert group.last is not None
    first, last = at(clock, group.first), at(clock, group.last)
    if group.first == group.last:
        return f"at {first}"
    return f"from {first} to {last.removeprefix(f'{clock} ').removeprefix('t = ')}"


def told_apart(high: float, low: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart."""
    for digits in (2, 3, 4):
        texts = f"{high:.{digits}f}", f"{low:.{digits}f}"
        if texts[0] != texts[1]:
            return texts
    return f"{high:.4g}", f"{low:.4g}"


def counted(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"


def rounded(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else ""


def partition(groups: tuple[DiscoveredGroup, ...], columns: Columns) -> tuple[str, ...]:
    """The clear groups that keep points when every point goes to the smallest that holds it, and everyone else."""
    clear = sorted((group for group in groups if group.clear), key=lambda group: -group.points)
    if not clear:
        return (EVERYONE_ELSE,)
    members = np.full(len(next(iter(columns.values()))), EVERYONE_ELSE, dtype=object)
    for group in clear:
        members[group.rule.holds(columns)] = group.name
    names = [*(group.name for group in reversed(clear)), EVERYONE_ELSE]
    return tuple(name for name in names if (members == name).any())
