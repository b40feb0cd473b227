"""Change: the gap, the error and the selection of one training against another, with limits and who pays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tiltmeter.leaders.difference import ALL
from tiltmeter.leaders.headline import amounts, capital, in_points, size_of, subject, term
from tiltmeter.record.labelled import label_from_json, label_to_json
from tiltmeter.shown_text import NotebookText

#: What a change speaks of: the two models that were made, or trainings like these.
ChangeScope = Literal["models", "trainings"]


class Amount(NamedTuple):
    """A number before and after, and the limits of its change."""

    before: float
    after: float
    low: float
    high: float

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def sign(self) -> int:
        """1 where it clearly rises, -1 where it clearly falls, else 0."""
        return int(self.low > 0.0) - int(self.high < 0.0)


@dataclass(frozen=True)
class Change(NotebookText):
    """What one training changes against another in the gap that the other's headline names.

    Args:
        name: The training that is compared.
        against: The one that it is compared with.
        curve: The declared rate.
        pair: The group that is behind before, and the other group or all others.
        gap: The gap in this rate: positive where the first is behind.
        error: The error of all points together; None where there are no decisions.
        errors: The error of every group.
        selection: The share that is selected; None where nobody is.
        scope: Whether it speaks of these two "models" or of "trainings" like these.
        trainings: How many trainings of each were compared.
        reason: Why it is not recommended; "": nothing speaks against it.
    """

    name: str
    against: str
    curve: str
    pair: tuple[Hashable, Hashable]
    gap: Amount
    error: Amount | None
    errors: Mapping[Hashable, Amount] = field(default_factory=dict)
    selection: Amount | None = None
    scope: ChangeScope = "models"
    trainings: int = 1
    reason: str = ""

    @property
    def helps(self) -> bool:
        """Whether the gap clearly shrinks, and nothing speaks against it."""
        return self.gap.sign < 0 and abs(self.gap.after) < abs(self.gap.before) and not self.reason

    @property
    def pays(self) -> tuple[Hashable, ...]:
        """The groups whose error clearly rises."""
        return tuple(group for group, one in self.errors.items() if one.sign > 0)

    @property
    def sentence(self) -> str:
        """What happens to the gap and the error, and who pays."""
        before, after = (in_points(self.curve, value) for value in (self.gap.before, self.gap.after))
        unit = "" if size_of(self.curve, 1.0) == "1" else " points"
        clear = "" if self.gap.sign else f", which is not clear ({self._limits})"
        verb = "falls" if self.gap.change < 0 else "rises"
        moved = f"stays at {after}" if before == after else f"{verb} from {before} to {after}"
        parts = [f"the gap {moved}{unit}{clear if before != after or self.gap.sign else ''}"]
        if self.error is not None:
            first, second = amounts("error", self.error.before, self.error.after)
            parts.append(f"error {first}" if first == second else f"error {first.removesuffix(' %')} to {second}")
            payers = [subject(group) for group in self.pays]
            plural = len(payers) > 1 or any(plural for _, plural in payers)
            names = " and ".join(name for name, _ in payers)
            parts.append(f"{names} pay{'' if plural else 's'}" if payers else "nobody pays")
        return ", ".join(parts)

    @property
    def _limits(self) -> str:
        return f"{in_points(self.curve, self.gap.low)} to {in_points(self.curve, self.gap.high)}"

    def __str__(self) -> str:
        behind, other = (subject(group)[0] if group != ALL else "all others" for group in self.pair)
        what = f"In {term(self.curve)}, {behind} against {other}: with {self.name} {self.sentence}."
        about = "These two models." if self.scope == "models" else f"Trainings like these, {self.trainings} of each."
        why = f" Not recommended: {self.reason}." if self.reason else ""
        return f"{capital(what)}{why}\n{about} At most 5 of 100 such statements are wrong."

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        return {
            **{name: getattr(self, name) for name in ("name", "against", "curve", "scope", "trainings", "reason")},
            "pair": [label_to_json(group) for group in self.pair],
            "helps": self.helps,
            "gap": list(self.gap),
            "error": None if self.error is None else list(self.error),
            "selection": None if self.selection is None else list(self.selection),
            "errors": [[label_to_json(group), list(one)] for group, one in self.errors.items()],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Change:
        """The change that `to_json` wrote."""
        pair = tuple(label_from_json(label) for label in stored["pair"])
        return cls(
            **{name: stored[name] for name in ("name", "against", "curve", "scope", "trainings", "reason")},
            pair=(pair[0], pair[1]),
            gap=Amount(*stored["gap"]),
            error=None if stored["error"] is None else Amount(*stored["error"]),
            errors={label_from_json(label): Amount(*one) for label, one in stored["errors"]},
            selection=None if stored["selection"] is None else Amount(*stored["selection"]),
        )
