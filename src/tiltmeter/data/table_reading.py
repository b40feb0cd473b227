"""TableReading: what was done to a table while it was read: words encoded, rows dropped, values filled in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.labelled import JSON, label_to_json


@dataclass(frozen=True)
class TableReading(NotebookText):
    """The account of one table that became grouped data.

    >>> reading = TableReading(400, {"F": 30, "M": 10}, {"F": 200, "M": 200}, {"age": 40}, labels=("<=50K", ">50K"))
    >>> print(reading)
    Read 400 rows. Labels: <=50K = 0, >50K = 1 (in sorted order; positive= sets which is 1). Dropped 40 of 400 rows with
    missing values (F: 30 of 200, M: 10 of 200; missing in age: 40).
    """

    rows: int
    #: Rows dropped for every group; the key None counts rows whose group itself is missing.
    dropped: Mapping[Hashable, int] = field(default_factory=dict)
    #: Rows of every group before any was dropped.
    found: Mapping[Hashable, int] = field(default_factory=dict)
    #: Missing values in every column that has some.
    missing: Mapping[str, int] = field(default_factory=dict)
    #: Values filled in, column by column.
    imputed: Mapping[str, int] = field(default_factory=dict)
    #: Label words in the order of their codes 0, 1, 2, ...; empty where the labels were numbers.
    labels: tuple[str, ...] = ()
    #: The label that was declared positive; None: the sorted order decided.
    positive: str | None = None
    #: Columns of words and the values that became a column of zeros and ones each.
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def dropped_rows(self) -> int:
        """How many rows were dropped, over all groups."""
        return sum(self.dropped.values())

    def dropping(self) -> str:
        """One sentence about the dropped rows, group by group."""
        groups = [
            f"{'no group' if group is None else group}: {count} of {self.found.get(group, count)}"
            for group, count in self.dropped.items()
        ]
        columns = ", ".join(f"{name}: {count}" for name, count in self.missing.items() if name not in self.imputed)
        return (
            f"Dropped {self.dropped_rows:,} of {self.rows:,} rows with missing values ({', '.join(groups)}; missing in "
            f"{columns})."
        )

    def __str__(self) -> str:
        said = [f"Read {self.rows:,} rows."]
        if self.labels:
            said.append(label_sentence(self.labels, self.positive))
        for name, values in self.words.items():
            said.append(f"Column {name} became {len(values)} columns, one for each value.")
        if self.imputed:
            said.append("Filled in: " + ", ".join(f"{name}: {count}" for name, count in self.imputed.items()) + ".")
        if self.dropped_rows:
            said.append(self.dropping())
        return " ".join(said)

    def to_json(self) -> dict[str, JSON]:
        def pairs(counts: Mapping[Any, int]) -> JSON:
            return [[None if key is None else label_to_json(key), count] for key, count in counts.items()]

        return {
            "rows": self.rows,
            "dropped": pairs(self.dropped),
            "found": pairs(self.found),
            "missing": dict(self.missing),
            "imputed": dict(self.imputed),
            "labels": list(self.labels),
            "positive": self.positive,
            "words": {name: len(values) for name, values in self.words.items()},
        }


def label_sentence(labels: Sequence[str], positive: str | None) -> str:
    """Which label is 0, 1, 2, ..., and of two labels whether the positive one was declared.

    >>> label_sentence(["denied", "approved"], "approved")
    'Labels: denied = 0, approved = 1 (the positive label).'
    """
    coded = ", ".join(f"{word} = {code}" for code, word in enumerate(labels))
    if len(labels) != 2:
        return f"Labels: {coded}."
    how = "in sorted order; positive= sets which is 1" if positive is None else "the positive label"
    return f"Labels: {coded} ({how})."
