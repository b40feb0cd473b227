"""Tables: points, labels and groups from a DataFrame with column names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np


def is_table(value: object) -> bool:
    """Whether this is a pandas DataFrame."""
    import pandas as pd

    return isinstance(value, pd.DataFrame)


def column(table: Any, name: object, what: str) -> Any:
    """One column of a table, by name."""
    if not isinstance(name, Hashable) or name not in table.columns:
        raise KeyError(f"`{what}`: no column {name!r}. There are: {', '.join(map(repr, table.columns))}.")
    return table[name]


def group_labels(table: Any, group: Any) -> Any:
    """The labels in one column, or tuples of labels in several columns (intersections)."""
    if isinstance(group, (list, tuple)) and not (isinstance(group, tuple) and group in list(table.columns)):
        if not group:
            raise ValueError("`group` should name at least one column. Found none.")
        columns = [column(table, name, "group").tolist() for name in group]
        return list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
    return column(table, group, "group").tolist()


def features(table: Any, names: Sequence[Any]) -> np.ndarray:
    """These columns as one array of numbers."""
    words = [str(name) for name in names if table[name].dtype.kind not in "fiub"]
    if words:
        raise TypeError(
            f"Features should be numbers. Found other values in {', '.join(words)}: encode them first, for example "
            "with `pandas.get_dummies`, or choose columns with columns=."
        )
    if not names:
        raise ValueError("No column is left for the features: choose some with columns=.")
    return np.asarray(table[list(names)].to_numpy(dtype=np.float32))


def read_table(
    table: Any, y: Any, group: Any, weights: Any, columns: Sequence[Any] | None
) -> tuple[np.ndarray, Any, Any, Any]:
    used: list[Any] = []

    def named(value: Any, what: str) -> Any:
        if isinstance(value, str):
            used.append(value)
            return column(table, value, what).to_numpy()
        return value

    labels, mass = named(y, "y"), named(weights, "weights")
    names = isinstance(group, str) or (
        isinstance(group, (list, tuple)) and len(group) < len(table) and all(isinstance(g, str) for g in group)
    )
    if isinstance(group, str) and group == "label" and "label" not in table.columns:
        members: Any = labels
    elif names:
        used += [group] if isinstance(group, str) else list(group)
        members = group_labels(table, group)
    else:
        members = group
    chosen = list(columns) if columns is not None else [name for name in table.columns if name not in used]
    for name in chosen:
        column(table, name, "columns")
    return features(table, chosen), labels, members, mass
