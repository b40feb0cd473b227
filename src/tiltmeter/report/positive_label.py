"""PositiveLabel: which label a positive decision stands for, by name where the data had names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tiltmeter.plot.theme import group_name
from tiltmeter.record.trajectory import Trajectory

#: Longer names are cut on the page.
LONGEST = 40


class PositiveLabel(NamedTuple):
    """The label of a positive decision, and whether somebody chose it: else it is the last in sorted order."""

    name: str
    declared: bool
    column: str = ""

    @property
    def sentence(self) -> str:
        """What is positive, and that nobody declared it, where nobody did.

        >>> PositiveLabel("approved", True).sentence
        'The positive label is approved.'
        """
        return self.meaning if self.declared else f"{self.meaning} {self.guess}"

    @property
    def with_column(self) -> str:
        """The label with the column that holds it, where that is known.

        >>> PositiveLabel("yes", True, "repaid").with_column
        'repaid = yes'
        """
        return f"{self.column} = {self.name}" if self.column else self.name

    @property
    def meaning(self) -> str:
        """What is positive."""
        return f"The positive label is {self.name}."

    @property
    def guess(self) -> str:
        """That nobody chose the label, and what to do about it."""
        return (
            f"Nobody declared {self.name} to be the positive label: it is the last in sorted order. If the other label "
            "is meant, everything here is the wrong way round: say positive= where the table is read."
        )


def positive_label(run: Trajectory) -> PositiveLabel | None:
    """The positive label by its name; None where the labels are numbers, or more than two."""
    problem: Any = run.origin.problem
    evaluation = problem.get("held_out") if isinstance(problem, Mapping) else None
    read = evaluation.get("reading") if isinstance(evaluation, Mapping) else None
    words = read.get("labels") if isinstance(read, Mapping) else None
    if not isinstance(read, Mapping) or not isinstance(words, list) or len(words) != 2:
        return None
    return PositiveLabel(_cut(words[1]), read.get("positive") is not None, _cut(read.get("label") or ""))


def _cut(text: Any) -> str:
    name = group_name(str(text)) if text else ""
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}\N{HORIZONTAL ELLIPSIS}"
