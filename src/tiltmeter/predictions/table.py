"""Table: predictions of any model, read from a table or from arrays into evaluations of the same points."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tiltmeter.data.any_frame import any_frame, check_once, column
from tiltmeter.data.grouped import GroupedData
from tiltmeter.shown_text import quoted

#: A name that no column of a user has: the feature that `from_frame` asks for, which predictions do not need.
NO_FEATURE = "\x00no feature"


@dataclass(frozen=True)
class Evaluation:
    """What was predicted for every point at one step of one seed; scores have shape (points,) or (points, classes)."""

    seed: Any
    step: float
    score: np.ndarray | None
    decision: np.ndarray | None


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what; `score` maps a step to its columns where each evaluation has its own."""

    label: Hashable
    group: tuple[Hashable, ...]
    score: Mapping[float, tuple[Hashable, ...]] | tuple[Hashable, ...]
    decision: Hashable | None
    step: Hashable | None
    weight: Hashable | None
    seed: Hashable | None
    point: Hashable | None

    def __post_init__(self) -> None:
        if isinstance(self.score, Mapping) and (self.step is not None or self.decision is not None):
            what = "step" if self.step is not None else "decision"
            raise ValueError(f"`{what}` should be left out where `score` gives the columns of every step. Found both.")


def named_table(frame: Any, given: Mapping[str, Any]) -> tuple[pd.DataFrame, Columns]:
    """One table, with arrays that were passed in as columns of it, and the names of what is needed."""
    table, wide = _frame(frame)
    score, decision = given["score"], given["decision"]
    check_once(list(table.columns), "frame")
    columns: dict[Hashable, Any] = {}

    def name_of(value: Any, what: str) -> Hashable:
        if _is_name(value, table):
            column(table, value, what)
            return value  # type: ignore[no-any-return]
        array = _array(value, what)
        # Nobody named this column: yes and no stay what its groups are called.
        columns[what] = array.astype(object) if what == "group" and array.dtype == bool else array
        return what

    def names_of(value: Any, what: str) -> tuple[Hashable, ...]:
        if _is_name(value, table):
            return wide.get(value) or (name_of(value, what),)
        if isinstance(value, (list, tuple)) and _are_names(value, table):
            return tuple(name_of(part, what) for part in value)
        array = _array(value, what)
        if array.ndim == 1:
            return (name_of(array, what),)
        parts = tuple(f"{what} {place}" for place in range(array.shape[1]))
        columns.update({part: array[:, place] for place, part in enumerate(parts)})
        return parts

    def asked(what: str, usual: bool) -> Hashable | None:
        if given[what] is None:
            return what if usual and what in table.columns else None
        return name_of(given[what], what)

    if score is None and decision is None and "score" in (*table.columns, *wide):
        score = "score"
    if isinstance(score, Mapping):
        scores: Any = {_step(key): names_of(value, f"score at {key}") for key, value in score.items()}
        if not scores:
            raise ValueError("`score` should give at least one evaluation. Found none.")
    else:
        scores = () if score is None else names_of(score, "score")
    if not scores and decision is None and "decision" not in table.columns:
        listed = f": the columns are {', '.join(map(repr, table.columns))}" if len(table.columns) else ""
        raise ValueError(f"`score` or `decision` should name what was predicted. Found neither{listed}.")
    # Without a step, several evaluations in one table would be taken for one: a column of that name is the step.
    usual = not isinstance(score, Mapping)
    chosen = Columns(
        label=name_of(given["label"], "label"),
        group=names_of(given["group"], "group"),
        score=scores,
        decision=asked("decision", usual and not scores),
        step=asked("step", usual),
        weight=asked("weight", False),
        seed=asked("seed", True),
        point=asked("point", False),
    )
    return _joined(table, columns), chosen


def evaluations(
    table: pd.DataFrame, columns: Columns, positive: Hashable | None
) -> tuple[GroupedData, Iterator[Evaluation]]:
    """The points with labels and groups, and what was predicted for them, seed by seed and step by step."""
    if not len(table):
        raise ValueError("`frame` should have at least one row. Found none.")
    keys, rows = _blocks(table, columns)
    first = table.iloc[rows[0]] if len(keys) > 1 else table
    data = _points(first, columns, positive)
    assert data.reading is not None
    kept = data.reading.kept_rows
    whole = kept is None or len(kept) == len(first)
    return data, _each(table, columns, keys, rows if whole else rows[:, kept], data)


def _points(first: pd.DataFrame, columns: Columns, positive: Hashable | None) -> GroupedData:
    needed = dict.fromkeys([columns.label, *columns.group, *([] if columns.weight is None else [columns.weight])])
    facts = first[list(needed)].assign(**{NO_FEATURE: np.float32(0.0)})
    data = GroupedData.from_frame(
        facts,
        label=columns.label,
        group=list(columns.group),
        features=[NO_FEATURE],
        weights=columns.weight,
        positive=positive,
    )
    return data.with_points(np.empty((len(data), 0), dtype=np.float32))


def _blocks(table: pd.DataFrame, columns: Columns) -> tuple[list[tuple[Any, float]], np.ndarray]:
    """(seed, step) of every evaluation, and the rows of each in the same order of points."""
    keys: dict[str, tuple[np.ndarray, list[Any]]] = {}
    for what, name in (("seed", columns.seed), ("step", columns.step)):
        if name is None:
            keys[what] = np.zeros(len(table), dtype=np.int64), [None if what == "seed" else 0]
            continue
        codes, values = pd.factorize(table[name], sort=True)
        if (codes < 0).any():
            raise ValueError(f"`{what}` should have no missing value. Found {int((codes < 0).sum())} in {name!r}.")
        keys[what] = codes, list(values)
    steps = [_step(value) for value in keys["step"][1]]
    block = keys["seed"][0] * len(steps) + keys["step"][0]
    present, counts = np.unique(block, return_counts=True)
    found = [(keys["seed"][1][code // len(steps)], steps[code % len(steps)]) for code in present.tolist()]
    if len(set(counts.tolist())) > 1:
        most, least = int(counts.argmax()), int(counts.argmin())
        raise ValueError(
            f"Every evaluation should hold the same points. Found {counts[most]} rows at {_place(found[most])} and "
            f"{counts[least]} at {_place(found[least])}."
        )
    names = None if columns.point is None else pd.factorize(table[columns.point], sort=True)[0]
    if len(found) == 1 and names is None:
        return found, np.arange(len(table))[None]
    order = np.argsort(block, kind="stable") if names is None else np.lexsort((names, block))
    rows = order.reshape(len(found), -1)
    if names is not None and (np.diff(names[rows[0]]) == 0).any():
        raise ValueError(f"`point` should name every point once. Found one twice at {_place(found[0])}.")
    _check_same_points(table, columns, rows, found, names)
    return found, rows


def _check_same_points(
    table: pd.DataFrame, columns: Columns, rows: np.ndarray, found: Sequence[tuple[Any, float]], names: Any
) -> None:
    weights = [] if columns.weight is None else [columns.weight]
    kept = {"label": [columns.label], "group": list(columns.group), "weight": weights}
    facts = [(what, pd.factorize(table[name])[0]) for what, listed in kept.items() for name in listed]
    facts += [] if names is None else [("point", names)]
    for what, codes in facts:
        first = codes[rows[0]]
        for place, own in zip(found[1:], rows[1:], strict=True):
            if not np.array_equal(codes[own], first):
                way = "" if names is not None else ": name the column that tells them apart with point="
                raise ValueError(
                    "Every evaluation should hold the same points in the same order. Found another "
                    f"`{what}` at {_place(place)} than at {_place(found[0])}{way}."
                )


def _each(
    table: pd.DataFrame, columns: Columns, keys: Sequence[tuple[Any, float]], rows: np.ndarray, data: GroupedData
) -> Iterator[Evaluation]:
    decided = None if columns.decision is None else _decisions(table[columns.decision], columns.decision, data)
    wide = columns.score if isinstance(columns.score, Mapping) else None
    names = [name for part in (wide.values() if wide else [columns.score]) for name in part]
    scores = {name: _numbers(table[name], name) for name in names}
    for (seed, step), own in zip(keys, rows, strict=True):
        decision = None if decided is None else decided[own]
        for moment, parts in {step: columns.score}.items() if wide is None else sorted(wide.items()):
            yield Evaluation(seed, moment, _rows(scores, parts, own), decision)


def _rows(scores: Mapping[Hashable, np.ndarray], names: Any, own: np.ndarray) -> np.ndarray | None:
    parts = [scores[name][own] for name in names]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else np.stack(parts, 1)


def _numbers(values: Any, name: Hashable) -> np.ndarray:
    """Scores as floating-point numbers of the precision that they came with."""
    try:
        array = values.to_numpy()
        array = array if array.dtype.kind == "f" and array.dtype.itemsize <= 8 else values.to_numpy(dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"`score` should name columns of numbers. Found words in the column {name!r}.") from None
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise ValueError(f"`score` should be finite. Found NaN or infinity in {bad} rows of the column {name!r}.")
    return np.asarray(array)


def _decisions(values: Any, name: Hashable, data: GroupedData) -> np.ndarray:
    """Decisions as labels: the same words or numbers as the labels; of two labels also booleans."""
    labels = data.labels.tolist()
    assert data.reading is not None
    words = data.reading.labels
    if values.isna().any():
        raise ValueError(f"`decision` should have no missing value. Found {int(values.isna().sum())} in {name!r}.")
    codes, distinct = pd.factorize(values)
    given = [value.item() if isinstance(value, np.generic) else value for value in distinct.tolist()]
    known: dict[Any, float] = {}
    for value in given:
        if words and str(value) in words:
            known[value] = float(words.index(str(value)))
        elif not words and not isinstance(value, str) and value in labels:
            known[value] = float(value)
        elif isinstance(value, bool) and len(labels) == 2:
            known[value] = float(labels[int(value)])
        elif words and len(words) == 2 and not isinstance(value, str) and value in (0, 1):
            known[value] = float(value)
        else:
            listed = ", ".join(map(repr, words or labels))
            raise ValueError(f"`decision` should hold labels ({listed}). Found {value!r} in the column {name!r}.")
    return np.asarray([known[value] for value in given])[codes]


def _frame(frame: Any) -> tuple[pd.DataFrame, dict[Hashable, tuple[Hashable, ...]]]:
    """A table of any kind; a mapping of arrays may hold arrays of several columns, which are listed beside it."""
    if frame is None:
        return pd.DataFrame(), {}
    if not isinstance(frame, Mapping):
        return any_frame(frame), {}
    columns: dict[Hashable, np.ndarray] = {}
    wide: dict[Hashable, tuple[Hashable, ...]] = {}
    for name, value in frame.items():
        array = _array(value, str(name))
        if array.ndim == 1:
            columns[name] = array
            continue
        wide[name] = tuple(f"{name} {place}" for place in range(array.shape[1]))
        columns.update({part: array[:, place] for place, part in enumerate(wide[name])})
    return _joined(pd.DataFrame(), columns), wide


def _joined(table: pd.DataFrame, columns: Mapping[Hashable, Any]) -> pd.DataFrame:
    lengths = {str(name): len(array) for name, array in columns.items()}
    if len(table.columns):
        lengths = {"frame": len(table), **lengths}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{count} in {name}" for name, count in lengths.items())
        raise ValueError(f"Lengths should agree. Found {listed}.")
    if not columns:
        return table
    index = table.index if len(table.columns) else None
    fresh = pd.DataFrame({name: np.asarray(array) for name, array in columns.items()}, index=index)
    return fresh if not len(table.columns) else pd.concat([table, fresh], axis=1)


def _is_name(value: Any, table: pd.DataFrame) -> bool:
    if isinstance(value, (str, bytes)):
        return True
    return isinstance(value, Hashable) and not hasattr(value, "__array__") and value in table.columns


def _are_names(values: Sequence[Any], table: pd.DataFrame) -> bool:
    """Whether a list names columns; a list as long as the table, without any such column, holds its values."""
    if not len(table.columns) or not values or not all(_is_name(value, table) for value in values):
        return False
    return any(value in table.columns for value in values) or len(values) != len(table)


def _array(value: Any, what: str) -> np.ndarray:
    if value is None:
        raise TypeError(f"`{what}` should name a column or hold one value per prediction. Found None.")
    if type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    array = np.asarray(value)
    if array.ndim not in (1, 2) or (array.dtype == object and array.ndim == 2 and what != "group"):
        raise ValueError(f"`{what}` should hold one value per prediction. Found shape {array.shape}.")
    return array


def _step(value: Any) -> float:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, (int, float)) or not np.isfinite(plain) or plain < 0:
        raise ValueError(f"`step` should be a number from 0 on. Found {quoted(value)}.")
    return int(plain) if float(plain).is_integer() else float(plain)


def _place(key: tuple[Any, float]) -> str:
    seed, step = key
    return f"step {step:g}" if seed is None else f"step {step:g} of seed {seed}"
