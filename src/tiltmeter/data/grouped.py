"""GroupedData: points with labels, and the groups that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import wraps
from html import escape
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from tiltmeter.arguments import checked_list, checked_seed
from tiltmeter.data.any_frame import is_table, read_table
from tiltmeter.data.arrays import check_finite, members_of, numbers_of, points_of, read_dataset, writable
from tiltmeter.data.from_frame import TableReading
from tiltmeter.data.labels import coded
from tiltmeter.data.nested import Nested, Streamed, nested_points
from tiltmeter.question import Question, checked_question
from tiltmeter.record.labelled import JSON, label_to_json, labels_array
from tiltmeter.shown_text import group_name, percent, warn_caller

P = ParamSpec("P")
R = TypeVar("R")


def misnamed(**right: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that answers these wrong names of arguments with the right one.

    >>> @misnamed(colour="color")
    ... def paint(color):
    ...     return color
    >>> paint(colour="red")
    Traceback (most recent call last):
    TypeError: `paint` has no argument `colour`. Did you mean color=?
    """

    def hinting(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name in right:
                    raise TypeError(f"`{function.__name__}` has no argument `{name}`. Did you mean {right[name]}=?")
            return function(*args, **kwargs)

        return call

    return hinting


#: Largest number of label columns; with more labels it is a regression, or too much to read.
SHOWN = 10


#: With fewer points than this, the standard errors of a group are large and themselves uncertain.
SMALL = 30


class GroupedData:
    """Points `x` with labels `y`, each in one group; immutable.

    >>> data = GroupedData(np.eye(4)[[0, 1, 2, 3] * 20], [0, 1, 1, 1] * 20, ["a", "a", "b", "b"] * 20)
    >>> data
    <GroupedData 80 points of 4, 2 groups, imbalance 1>
      group  points   share  label 0  label 1
      a          40  50.0 %   50.0 %   50.0 %
      b          40  50.0 %    0.0 %  100.0 %

    `x` is an array or a tensor with one point per row; or a dict or a tuple of them (tokens with masks), which a model
    gets as they are; or a DataFrame (then `y`, `group` and `weights` may be names of its columns, and the features are
    the other columns or those in `columns`); or a torch Dataset that yields (x, y, group), which is read once. Group
    labels may be any hashable values: `group="sex"`, `group=["sex", "race"]` for intersections, `group="label"` for the
    classes themselves.

    Args:
        x: Points, one per row: an array, a tensor, a dict or tuple of them, a DataFrame, or a torch Dataset.
        y: Label of every point, or the name of its column.
        group: Group of every point: labels, the name of a column, a list of columns for intersections, or "label".
        weights: How much every point counts when curves are averaged, or the name of its column; None: all alike.
        groups: Order of the groups; None: sorted.
        columns: Columns of a DataFrame that are features; None: all others.
        question: What a positive decision means to a person; every result uses its words. None: the plain terms.
        label: Of a table: the column to predict; then `group` names columns, and words are encoded (`from_frame`).
        positive: Of a table: which of two labels is a yes.
        features: Of a table: the columns to predict from; None: all others.
    """

    __slots__ = ("_group_labels", "codes", "groups", "question", "reading", "weights", "x", "y")
    x: Any
    y: np.ndarray
    codes: np.ndarray
    groups: tuple[Hashable, ...]
    weights: np.ndarray | None
    #: How a table was read (words encoded, rows dropped); None where the points came as arrays.
    reading: TableReading | None
    #: What a positive decision means; None: not said.
    question: Question | None
    _group_labels: np.ndarray | None

    def __init__(
        self,
        x: Any,
        y: Any = None,
        group: Any = None,
        weights: Any = None,
        *,
        groups: Sequence[Any] | None = None,
        columns: Sequence[Any] | None = None,
        question: Question | None = None,
        label: Hashable | None = None,
        positive: Hashable | None = None,
        features: Sequence[Any] | None = None,
    ) -> None:
        if label is not None:
            asked = {"label": label, "group": group, "features": features, "weights": weights, "positive": positive}
            read = type(self).from_frame(x, **asked)
            kept = (read.x, read.y, read.codes, read.groups, read.weights, read.reading)
            self._set(*kept, checked_question(question))
            return
        for name, value in (("positive", positive), ("features", features)):
            if value is not None:
                raise TypeError(f"`{name}` is of a table, and goes with `label`. Found `{name}` without it.")
        if groups is not None:
            groups = checked_list("groups", groups, "a list of group labels")
        if y is None and group is None and not is_table(x):
            x, y, group = read_dataset(x)
        if is_table(x):
            x, y, group, weights = read_table(x, y, group, weights, columns)
        elif columns is not None:
            raise TypeError(f"`columns` chooses columns of a DataFrame. Found x of type {type(x).__name__}.")
        labels = numbers_of("y", y)
        points = nested_points(x, len(labels))
        if not isinstance(points, (Nested, Streamed)):
            points = points_of(points)
        if isinstance(group, str):
            if group != "label":
                raise TypeError(f'`group` may be a name only for a DataFrame, or "label". Found group = {group!r}.')
            group = labels
        if group is None:
            raise TypeError("`group` should give the group of every point. Found None.")
        members = members_of(group)
        checked = None if weights is None else numbers_of("weights", weights)
        lengths = {"x": len(points), "y": len(labels), "group": len(members)}
        if checked is not None:
            lengths["weights"] = len(checked)
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{count} in {name}" for name, count in lengths.items())
            raise ValueError(f"Lengths should agree. Found {found}.")
        if not len(points):
            raise ValueError("`x` should hold at least one point. Found none.")
        check_finite(points, labels)
        if checked is not None and not (np.isfinite(checked).all() and (checked >= 0).all() and checked.sum() > 0):
            raise ValueError("`weights` should be finite, not negative, and not all zero.")
        names, codes = coded(members, groups)
        weighing = None if checked is None else checked.astype(float)
        self._set(points, labels, codes, names, weighing, None, checked_question(question))
        self.warn_small()

    @classmethod
    @misnamed(columns="features", target="label", labels="label", y="label", groups="group", sensitive="group")
    def from_frame(
        cls,
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
        """Grouped data from the named columns of a table, with an account of what was done to it (`data.reading`).

        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [20, 40] * 40, "job": ["clerk", "cook"] * 40, "wage": ["low", "high"] * 40})
        >>> table["sex"] = ["F"] * 40 + ["M"] * 40
        >>> print(GroupedData.from_frame(table, label="wage", positive="high", group="sex").reading)
        Read 80 rows. Labels: low = 0, high = 1 (the positive label). Column job became 2 columns, one for each value.

        `frame` is a table of pandas, polars, Arrow or Hugging Face `datasets`, the path of a .csv, .parquet or
        .feather file, or a folder that `Dataset.save_to_disk` wrote. Several columns in `group` make intersections.
        The features are the columns in `features`, by default all that are neither label, group nor weights; words
        become one column of zeros and ones for each value. Of two labels `positive` is the one that becomes 1, a yes of
        the model; without it, label words become 0, 1, 2, ... in sorted order, which may make "denied" the yes.

        Rows with a missing value are dropped (`missing="drop"`) with a warning that counts them group by group, or
        refused ("error"), or filled in ("impute"): numbers by the median of their column, with one more column that
        says where; words by the value "missing". Rows without label, group or weight are dropped even then. The median
        is that of all rows, so a later split shares it between both parts. Groups that lose more rows than others are
        no longer a fair sample of themselves.

        `like` reads the table as another one was read: `from_frame(test, ..., like=train)` has the columns of `train`
        in its order, codes labels alike, and fills in the medians of `train`. Words that `train` does not have become
        zeros in all columns of their feature, with a warning. `data.reading.columns` names the columns of `x`, and
        `data.reading.kept_rows` says which row of the table every point is, after a split too.
        """
        from tiltmeter.data.from_frame import from_frame

        columns = {"label": label, "group": group, "features": features, "weights": weights}
        return from_frame(frame, **columns, positive=positive, missing=missing, like=like)

    @classmethod
    def from_npz(
        cls,
        path: Any,
        *,
        label: str = "y",
        group: str = "group",
        features: str = "x",
        weights: str | None = None,
    ) -> GroupedData:
        """Grouped data from named arrays of a .npz file; Python objects in it are never loaded.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     np.savez(folder + "/points.npz", x=np.eye(2).repeat(40, 0), y=[0, 1] * 40, group=[0] * 40 + [1] * 40)
        ...     GroupedData.from_npz(folder + "/points.npz").sizes
        {0: 40, 1: 40}
        """
        from tiltmeter.data.from_loader import from_npz

        return from_npz(path, label=label, group=group, features=features, weights=weights)

    @classmethod
    def from_loader(
        cls, source: Any, *, read: Callable[[Any], Any] | None = None, group: Any = None, stream: bool = False
    ) -> GroupedData:
        """Grouped data from a PyTorch Dataset (point by point) or DataLoader (batch by batch), read once into memory.

        >>> import torch
        >>> points = torch.utils.data.TensorDataset(torch.eye(2).repeat(40, 1), torch.arange(80) % 2)
        >>> GroupedData.from_loader(points, group=["a"] * 40 + ["b"] * 40).sizes
        {'a': 40, 'b': 40}

        Items are (x, y, group), a dict with keys x, y (or label) and group, or (x, y) with one label per point in
        `group`; `read` turns anything else into (x, y, group). Other keys of a dict without x are the parts of a point:
        a model gets them by name.

        With `stream` only labels and groups are kept, and the points are read again at every evaluation: for held-out
        data larger than memory. The source should give the same points in the same order each time."""
        from tiltmeter.data.from_loader import from_loader

        return from_loader(source, read=read, group=group, stream=stream)

    def _set(
        self,
        x: Any,
        y: np.ndarray,
        codes: np.ndarray,
        groups: tuple[Hashable, ...],
        weights: np.ndarray | None,
        reading: TableReading | None = None,
        question: Question | None = None,
    ) -> None:
        values = {"x": x, "y": y, "codes": codes, "groups": groups, "weights": weights, "reading": reading}
        values["question"] = question
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_group_labels", None)

    def with_reading(self, reading: TableReading) -> GroupedData:
        """The same data with an account of how it was read."""
        return self._like(self.x, reading)

    def with_points(self, x: Any) -> GroupedData:
        """The same labels, groups and weights with other points `x`, as after scaling."""
        points = nested_points(x, len(self))
        points = points if isinstance(points, (Nested, Streamed)) else points_of(points)
        if len(points) != len(self):
            raise ValueError(f"`x` should have {len(self)} points. Found {len(points)}.")
        check_finite(points, self.y)
        return self._like(points, self.reading)

    def with_weights(self, weights: Any) -> GroupedData:
        """The same points with these weights of their losses, checked where they are made."""
        other = object.__new__(GroupedData)
        given = np.asarray(weights, dtype=float)
        other._set(self.x, self.y, self.codes, self.groups, given, self.reading, self.question)
        return other

    def with_question(self, question: Question | None) -> GroupedData:
        """The same points with what a positive decision means to a person."""
        other = object.__new__(GroupedData)
        asked = checked_question(question)
        other._set(self.x, self.y, self.codes, self.groups, self.weights, self.reading, asked)
        return other

    def _like(self, x: Any, reading: TableReading | None) -> GroupedData:
        other = object.__new__(GroupedData)
        other._set(x, self.y, self.codes, self.groups, self.weights, reading, self.question)
        return other

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("GroupedData is immutable: build new data instead.")

    def __reduce__(self) -> Any:
        """To another process, as it is: nothing is checked again."""
        return _rebuilt, (self.x, self.y, self.codes, self.groups, self.weights, self.reading, self.question)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def group_labels(self) -> np.ndarray:
        """The groups as labels of an array's dimension; laid out once."""
        labels = self._group_labels
        if labels is None:
            labels = labels_array(self.groups)
            labels.flags.writeable = False
            object.__setattr__(self, "_group_labels", labels)
        return labels

    @property
    def sizes(self) -> dict[Hashable, int]:
        """Number of points in each group."""
        return dict(zip(self.groups, np.bincount(self.codes, minlength=len(self.groups)).tolist(), strict=True))

    @property
    def imbalance(self) -> float:
        """Size of the largest group divided by that of the smallest."""
        return max(self.sizes.values()) / max(1, min(self.sizes.values()))

    @property
    def labels(self) -> np.ndarray:
        """The distinct labels in ascending order."""
        return np.unique(self.y)

    @property
    def label_rates(self) -> dict[Hashable, dict[float, float]]:
        """For each group, the share of every label; empty if the labels are real numbers and not classes."""
        labels, places = np.unique(self.y, return_inverse=True)
        if self.y.dtype.kind == "f" and len(labels) > 2:
            return {}
        counts = np.zeros((len(self.groups), len(labels)))
        np.add.at(counts, (self.codes, places), 1.0)
        shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
        return {
            g: dict(zip(labels.tolist(), row, strict=True)) for g, row in zip(self.groups, shares.tolist(), strict=True)
        }

    def of_group(self, group: Hashable) -> np.ndarray:
        """The indices of all points of one group."""
        if group not in self.groups:
            raise KeyError(f"No group {group!r}. There are: {', '.join(map(repr, self.groups))}.")
        return np.flatnonzero(self.codes == self.groups.index(group))

    def take(self, places: Any) -> GroupedData:
        """The points with these indices, with the same groups."""
        chosen = np.asarray(places, dtype=np.int64)
        part = object.__new__(GroupedData)
        weights = None if self.weights is None else self.weights[chosen]
        points = self.x.take(chosen) if isinstance(self.x, Streamed) else self.x[chosen]
        reading = None if self.reading is None else self.reading.of_points(chosen)
        part._set(points, self.y[chosen], self.codes[chosen], self.groups, weights, reading, self.question)
        return part

    @overload
    def split(
        self, held_out: float = ..., seed: int = ..., *, judge: None = ...
    ) -> tuple[GroupedData, GroupedData]: ...

    @overload
    def split(
        self, held_out: float = ..., seed: int = ..., *, judge: float
    ) -> tuple[GroupedData, GroupedData, GroupedData]: ...

    def split(self, held_out: float = 0.2, seed: int = 0, *, judge: float | None = None) -> tuple[GroupedData, ...]:
        """Two parts, for training and held-out: the share `held_out` of *every* group goes to the second.

        >>> data = GroupedData(np.zeros((1000, 1)), np.zeros(1000), np.arange(1000) % 10 == 0)
        >>> [part.sizes for part in data.split(held_out=0.4)]
        [{False: 540, True: 60}, {False: 360, True: 40}]
        >>> [len(part) for part in data.split(held_out=0.2, judge=0.3)]
        [500, 200, 300]

        With `judge` there is a third part, to judge the model that was chosen: when to stop, or which run to take, is
        then decided on the points looked at, and what is said of the choice rests on points that had no part in it.
        """
        shares = {"held_out": held_out} if judge is None else {"held_out": held_out, "judge": judge}
        part_of = stratified_split({group: self.of_group(group) for group in self.groups}, shares, seed)
        parts = tuple(self.take(np.flatnonzero(part_of == place)) for place in range(len(shares) + 1))
        if not any(size < SMALL for size in self.sizes.values()):
            for part in parts[1:]:
                part.warn_small()
        return parts

    def warn_small(self) -> None:
        """Warn about groups that have too few points for reliable results."""
        small = [f"{group_name(group)} ({size})" for group, size in self.sizes.items() if size < SMALL]
        if small:
            warn_caller(f"Groups with fewer than {SMALL} points give unreliable results: {', '.join(small)}.")

    def tensors(self, dtype: Any = None) -> tuple[Any, Any]:
        """`x` and `y` as tensors, for a TensorDataset; floating-point x in this dtype (default: float32, or that of
        a tensor).
        """
        if isinstance(self.x, (Nested, Streamed)):
            what = "in parts (dict or tuple)" if isinstance(self.x, Nested) else "streamed"
            raise TypeError(f"This needs points that are one tensor. Found points {what}, which Probe and train take.")
        return self.tensor_points(dtype)

    def inputs(self, dtype: Any = None) -> tuple[Any, Any]:
        """As `tensors`, with points in parts as tensors in the same structure, a dict or a tuple; streamed points as
        they are.

        >>> data = GroupedData({"tokens": np.zeros((60, 2), dtype=int)}, [0, 1] * 30, ["a"] * 30 + ["b"] * 30)
        >>> {name: tuple(part.shape) for name, part in data.inputs()[0].items()}
        {'tokens': (60, 2)}
        """
        x, y = self.tensor_points(dtype)
        return (x.parts if isinstance(x, Nested) else x), y

    def tensor_points(self, dtype: Any = None) -> tuple[Any, Any]:
        """As `inputs`, with points in parts as one object that can be cut and counted."""
        import torch

        def tensor(values: Any) -> Any:
            found = values if torch.is_tensor(values) else torch.as_tensor(writable(values))
            if found.is_floating_point() and (dtype is not None or not torch.is_tensor(values)):
                return found.to(dtype or torch.float32)
            return found

        if isinstance(self.x, Streamed):
            x: Any = self.x
        else:
            x = self.x.each(tensor) if isinstance(self.x, Nested) else tensor(self.x)
        y = torch.as_tensor(writable(self.y))
        return x, y.to(dtype or torch.float32) if y.is_floating_point() else y

    def to_json(self) -> dict[str, JSON]:
        """A summary of the data for an Origin, without the points."""
        rates: list[JSON] = [
            [label_to_json(group), [[label, rate] for label, rate in found.items()]]
            for group, found in self.label_rates.items()
        ]
        read: dict[str, JSON] = {} if self.reading is None else {"reading": self.reading.to_json()}
        if self.question is not None:
            asked = {name: value for name, value in self.question.to_json().items() if value is not None}
            read["question"] = dict(asked)
        return {
            **read,
            "points": len(self),
            "shape": [n if isinstance(n, dict) else int(n) for n in self.x.shape[1:]],
            "sizes": [[label_to_json(group), size] for group, size in self.sizes.items()],
            "label_rates": rates,
            "weighted": self.weights is not None,
        }

    def __repr__(self) -> str:
        return _summary_text(self)

    def _repr_html_(self) -> str:
        return _summary_html(self)


def _rebuilt(*parts: Any) -> GroupedData:
    data = object.__new__(GroupedData)
    data._set(*parts)
    return data


def check_labels_known(train: GroupedData, held_out: object) -> None:
    """Refuse points to look at with classes that no point trained on has: no model could have learned them."""
    if not isinstance(held_out, GroupedData) or not (train.label_rates and held_out.label_rates):
        return  # measurements, not classes
    unknown = np.setdiff1d(held_out.labels, train.labels)
    if len(unknown):
        raise ValueError(
            "`held_out` should have labels that `train` has too. Found "
            f"{', '.join(f'{label:g}' for label in unknown[:5])} "
            "in `held_out` only."
        )


def rows(data: GroupedData) -> tuple[list[str], list[list[str]]]:
    """Header and one row per group: size, share, and the rate of every label if there are few labels."""
    rates = data.label_rates
    labels = list(next(iter(rates.values()))) if rates else []
    shown = labels if len(labels) <= SHOWN else []
    header = ["group", "points", "share", *(f"label {label}" for label in shown)]
    table = []
    for group, size in data.sizes.items():
        cells = [percent(rates[group][label], 1) for label in shown]
        table.append([group_name(group), f"{size:,}", percent(size / len(data), 1), *cells])
    return header, table


def _summary_text(data: GroupedData) -> str:
    header, table = rows(data)
    lines = [_first_line(data)]
    widths = [max(len(row[i]) for row in [header, *table]) for i in range(len(header))]
    for row in [header, *table]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(cells))
    return "\n".join(lines)


def _summary_html(data: GroupedData) -> str:
    header, table = rows(data)

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = line(header, "th") + "".join(line(row, "td") for row in table)
    return f"<div><p>{escape(_first_line(data)[1:-1])}</p><table>{body}</table></div>"


def _first_line(data: GroupedData) -> str:
    shape = " x ".join(", ".join(n) if isinstance(n, dict) else str(n) for n in data.x.shape[1:]) or "1"
    return f"<GroupedData {len(data):,} points of {shape}, {len(data.groups)} groups, imbalance {data.imbalance:.3g}>"


def stratified_split(members: Mapping[Hashable, np.ndarray], shares: Mapping[str, float], seed: int) -> np.ndarray:
    """The part of every point: 0 for training, then 1, 2, ... in the order of `shares`, each with its share of a group.

    >>> stratified_split({"a": np.arange(4), "b": np.arange(4, 8)}, {"held_out": 0.25}, seed=0).tolist().count(1)
    2

    `members` holds the places of the points of every group.
    """
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise ValueError(f"`{name}` should be a share strictly between 0 and 1. Found {name} = {share!r}.")
    if sum(shares.values()) >= 1:
        told = " + ".join(map(str, shares.values()))
        raise ValueError(f"`held_out` and `judge` should leave points to train on. Found {told} of all.")
    rng = np.random.default_rng(checked_seed(seed))
    part_of = np.zeros(sum(map(len, members.values())), dtype=np.int8)
    for group, own in members.items():
        counts = [round(share * len(own)) for share in shares.values()]
        if min(counts) < 1 or sum(counts) >= len(own):
            raise ValueError(
                f"{'Both' if len(shares) == 1 else 'All'} parts should have points of every group. Found that group "
                f"{group!r} with {len(own)} points would have {' and '.join(map(str, counts))} held-out points."
            )
        order, start = rng.permutation(own), 0
        for place, count in enumerate(counts, 1):
            part_of[order[start : start + count]] = place
            start += count
    return part_of
