"""html: the parts of a page as text, every word of a user escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as escape_html

from tiltmeter.shown_text import visible


def escape(text: object) -> str:
    """Text for a page: no markup, no control characters, no halves of characters."""
    shown = str(text).replace(" %", "\N{NARROW NO-BREAK SPACE}%")
    return escape_html(shown if shown.replace("\N{NARROW NO-BREAK SPACE}", "").isprintable() else visible(shown))


@dataclass(frozen=True)
class Cell:
    """A cell: text, smaller lines below it, or parts that are HTML already; `head` for the first of a row."""

    text: str
    below: tuple[str, ...] = ()
    head: bool = False
    html: str = ""


def paragraph(text: str, kind: str = "") -> str:
    shape = f' class="{kind}"' if kind else ""
    return f"<p{shape}>{escape(text)}</p>" if text else ""


def section(name: str, heading: str, *parts: str) -> str:
    """A part of the page with its anchor."""
    return f'<section id="{name}"><h2>{escape(heading)}</h2>{"".join(parts)}</section>'


def fold(summary: str, *parts: str) -> str:
    """What is shown when asked for, and in print."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(parts)}</details>"


def block(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def figure(caption: str, *pictures: str, strong: str = "", middle: bool = False) -> str:
    """A picture below its caption; `middle` keeps it from filling a wide page."""
    bold = f"<b>{escape(strong)}</b> " if strong else ""
    shape = ' class="mid"' if middle else ""
    return f"<figure{shape}><figcaption>{bold}{escape(caption)}</figcaption>{''.join(pictures)}</figure>"


def bullets(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def card_table(head: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str, stack: bool = True) -> str:
    """A table that becomes one card for each row on a narrow page."""
    top = "".join(f'<th scope="col">{escape(words)}</th>' for words in head)
    body = "".join(
        f"<tr>{''.join(_cell(cell, name) for cell, name in zip(row, head, strict=True))}</tr>" for row in rows
    )
    told = f"<caption>{escape(caption)}</caption>" if caption else ""
    shape = ' class="stack"' if stack else ""
    table = f"<table{shape}>{told}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _cell(cell: Cell, name: str) -> str:
    below = "".join(f"<span>{escape(line)}</span>" for line in cell.below)
    inside = f"{escape(cell.text)}{cell.html}{below}"
    if cell.head:
        return f'<th scope="row">{inside}</th>'
    return f'<td data-l="{escape(name)}">{inside}</td>'
