"""Rules: named conjunctions of conditions on the columns of a table, and the conditions that a table offers.

What a rule is called is what it is: thresholds are rounded before they are used, so a reader can apply the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tiltmeter.data.any_frame import any_frame, check_once, is_table
from tiltmeter.record.labelled import JSON
from tiltmeter.shown_text import quoted, shortened, visible

#: Numbers are cut at these quantiles.
CUTS = np.arange(1, 10) / 10
#: A column of words with more different values than this holds names or identifiers.
MOST_VALUES = 50
#: A condition holds for at least this share of the points, and for at most all but this share.
RARE = 0.02
#: Significant digits of a threshold.
DIGITS = 4

#: The columns of some rows by name: floating-point numbers with NaN, or words (objects) with None where one is missing.
Columns: TypeAlias = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Equals:
    """A column of words has this value."""

    column: str
    value: str

    def holds(self, columns: Columns) -> np.ndarray:
        return np.asarray(_column(columns, self.column, words=True) == self.value)

    @property
    def text(self) -> str:
        return f"{shortened(self.column, 60)} = {shortened(self.value, 60)}"

    def to_json(self) -> dict[str, JSON]:
        return {"column": self.column, "equals": self.value}


@dataclass(frozen=True)
class Between:
    """A number lies above `above` and is at most `most`; infinite where there is no such limit.

    >>> Between("age", 30.0, 50.0).text, Between("age", 58.0).text
    ('30 < age <= 50', 'age > 58')
    """

    column: str
    above: float = -np.inf
    most: float = np.inf

    def holds(self, columns: Columns) -> np.ndarray:
        values = _column(columns, self.column, words=False)
        return np.asarray((values > self.above) & (values <= self.most))

    @property
    def text(self) -> str:
        name = shortened(self.column, 60)
        if np.isinf(self.most):
            return f"{name} > {self.above:.12g}"
        return (
            f"{name} <= {self.most:.12g}" if np.isinf(self.above) else f"{self.above:.12g} < {name} <= {self.most:.12g}"
        )

    def to_json(self) -> dict[str, JSON]:
        limits = {"above": self.above, "most": self.most}
        return {"column": self.column, **{name: limit for name, limit in limits.items() if np.isfinite(limit)}}


@dataclass(frozen=True)
class Missing:
    """A column has no value."""

    column: str

    def holds(self, columns: Columns) -> np.ndarray:
        values = _column(columns, self.column)
        return np.isnan(values) if values.dtype.kind == "f" else np.asarray(values == None)  # noqa: E711

    @property
    def text(self) -> str:
        return f"{shortened(self.column, 60)} is missing"

    def to_json(self) -> dict[str, JSON]:
        return {"column": self.column, "missing": True}


@dataclass(frozen=True)
class InCluster:
    """The features of a point are nearest to one of `of` centres of its label, in one layer."""

    layer: str
    label: str
    number: int
    of: int

    @property
    def column(self) -> str:
        """The column in which the clusters of this layer are written."""
        return cluster_column(self.layer, self.of)

    @property
    def value(self) -> str:
        return f"{self.label}, cluster {self.number} of {self.of}"

    def holds(self, columns: Columns) -> np.ndarray:
        return np.asarray(_column(columns, self.column, words=True) == self.value)

    @property
    def text(self) -> str:
        return shortened(f"{self.value} by {self.layer}", 120)

    def to_json(self) -> dict[str, JSON]:
        return {"layer": self.layer, "label": self.label, "cluster": self.number, "of": self.of}


Condition: TypeAlias = Equals | Between | Missing | InCluster


def cluster_column(layer: str, of: int) -> str:
    """The name of the column that holds the clusters of a layer."""
    return f"{layer}, {of} clusters"


def condition_from_json(value: Mapping[str, Any]) -> Condition:
    """The condition that `to_json` wrote."""
    if "layer" in value:
        return InCluster(str(value["layer"]), str(value["label"]), int(value["cluster"]), int(value["of"]))
    column = str(value["column"])
    if "missing" in value:
        return Missing(column)
    if "equals" in value:
        return Equals(column, str(value["equals"]))
    return Between(column, float(value.get("above", -np.inf)), float(value.get("most", np.inf)))


@dataclass(frozen=True)
class Rule:
    """Conditions that hold together; its name says all of them.

    >>> rule = Rule.of([Between("age", above=30.0), Equals("job", "cook"), Between("age", most=50.0)])
    >>> rule.name
    '30 < age <= 50 and job = cook'
    >>> rule.holds(columns_of({"age": [20, 40, 40], "job": ["cook", "cook", "clerk"]})).tolist()
    [False, True, False]
    """

    conditions: tuple[Condition, ...]

    @classmethod
    def of(cls, conditions: Sequence[Condition]) -> Rule:
        """The rule with its conditions in the order of their columns, two limits of one column joined."""
        limits: dict[str, Between] = {}
        others: list[Condition] = []
        for condition in conditions:
            if isinstance(condition, Between):
                before = limits.get(condition.column, Between(condition.column))
                above, most = max(before.above, condition.above), min(before.most, condition.most)
                limits[condition.column] = Between(condition.column, above, most)
            else:
                others.append(condition)
        return cls(tuple(sorted([*limits.values(), *others], key=lambda condition: (condition.column, condition.text))))

    @property
    def name(self) -> str:
        return visible(" and ".join(condition.text for condition in self.conditions))

    def holds(self, columns: Columns) -> np.ndarray:
        """Which rows the rule holds for."""
        return np.asarray(np.all([condition.holds(columns) for condition in self.conditions], axis=0))

    def to_json(self) -> list[JSON]:
        return [condition.to_json() for condition in self.conditions]

    @classmethod
    def from_json(cls, value: Sequence[Mapping[str, Any]]) -> Rule:
        return cls(tuple(condition_from_json(part) for part in value))


def columns_of(table: Any, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """The columns of a table of pandas, polars or Arrow, of a file, or of a dict of arrays, as numbers or words.

    With `names`, only those columns are read, and all of them should exist. Truth values become the words True and
    False. Dates are left as they are.
    """
    import pandas as pd

    if isinstance(table, Mapping):
        try:
            frame: Any = pd.DataFrame({str(name): pd.Series(list(values)) for name, values in table.items()})
        except (TypeError, ValueError) as error:
            raise ValueError(f"`table` should have columns of equal length. Found: {error}.") from None
        if len({len(list(values)) for values in table.values()}) > 1:
            lengths = ", ".join(f"{len(list(values))} in {quoted(name)}" for name, values in table.items())
            raise ValueError(f"`table` should have columns of equal length. Found {shortened(lengths)}.")
    elif is_table(table):
        frame = table
    else:
        try:
            frame = any_frame(table)
        except TypeError:
            raise TypeError(
                "`table` should be a table of pandas, polars or Arrow, a dict of arrays, or the path of a file. Found "
                f"{type(table).__name__}."
            ) from None
    titles = [str(title) for title in frame.columns]
    check_once(titles, "table")
    chosen = titles if names is None else list(dict.fromkeys(names))
    for name in chosen:
        if name not in titles:
            raise KeyError(f"`table`: no column {name!r}. There are: {shortened(', '.join(map(repr, titles)))}.")
    return {name: _plain(frame.iloc[:, titles.index(name)]) for name in chosen}


def _plain(series: Any) -> np.ndarray:
    import pandas as pd

    if pd.api.types.is_bool_dtype(series.dtype) or not (
        pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_datetime64_any_dtype(series.dtype)
    ):
        words = np.empty(len(series), dtype=object)
        missing = series.isna().to_numpy()
        words[:] = [None if gone else str(value) for value, gone in zip(series.tolist(), missing, strict=True)]
        return words
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return np.asarray(series.to_numpy(dtype="datetime64[ns]"))
    return np.asarray(series.to_numpy(dtype=float, na_value=np.nan))


def _column(columns: Columns, name: str, words: bool | None = None) -> np.ndarray:
    if name not in columns:
        raise KeyError(f"`table`: no column {name!r}. There are: {shortened(', '.join(map(repr, columns)))}.")
    values = columns[name]
    if words is not None and (values.dtype.kind == "O") != words:
        kinds = ("words", "numbers") if words else ("numbers", "words")
        raise TypeError(
            f"Column {name!r} of `table` should hold {kinds[0]}, as where the rules were found. Found {kinds[1]}."
        )
    return values


@dataclass(frozen=True, eq=False)
class Candidates:
    """Conditions of a table and where each holds: `holds` has shape (points, conditions), without repetitions.

    `left_out` says which columns offer none, and why.
    """

    conditions: tuple[Condition, ...]
    holds: np.ndarray
    left_out: Mapping[str, str] = field(default_factory=dict)


def candidates(columns: Columns, rare: float = RARE) -> Candidates:
    """All conditions that these rows offer: a word is a value, a number is above or at most a decile.

    Columns that are constant, that number the rows, or that have too many words are left out and named.
    """
    left_out: dict[str, str] = {}
    conditions: list[Condition] = []
    for name, values in columns.items():
        if (reason := _unusable(values)) is not None:
            left_out[name] = reason
        else:
            conditions += _offered(name, values)
    return distinct(conditions, columns, rare, left_out)


def distinct(
    conditions: Sequence[Condition], columns: Columns, rare: float, left_out: Mapping[str, str] | None = None
) -> Candidates:
    """Those conditions that hold neither too seldom nor too often, the first of those that hold for the same rows."""
    kept: dict[bytes, tuple[Condition, np.ndarray]] = {}
    for condition in conditions:
        holds = condition.holds(columns)
        if rare <= holds.mean() <= 1.0 - rare:
            kept.setdefault(np.packbits(holds).tobytes(), (condition, holds))
    rows = len(next(iter(columns.values()))) if columns else 0
    masks = [holds for _, holds in kept.values()]
    return Candidates(
        tuple(condition for condition, _ in kept.values()),
        np.stack(masks, axis=1) if masks else np.zeros((rows, 0), dtype=bool),
        dict(left_out or {}),
    )


def _unusable(values: np.ndarray) -> str | None:
    """Why a column offers no conditions; None if it does."""
    if values.dtype.kind == "M":
        return "dates"
    known = values[values != None] if values.dtype.kind == "O" else values[np.isfinite(values)]  # noqa: E711
    different = len(set(known.tolist()))
    if different + (len(known) < len(values)) < 2:
        return "one value only"
    if values.dtype.kind == "O":
        return f"{different:,} different words, as of an id" if different > MOST_VALUES else None
    counts = different == len(values) and bool((known == np.round(known)).all())
    return "numbers the rows, as an id" if counts and np.ptp(known) < 2 * len(values) else None


def _offered(name: str, values: np.ndarray) -> list[Condition]:
    missing: list[Condition] = [Missing(name)]
    if values.dtype.kind == "O":
        return [
            *(Equals(name, word) for word in sorted({word for word in values.tolist() if word is not None})),
            *missing,
        ]
    known = values[~np.isnan(values)]
    levels = np.unique(known)
    cuts = levels[:-1] if len(levels) <= len(CUTS) + 1 else np.unique(np.quantile(known, CUTS, method="lower"))
    rounded = dict.fromkeys(float(cut) if cut == np.round(cut) else float(f"{cut:.{DIGITS}g}") for cut in cuts)
    limits: list[Condition] = [
        part for cut in rounded for part in (Between(name, most=cut), Between(name, above=cut)) if np.isfinite(cut)
    ]
    return [*limits, *missing]
