"""Edits: what a what-if changes in the data and in the decisions, checked where it enters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from tiltmeter.data.grouped import GroupedData
from tiltmeter.preview.inputs import column_names


def checked_thresholds(thresholds: Mapping[Hashable, float], train: GroupedData) -> None:
    """Refuse thresholds of unknown groups and those that are no probabilities."""
    if len(train.labels) != 2:
        raise ValueError(f"`thresholds` are for two labels. Found {len(train.labels)} different ones.")
    for group, value in thresholds.items():
        if group not in train.groups:
            raise KeyError(f"`thresholds`: no group {group!r}. There are: {', '.join(map(repr, train.groups))}.")
        if isinstance(value, bool) or not 0 < value < 1:
            raise ValueError(f"`thresholds` should be probabilities strictly between 0 and 1. Found {value!r}.")


def without_columns(data: GroupedData, names: Sequence[str]) -> GroupedData:
    """The same points without some columns; a column of words goes with all of its values."""
    known = column_names(data)
    away: list[int] = []
    for name in names:
        own = [place for place, column in enumerate(known) if column == name or column.startswith(f"{name} = ")]
        if not own:
            listed = ", ".join(dict.fromkeys(column.partition(" = ")[0] for column in known))
            raise KeyError(f"`without`: no column {name!r}. There are: {listed}.")
        away += own
    kept = [place for place in range(len(known)) if place not in away]
    if not kept:
        raise ValueError("`without` should leave a column to learn from. Found none left.")
    smaller = data.with_points(data.x.reshape(len(data), -1)[:, kept])
    if data.reading is None or len(data.reading.columns) != len(known):
        return smaller
    return smaller.with_reading(replace(data.reading, columns=tuple(known[place] for place in kept)))
