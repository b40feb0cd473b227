"""compas: people scored by COMPAS, and whether they were arrested again within two years (ProPublica, 2016)."""

from __future__ import annotations

import io
from typing import Any

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.features import grouped_tables, split_table
from tiltmeter.data.public.presence import contents, folder_of, wrong
from tiltmeter.question import Question

FILE = "compas-scores-two-years.csv"
FEATURES = ("age", "sex", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "c_charge_degree")
NEEDED = (*FEATURES, "race", "days_b_screening_arrest", "is_recid", "score_text", "two_year_recid")

#: A prediction that somebody will be arrested again is used against them.
QUESTION = Question("flagged", "reoffended", "burden")


def compas(
    races: tuple[str, ...] = ("African-American", "Caucasian"),
    *,
    sensitive_features: bool = False,
    held_out: float = 0.4,
    seed: int = 0,
) -> tuple[GroupedData, GroupedData]:
    """People to train on and held-out people, in groups by race; the label is 1 for an arrest within two years.

    >>> try:
    ...     compas(races=())
    ... except ValueError as error:
    ...     print(error)
    `races` should name at least one. Found none.

    Only rows of the usual filter are used (see `compas_table`). Features are age, sex, prior counts and the degree of
    the charge, but never the COMPAS score itself; race only with `sensitive_features`. These are real people: an arrest
    is not a crime, and a gap found here says nothing about any person.

    Args:
        races: Races that are groups; people of other races are left out.
        sensitive_features: Whether the columns of the groups are also features of the points.
        held_out: Share of the points that is held out.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if not races:
        raise ValueError("`races` should name at least one. Found none.")
    table = compas_table()
    for race in races:
        if race not in set(table["race"]):
            raise KeyError(f"`races`: no {race!r}. There are: {', '.join(sorted(set(table['race'])))}.")
    table = table[table["race"].isin(list(races))].reset_index(drop=True)
    parts = [table.iloc[places] for places in split_table(table, table["race"].tolist(), held_out, seed)]
    columns = [*FEATURES, *(["race"] if sensitive_features else [])]
    y = [part["two_year_recid"].to_numpy() for part in parts]
    members = [part["race"].tolist() for part in parts]
    train, away = grouped_tables([part[columns] for part in parts], y, members)
    return train.with_question(QUESTION), away.with_question(QUESTION)


def compas_table(filtered: bool = True) -> Any:
    """The people as a DataFrame; with `filtered`, only the rows that ProPublica used.

    The filter removes rows whose charge is more than 30 days from the screening, rows with unknown recidivism or score,
    and ordinary traffic offences: 6,172 of 7,214 remain.
    """
    import pandas as pd

    table = pd.read_csv(io.BytesIO(contents("compas", FILE)))
    missing = [name for name in NEEDED if name not in table.columns]
    if missing:
        raise wrong(
            "compas",
            folder_of("compas") / FILE,
            f"the columns {', '.join(NEEDED)}",
            f"none called {', '.join(missing)}",
        )
    if not filtered:
        return table
    known = (
        (table["is_recid"] != -1)
        & (table["c_charge_degree"] != "O")
        & table["score_text"].isin(["Low", "Medium", "High"])
    )
    return table[known & table["days_b_screening_arrest"].between(-30, 30)].reset_index(drop=True)


def whole() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return (compas_table(filtered=False),)
