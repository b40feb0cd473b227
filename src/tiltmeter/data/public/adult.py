"""adult: incomes in the US census of 1994 (Kohavi, 1996)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from tiltmeter.data.from_frame import TableReading
from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.features import grouped_tables
from tiltmeter.data.public.presence import contents

COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship"),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
)
#: Never features: the sampling weight of the census, the second coding of education, and the label.
LEFT_OUT = ("fnlwgt", "education", "income")


def adult(group: str | Sequence[str] = "sex", *, sensitive_features: bool = True) -> tuple[GroupedData, GroupedData]:
    """32,561 people to train on and 16,281 held-out people; the label is 1 for an income above 50,000 dollars.

    >>> try:
    ...     adult("height")
    ... except KeyError as error:
    ...     print(error.args[0])
    `group` should be 'sex', 'race' or both. Found 'height'.

    `group` is "sex" (Female, Male), "race", or both for intersections. An unknown value ("?") is treated as a separate
    value. Without `sensitive_features` the columns of `group` are not used as features; they can still be predicted
    from the others, for example sex from `relationship`.

    Args:
        group: "sex" (Female, Male), "race", or both in a list for intersections.
        sensitive_features: Whether the columns of the groups are also features of the points.
    """
    names = [group] if isinstance(group, str) else list(group)
    for name in names:
        if name not in ("sex", "race"):
            raise KeyError(f"`group` should be 'sex', 'race' or both. Found {name!r}.")
    tables = (adult_table("train"), adult_table("test"))
    drop = [*LEFT_OUT, *(() if sensitive_features else names)]
    y = [(table["income"] == ">50K").astype(int).to_numpy() for table in tables]
    members = [_members(table, names) for table in tables]
    first, second = grouped_tables(tables, y, members, drop)
    columns = {"label": "income", "labels": ("<=50K", ">50K"), "positive": ">50K", "group": tuple(names)}
    return tuple(part.with_reading(TableReading(len(part), **columns)) for part in (first, second))  # type: ignore[return-value, arg-type]


def adult_table(part: str = "train") -> Any:
    """The people of one part as a DataFrame, with the columns of the publishers' description."""
    import pandas as pd

    file = {"train": "adult.data", "test": "adult.test"}[part]
    table = pd.read_csv(
        io.BytesIO(contents("adult", file)), names=list(COLUMNS), skipinitialspace=True, comment="|", header=None
    )
    table["income"] = table["income"].str.rstrip(".")
    return table


def _members(table: Any, names: Sequence[str]) -> list[Any]:
    columns = [table[name].tolist() for name in names]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def whole() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return adult_table("train"), adult_table("test")
