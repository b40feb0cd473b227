"""A run as one plain table, in which every label is a number or text."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path

import pandas as pd

from tiltmeter.record import Trajectory


def plain_label(label: Hashable) -> Hashable:
    """A label that any program understands; the parts of an intersection of attributes (a tuple) are joined.

    >>> plain_label(("woman", "old")), plain_label(3)
    ('woman & old', 3)
    """
    return " & ".join(map(str, label)) if isinstance(label, tuple) else label


def plain_table(run: Trajectory) -> pd.DataFrame:
    """Long format: one row per value; if a curve does not have a dimension, that column is empty in its rows.

    If the labels of one dimension have different types, they are converted to text.
    """
    if not isinstance(run, Trajectory):
        raise TypeError(f"`run` should be a Trajectory, for example from `load`. Found {type(run).__name__}.")
    table = run.to_dataframe()
    for name in table.columns:
        if table[name].dtype == object:
            labels = table[name].map(plain_label, na_action="ignore")
            kinds = {type(label) for label in labels.dropna()}
            table[name] = labels if len(kinds) < 2 else labels.map(str, na_action="ignore")
    return table


def target(path: str | os.PathLike[str], suffix: str) -> Path:
    """The file to write, after checking its name and its directory."""
    place = Path(path)
    if place.suffix.lower() != suffix:
        raise ValueError(f"`path` should end in {suffix}. Found {place.name!r}.")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"`path` should lie in an existing directory. Found none at {place.parent}.")
    return place
