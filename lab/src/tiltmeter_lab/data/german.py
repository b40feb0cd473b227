"""german: good and bad credit risks of a German bank (Hofmann, 1994)."""

from __future__ import annotations

import io
from typing import Any, Literal

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.features import grouped_tables, split_table
from tiltmeter.data.public.presence import contents, folder_of, wrong

COLUMNS = (
    *("checking", "duration", "history", "purpose", "amount", "savings", "employment", "rate", "personal_status"),
    *("debtors", "residence", "property", "age", "installments", "housing", "credits", "job", "dependants"),
    *("telephone", "foreign", "risk"),
)
#: Codes of `personal_status` that the publishers describe as female; it combines sex and marital status.
FEMALE = ("A92", "A95")
#: "Young" in the literature on this data set: up to 25 years.
YOUNG = 25


def german(
    group: Literal["sex", "age"] = "sex", *, sensitive_features: bool = False, held_out: float = 0.3, seed: int = 0
) -> tuple[GroupedData, GroupedData]:
    """People to train on and held-out people; the label is 1 for a good risk. Groups: female and male, or young and
    old.

    >>> try:
    ...     german("height")
    ... except KeyError as error:
    ...     print(error.args[0])
    `group` should be 'sex' or 'age'. Found 'height'.

    Only 310 women and 190 people up to 25 are among the thousand, so standard errors are large. Later work questions
    the coding of sex in this file. Without `sensitive_features` the column that determines the group is not used as a
    feature.

    Args:
        group: "sex", or "age" for young (up to 25) and old.
        sensitive_features: Whether the columns of the groups are also features of the points.
        held_out: Share of the points that is held out.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if group not in ("sex", "age"):
        raise KeyError(f"`group` should be 'sex' or 'age'. Found {group!r}.")
    table = german_table()
    women, young = table["personal_status"].isin(FEMALE), table["age"] <= YOUNG
    members = np.where(women, "female", "male") if group == "sex" else np.where(young, "young", "old")
    places = split_table(table, members.tolist(), held_out, seed)
    column = "personal_status" if group == "sex" else "age"
    drop = ["risk", *([] if sensitive_features else [column])]
    parts = [table.iloc[chosen] for chosen in places]
    y = [(part["risk"] == 1).astype(int).to_numpy() for part in parts]
    return grouped_tables(parts, y, [members[chosen].tolist() for chosen in places], drop)


def german_table() -> Any:
    """The thousand people as a DataFrame, with the codes of the publishers' description."""
    import pandas as pd

    data = contents("german", "german.data")
    table = pd.read_csv(io.BytesIO(data), sep=r"\s+", header=None)
    if table.shape[1] != len(COLUMNS):
        place = folder_of("german") / "german.data"
        raise wrong("german", place, f"{len(COLUMNS)} columns", f"{table.shape[1]}")
    table.columns = pd.Index(COLUMNS)
    return table


def whole() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return (german_table(),)
