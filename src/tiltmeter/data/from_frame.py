"""from_frame: a table with named columns as grouped data; nothing is dropped or encoded without an account of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.arguments import checked_kind, checked_list, checked_scalar
from tiltmeter.data.any_frame import any_frame, check_once, column
from tiltmeter.data.labels import plain_label, plain_labels
from tiltmeter.record.labelled import JSON, label_to_json
from tiltmeter.shown_text import NotebookText, warn_caller

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData


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
    #: The column of the labels, and those of the groups.
    label: str = ""
    group: tuple[str, ...] = ()
    #: Label words in the order of their codes 0, 1, 2, ...; empty where the labels were numbers.
    labels: tuple[str, ...] = ()
    #: The label that was declared positive; None: the sorted order decided.
    positive: str | None = None
    #: Columns of words and the values that became a column of zeros and ones each.
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The columns of the table that became features, and the names of the columns of `x`.
    features: tuple[str, ...] = field(default=(), repr=False)
    columns: tuple[str, ...] = field(default=(), repr=False)
    #: The medians that fill in missing numbers, of the columns where some are; a table read like this one has the same.
    medians: Mapping[str, float] = field(default_factory=dict, repr=False)
    #: Which row of the table every point is, by number. None: not known.
    kept_rows: np.ndarray | None = field(default=None, repr=False, compare=False)

    @property
    def dropped_rows(self) -> int:
        """How many rows were dropped, over all groups."""
        return sum(self.dropped.values())

    def of_points(self, places: np.ndarray) -> TableReading:
        """The same account for some of the points."""
        return self if self.kept_rows is None else replace(self, kept_rows=self.kept_rows[places])

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
            "label": self.label,
            "group": list(self.group),
            "labels": list(self.labels),
            "positive": self.positive,
            "words": {name: len(values) for name, values in self.words.items()},
        }


def label_sentence(labels: Sequence[str], positive: str | None) -> str:
    """Which label is 0, 1, 2, ..., and of two labels whether the positive one was declared.

    >>> label_sentence(["denied", "approved"], "approved")
    'Labels: denied = 0, approved = 1 (the positive label).'

    Labels that are their own numbers need no sentence.

    >>> label_sentence(["0", "1"], None)
    ''
    """
    if [str(word) for word in labels] == [str(code) for code in range(len(labels))]:
        return ""
    coded = ", ".join(f"{word} = {code}" for code, word in enumerate(labels))
    if len(labels) != 2:
        return f"Labels: {coded}."
    how = "in sorted order; positive= sets which is 1" if positive is None else "the positive label"
    return f"Labels: {coded} ({how})."


MISSING = ("drop", "impute", "error")
#: A column of words with more different values than this is a name or an identifier rather than a feature.
MOST_VALUES = 1000


def from_frame(
    frame: Any,
    *,
    label: Hashable,
    group: Any,
    features: Sequence[Any] | None = None,
    weights: Hashable | None = None,
    positive: Hashable | None = None,
    missing: str = "drop",
    like: GroupedData | None = None,
) -> GroupedData:
    """See `GroupedData.from_frame`."""
    checked_scalar("missing", missing)
    checked_scalar("positive", positive)
    from tiltmeter.data.grouped import GroupedData

    known = None if like is None else _reading_of(like)

    if missing not in MISSING:
        raise ValueError(f"`missing` should be one of {', '.join(map(repr, MISSING))}. Found missing = {missing!r}.")
    table = any_frame(frame)
    if not len(table):
        raise ValueError("`frame` should have at least one row. Found none.")
    check_once(list(table.columns), "frame")
    names = _group_columns(table, group)
    for name, what in ((label, "label"), *(() if weights is None else ((weights, "weights"),))):
        column(table, name, what)
    if known is not None and features is None:
        by_name = {str(name): name for name in table.columns}
        absent = [name for name in known.features if name not in by_name]
        if absent:
            raise KeyError(f"`frame` should have the features of `like`. Found no column {absent[0]!r}.")
        features = [by_name[name] for name in known.features]
    chosen = _features(table, features, label, {label, weights, *names})
    needed = [label, *names, *(() if weights is None else (weights,))]
    members = _members(table, names)
    gaps = table[[*dict.fromkeys([*needed, *chosen])]].isna()
    counts = {str(name): int(count) for name, count in gaps.sum().items() if count}
    if counts and missing == "error":
        listed = ", ".join(f"{name} ({count})" for name, count in counts.items())
        raise ValueError(f"No value should be missing with missing='error'. Found some missing in {listed}.")
    away = gaps[needed].any(axis=1) if missing == "impute" else gaps.any(axis=1)
    keep = ~away.to_numpy()
    reading = TableReading(len(table), _count(members, ~keep), _count(members), counts, kept_rows=np.flatnonzero(keep))
    if not keep.any():
        raise ValueError(f"`frame` should have rows without missing values. Found none. {reading.dropping()}")
    kept = table[keep]
    if known is not None and known.labels:
        y, words = _labels_like(kept[label], known.labels)
        positive = known.positive
    else:
        y, words = _labels(kept[label]) if positive is None else _yes_or_no(kept[label], positive)
    medians = {} if known is None else known.medians
    filled, imputed, medians = _imputed(kept[chosen], known) if missing == "impute" else (kept[chosen], {}, medians)
    x, encoded, columns = _numbers(filled, None if known is None else known.words)
    reading = replace(
        reading,
        imputed=imputed,
        label=str(label),
        group=tuple(map(str, names)),
        labels=words,
        positive=None if positive is None else words[1],
        words=encoded,
        features=tuple(map(str, chosen)),
        columns=columns,
        medians=medians,
    )
    if known is not None and columns != known.columns:
        odd = sorted({*columns} ^ {*known.columns})
        raise ValueError(f"`frame` should give the columns of `like`. Found a difference in {', '.join(odd[:5])}.")
    if reading.dropped_rows:
        always = gaps[needed].any(axis=1).to_numpy()[~keep].all()
        rest = "Rows without label, group or weight are always dropped" if always else 'missing="impute" keeps them'
        warn_caller(f'{reading.dropping()} {rest}; missing="error" refuses.')
    mass = None if weights is None else _weights(kept[weights], weights)
    data = GroupedData(x, y, [member for member, stays in zip(members, keep, strict=True) if stays], mass)
    return data.with_reading(reading)


def _group_columns(table: Any, group: Any) -> list[Any]:
    names = list(group) if isinstance(group, (list, tuple)) and group not in list(table.columns) else [group]
    if not names:
        raise ValueError("`group` should name at least one column. Found none.")
    for name in names:
        column(table, name, "group")
    return names


def _members(table: Any, names: Sequence[Any]) -> list[Any]:
    """The group of every row; None where a column of it is missing.

    A column of yes and no says who belongs to a group, which has the name of the column.
    """
    columns = [
        table[name].map({True: str(name), False: f"not {name}"}).tolist()
        if str(table[name].dtype) in ("bool", "boolean")
        else table[name].tolist()
        for name in names
    ]
    gaps = table[list(names)].isna().any(axis=1).tolist()
    rows = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    if not any(gaps):
        return plain_labels(rows)
    return [None if gap else plain_label(row) for row, gap in zip(rows, gaps, strict=True)]


def _count(members: Sequence[Any], chosen: np.ndarray | None = None) -> dict[Hashable, int]:
    counts = Counter(members if chosen is None else [members[place] for place in np.flatnonzero(chosen).tolist()])
    return dict(sorted(counts.items(), key=lambda item: str(item[0])))


def _features(table: Any, features: Sequence[Any] | None, label: Any, used: set[Any]) -> list[Any]:
    wanted = "a list of columns"
    chosen = (
        [name for name in table.columns if name not in used]
        if features is None
        else checked_list("features", features, wanted)
    )
    for name in chosen:
        checked_kind("features", name, Hashable, wanted)
    check_once(chosen, "features")
    for name in chosen:
        column(table, name, "features")
        if name == label:
            raise ValueError(f"The label should not be among the features. Found the column {label!r} in both.")
    if not chosen:
        raise ValueError("No column is left for the features: name some with features=.")
    return chosen


def _weights(values: Any, name: Any) -> np.ndarray:
    try:
        return np.asarray(values.to_numpy(dtype=float))
    except (TypeError, ValueError):
        raise TypeError(f"`weights` should name a column of numbers. Found words in the column {name!r}.") from None


def _labels(values: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Numbers as they are (whole ones stay whole), anything else coded 0, 1, 2, ... in sorted order."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(values.dtype) and not isinstance(values.dtype, pd.CategoricalDtype):
        plain = values.to_numpy(dtype=float)
        whole = not pd.api.types.is_float_dtype(values.dtype) or values.dtype.kind != "f"
        return (plain.astype(np.int64) if whole else plain), ()
    codes, words = pd.factorize(values.astype(str), sort=True)
    return np.asarray(codes, dtype=np.int64), tuple(map(str, words))


def _reading_of(like: Any) -> TableReading:
    reading = getattr(like, "reading", None)
    if not isinstance(reading, TableReading) or not reading.features:
        raise TypeError("`like` should be data that `from_frame` read. Found data from elsewhere.")
    return reading


def _labels_like(values: Any, words: tuple[str, ...]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Label words by the codes that they had before."""
    texts = values.astype(str)
    unknown = sorted(set(texts) - set(words))
    if unknown:
        raise ValueError(f"`frame` should have the labels of `like` ({', '.join(words)}). Found {unknown[0]!r}.")
    return texts.map({word: code for code, word in enumerate(words)}).to_numpy(dtype=np.int64), words


def _yes_or_no(values: Any, positive: Hashable) -> tuple[np.ndarray, tuple[str, ...]]:
    """1 for the positive label and 0 for the other, words or numbers."""
    found = sorted({plain_label(value) for value in values.tolist()}, key=str)
    named = [value for value in found if value == positive or str(value) == str(positive)]
    if not named:
        listed = ", ".join(map(repr, found[:10])) + (", ..." if len(found) > 10 else "")
        raise KeyError(f"`positive`: no label {positive!r} in column {values.name!r}. There are: {listed}.")
    if len(found) != 2:
        raise ValueError(f"`positive` is for two labels. Found {len(found)} in column {values.name!r}.")
    other = next(value for value in found if value != named[0])
    return (values == named[0]).to_numpy(dtype=np.int64), (str(other), str(named[0]))


def _imputed(table: Any, known: TableReading | None) -> tuple[Any, dict[str, int], dict[str, float]]:
    """Numbers by the median of their column with a column that says so; words by a value of their own."""
    import pandas as pd

    counts = {str(name): int(count) for name, count in table.isna().sum().items() if count}
    filled: dict[Any, Any] = {}
    medians: dict[str, float] = {} if known is None else dict(known.medians)
    for name in table.columns:
        values = table[name]
        gaps = values.isna()
        if not gaps.any() and str(name) not in medians:
            filled[name] = values
        elif pd.api.types.is_numeric_dtype(values.dtype):
            plain = values.astype(float)
            if gaps.all():
                raise ValueError(f"`features`: column {name!r} has no value at all: leave it out with features=.")
            if known is None:
                medians[str(name)] = float(plain.median())
            elif str(name) not in medians:
                raise ValueError(
                    f"`frame` should miss values only where `like` does. Found some missing in {name!r}, whose median "
                    "nobody has asked for."
                )
            filled[name] = plain.fillna(medians[str(name)])
            filled[f"{name} missing"] = gaps.astype(float)
        else:
            filled[name] = values.astype(object).where(~gaps, "missing")
    return pd.DataFrame(filled, index=table.index), counts, medians


def _numbers(
    table: Any, known: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[np.ndarray, Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """The features as one array, the values of every column of words, and the names of the array's columns."""
    import pandas as pd

    words: dict[str, tuple[str, ...]] = {}
    numbers: list[np.ndarray] = []
    columns: list[str] = []
    for name in table.columns:
        values = table[name]
        if pd.api.types.is_numeric_dtype(values.dtype) and str(name) not in (known or {}):
            numbers.append(values.to_numpy(dtype=np.float32)[:, None])
            columns.append(str(name))
            continue
        if values.dtype.kind in "mMc":
            raise TypeError(f"`features`: column {name!r} holds {values.dtype}: turn it into numbers, or leave it out.")
        texts = values.astype(str)
        found = sorted(set(texts))
        before = (known or {}).get(str(name))
        if before is not None:
            new = [word for word in found if word not in before]
            if new:
                count = int(texts.isin(new).sum())
                warn_caller(
                    f"Column {name} has {len(new)} values in {count:,} rows that `like` does not have, as {new[0]!r}: "
                    "they are zero in all its columns."
                )
            found = list(before)
        if len(found) > MOST_VALUES:
            raise ValueError(
                f"A column of words should have at most {MOST_VALUES:,} different values. Found {len(found):,} in "
                f"{name!r}: leave it out with features=."
            )
        words[str(name)] = tuple(found)
        columns += [f"{name} = {word}" for word in found]
        numbers.append((texts.to_numpy()[:, None] == np.asarray(found, dtype=object)).astype(np.float32))
    return np.concatenate(numbers, axis=1), words, tuple(columns)
