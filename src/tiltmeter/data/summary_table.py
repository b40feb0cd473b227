"""Summary table: grouped data as a short table, in text and in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tiltmeter.shown_text import group_name, percent

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData

#: Largest number of label columns; with more labels it is a regression, or too much to read.
SHOWN = 10


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


def text(data: GroupedData) -> str:
    header, table = rows(data)
    lines = [_first_line(data)]
    widths = [max(len(row[i]) for row in [header, *table]) for i in range(len(header))]
    for row in [header, *table]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(cells))
    return "\n".join(lines)


def html(data: GroupedData) -> str:
    header, table = rows(data)

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = line(header, "th") + "".join(line(row, "td") for row in table)
    return f"<div><p>{escape(_first_line(data)[1:-1])}</p><table>{body}</table></div>"


def _first_line(data: GroupedData) -> str:
    shape = " x ".join(", ".join(n) if isinstance(n, dict) else str(n) for n in data.x.shape[1:]) or "1"
    return f"<GroupedData {len(data):,} points of {shape}, {len(data.groups)} groups, imbalance {data.imbalance:.3g}>"
