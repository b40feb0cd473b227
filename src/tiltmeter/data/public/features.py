"""features: columns of a table as numbers, one-hot encoded and standardised with the training part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData


def grouped_tables(
    tables: Sequence[Any], labels: Sequence[Any], members: Sequence[Any], drop: Sequence[str] = ()
) -> tuple[GroupedData, GroupedData]:
    """Two tables (DataFrames) with the same columns as grouped data, for training and held-out.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [20.0, 40.0] * 40, "job": ["clerk", "cook"] * 40})
    >>> train, held_out = grouped_tables([table] * 2, [[0, 1] * 40] * 2, [["a", "a", "b", "b"] * 20] * 2)
    >>> train.x[0].tolist()
    [-1.0, 1.0, -1.0]

    Text columns become one column for each value *that the first table has*. Every column is then scaled to mean 0 and
    standard deviation 1 over the first table, so that no information from the second leaks into training. `drop` lists
    columns that should not be features, such as the sensitive attribute.
    """
    import pandas as pd

    first = pd.get_dummies(tables[0].drop(columns=list(drop)), dtype=float)
    second = pd.get_dummies(tables[1].drop(columns=list(drop)), dtype=float).reindex(
        columns=first.columns, fill_value=0.0
    )
    middle, width = first.mean(), first.std(ddof=0)
    width[width == 0] = 1.0
    groups = sorted(set(members[0]))
    unknown = sorted(set(members[1]) - set(groups))
    if unknown:
        raise ValueError(
            f"Every held-out group should be in the training data. Found {', '.join(map(repr, unknown))} only held out."
        )
    parts = []
    for frame, y, group in zip((first, second), labels, members, strict=True):
        x = ((frame - middle) / width).to_numpy(dtype=np.float32)
        parts.append(GroupedData(x, np.array(y), list(group), groups=groups))
    return parts[0], parts[1]


def split_table(table: Any, members: Sequence[Any], held_out: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the rows for training and held-out: the share `held_out` of every group goes to the second."""
    everyone = GroupedData(np.arange(len(table), dtype=np.float64)[:, None], np.zeros(len(table)), list(members))
    first, second = everyone.split(held_out, seed)
    return first.x[:, 0].astype(np.int64), second.x[:, 0].astype(np.int64)
