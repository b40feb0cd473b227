"""Model card: a run as a section of Markdown, to paste into the card of a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tiltmeter.plot.series import band
from tiltmeter.plot.theme import group_name
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.report.page import Table
from tiltmeter.visible_text import visible

#: The title of the section, by which an older one is found.
HEADING = "## Bias during training"
#: Curves of the card, where they exist.
SHOWN = ("loss", "error", "squared_error", "positive_rate", "tpr", "fpr", "calibration_gap")


def model_card(trajectory: Trajectory, sentences: Sequence[str]) -> str:
    """Sentences, then the last value of every group with two standard errors."""
    names = [name for name in SHOWN if name in trajectory and "group" in trajectory[name].dims]
    lines = [HEADING, "", *[f"- {plain(sentence)}" for sentence in sentences], ""]
    if names:
        groups = trajectory[names[0]].coords["group"].values.tolist()
        rows = [[group_name(group), *(_value(trajectory, name, i) for name in names)] for i, group in enumerate(groups)]
        lines += [*markdown(Table(["group", *names], rows)), "", "Values at the last look, ± two standard errors."]
    return "\n".join([*lines, f"Measured with tiltmeter {trajectory.origin.version}."])


def markdown(table: Table) -> list[str]:
    """A table in Markdown, its cells as plain text."""
    rows = [[plain(cell) for cell in row] for row in [table.header, *table.rows]]
    return [f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]]]


def plain(text: str) -> str:
    r"""Text that Markdown and HTML show as it is: no element, link, emphasis, code or end of a cell.

    >>> print(plain("<b>[x](y) | a_b"))
    &lt;b&gt;\[x\](y) \| a\_b
    """
    one_line = " ".join(visible(text).split("\n")).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!$])", r"\\\1", one_line)


def _value(trajectory: Trajectory, name: str, group: int) -> str:
    middle, margin = band(trajectory, name)
    value = float(middle.isel(time=-1, group=group))
    if not np.isfinite(value):
        return "no data"
    error = np.nan if margin is None else float(margin.isel(time=-1, group=group))
    return f"{value:.4f} ± {error:.4f}" if np.isfinite(error) else f"{value:.4f}"
