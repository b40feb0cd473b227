"""Score: one run of a scorecard, in numbers and in a sentence."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiltmeter.leaders.leaders import Leaders
from tiltmeter.names import NOBODY
from tiltmeter.over_seeds import mean_and_error
from tiltmeter.pairs import ROUNDING, SURE
from tiltmeter.record.labelled import label_to_json
from tiltmeter.shown_text import NotebookText, group_name


@dataclass(frozen=True)
class SeedMean(NotebookText):
    """A mean over seeds and its standard error: NaN with one run, 0 for exact theory.

    >>> SeedMean.over([1.0, 3.0])
    SeedMean(value=2.0, error=1.0)
    >>> print(SeedMean.over([1.0, 3.0]))
    2.0000 ± 1.0000

    Args:
        value: Mean over seeds.
        error: Standard error of the mean; NaN with one run, 0 for exact theory.
        resolution: Below it, a value may be an error of the computation and has no sign.
    """

    value: float
    error: float = float("nan")
    resolution: float = field(default=ROUNDING, repr=False, compare=False)

    @classmethod
    def over(cls, values: Any, exact: bool = False) -> SeedMean:
        """Of one number per seed."""
        mean, error = mean_and_error(values)
        return cls(mean, 0.0 if exact else error)

    @property
    def sign(self) -> int:
        """+1 or -1 where it lies more than two standard errors from zero, else 0; by its value if no error is known."""
        margin = SURE * self.error if np.isfinite(self.error) else 0.0
        if not np.isfinite(self.value) or abs(self.value) <= max(margin, self.resolution):
            return 0
        return 1 if self.value > 0 else -1

    def __format__(self, how: str) -> str:
        shown = f"{self.value:{how or '.4f'}}"
        return f"{shown} ± {self.error:.4f}" if np.isfinite(self.error) and self.error > 0 else shown

    def __str__(self) -> str:
        return f"{self:.4f}"

    def to_json(self) -> dict[str, float | None]:
        """Plain JSON; what is not known is null."""
        return {
            "value": self.value if np.isfinite(self.value) else None,
            "error": self.error if np.isfinite(self.error) else None,
        }


@dataclass(frozen=True)
class Peak:
    """The largest gap between two groups over the whole training, when it was and who was worse off."""

    gap: float
    time: float
    worse: Hashable
    better: Hashable


@dataclass(frozen=True)
class Paid:
    """A group that is worse off than in the baseline at the selected evaluation, and by how much."""

    group: Hashable
    change: SeedMean


@dataclass(frozen=True)
class Score:
    """One run. Every `..._change` is the difference to the baseline, paired by seed; 0 for the baseline itself.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> settings = {"plain": tm.SGD(lr=0.2), "faster": tm.SGD(lr=0.4)}
    >>> card = tm.scorecard({name: tm.predict(problem, sgd, [0.0, 1.0, 60.0]) for name, sgd in settings.items()})
    >>> score = card["faster"]
    >>> score.worst_group, round(score.worst_change.value, 3), [paid.group for paid in score.paid]
    ('-', 0.055, ['+', '-'])

    Args:
        name: Name of the run.
        worst_group: Group that is clearly the worst off at the selected evaluation; "": none is.
        could_be_worst: Groups that may be the worst off.
        worst: Largest value of a group at the selected evaluation.
        worst_change: Its difference to the baseline.
        best_ever: Lowest value that the worst group ever had; chosen after the fact, so too good.
        best_ever_time: When that was.
        reopened: How far the last evaluation lies above it.
        worst_area: Worst group, averaged over training.
        worst_area_change: Its difference to the baseline.
        gap_area: Largest gap, averaged over training.
        gap_area_change: Its difference to the baseline.
        noise_floor: Gap area that scatter alone would give to equal groups.
        peak: Largest gap over the whole training, when and between whom.
        leaders: Who led when.
        gap: Largest gap at the last evaluation.
        crossings: Clear changes of leader.
        created: Changes of leader that are clear in this run and not in the baseline.
        removed: Changes of leader that are clear in the baseline and not in this run.
        loss_clock: Worst group where the mean has completed each part of the baseline's fall; NaN: not reached.
        loss_clock_change: Their differences to the baseline.
        cost: Gradient evaluations relative to the baseline; NaN: not known.
        paid: Groups that are worse off than in the baseline, and by how much.
        levels_down: Whether the gap is smaller only because groups are worse off.
        at_selected: Value of every group at the selected evaluation.
        areas_by_seed: Gap area and worst area of each seed.
        diverged: Whether the training diverged.
    """

    name: str
    worst_group: Hashable
    could_be_worst: tuple[Hashable, ...]
    worst: SeedMean
    worst_change: SeedMean
    best_ever: SeedMean
    best_ever_time: float
    reopened: SeedMean
    worst_area: SeedMean
    worst_area_change: SeedMean
    gap_area: SeedMean
    gap_area_change: SeedMean
    noise_floor: float
    peak: Peak
    leaders: Leaders
    gap: float
    crossings: int
    created: int
    removed: int
    loss_clock: tuple[SeedMean, ...]
    loss_clock_change: tuple[SeedMean, ...]
    cost: float
    paid: tuple[Paid, ...]
    levels_down: bool
    at_selected: tuple[SeedMean, ...]
    areas_by_seed: tuple[tuple[float, float], ...]
    diverged: bool = False

    def sentence(self, baseline: str, curve: str) -> str:
        """What the run did, against the baseline of this name."""
        if self.diverged:
            return f"{self.name}: diverged, so it has no place here."
        first = self.name == baseline
        parts = [f"{self.worst_named} ({curve} {self.worst}"]
        parts[0] += ")" if first else f", {self.worst_change:+.4f} against {baseline})"
        floor = f", noise floor {self.noise_floor:.4f}" if self.noise_floor > 0 else ""
        parts.append(f"over training {self.worst_area} in the worst group, gap {self.gap_area}{floor}")
        if not first:
            parts.append(_at_equal_mean(self.loss_clock_change, baseline))
            parts.append(_changes(self.created, self.removed))
            paid = ", ".join(f"{one.group} by {one.change}" for one in self.paid)
            parts.append(f"paid by {paid}" if paid else "no group pays")
            if np.isfinite(self.cost):
                parts.append(f"cost {self.cost:.3g}x")
        text = f"{self.name}: " + "; ".join(parts) + "."
        if self.levels_down:
            text += " It levels down: the gap is smaller, but the worst group is worse off."
        return text

    @property
    def worst_named(self) -> str:
        """The worst group, or those that could be it, in words."""
        if self.worst_group != NOBODY:
            return f"worst group {group_name(self.worst_group)}"
        return f"could be worst: {', '.join(map(group_name, self.could_be_worst))}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; what is not known is null."""
        plain: dict[str, Any] = {"run": self.name, "worst_group": label_to_json(self.worst_group)}
        for name, value in vars(self).items():
            if isinstance(value, SeedMean):
                plain[name] = value.to_json()
            elif isinstance(value, (bool, int, float)):
                plain[name] = value if np.isfinite(value) else None
        plain["first_leader"], plain["last_leader"] = map(label_to_json, (self.leaders.first, self.leaders.last))
        plain["changes"] = [{"low": change.low, "high": change.high} for change in self.leaders.changes]
        plain["could_be_worst"] = [label_to_json(group) for group in self.could_be_worst]
        plain["loss_clock"] = [one.to_json() for one in self.loss_clock]
        plain["loss_clock_change"] = [one.to_json() for one in self.loss_clock_change]
        plain["peak"] = {
            "gap": self.peak.gap,
            "time": self.peak.time,
            "worse": label_to_json(self.peak.worse),
            "better": label_to_json(self.peak.better),
        }
        plain["paid"] = [{"group": label_to_json(one.group), **one.change.to_json()} for one in self.paid]
        return plain


def _at_equal_mean(changes: tuple[SeedMean, ...], baseline: str) -> str:
    """The change of the worst group on the loss clock, at the last level that was reached."""
    reached = [one for one in changes if np.isfinite(one.value)]
    if not reached:
        return f"it never reaches the means of {baseline} at which it could be compared"
    return f"at equal mean {reached[-1]:+.4f} in the worst group"


def _changes(created: int, removed: int) -> str:
    parts = [f"{count} {word}" for count, word in ((created, "created"), (removed, "removed")) if count]
    return f"changes of leader: {', '.join(parts)}" if parts else "no change of leader created or removed"
