"""Page: headings, sentences, tables and charts as one HTML file that opens offline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from tiltmeter.plot.offline_page import page_html
from tiltmeter.record.directory.atomic_files import write_atomically
from tiltmeter.report.html import escape

__all__ = ["Section", "Table", "write_page"]


#: Charts scroll on a narrow page; on a dark one their lightness is turned round and raised, and their hues stay.
_CHARTS = """
.chart.vega-embed { display:block; overflow-x:auto; margin:1rem 0 }
.chart svg { width:auto; max-width:100%; min-width:34rem }
@media screen and (prefers-color-scheme:dark) { .chart svg { filter:invert(.94) hue-rotate(180deg) brightness(1.35) } }
"""


def house_style() -> str:
    """The style sheet of every page: light and dark, wide and narrow, screen and paper."""
    return files("tiltmeter.report").joinpath("style.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Table:
    """Rows of text under a header.

    >>> Table(("group", "error"), [("a", "0.1")]).to_html()
    '<table><thead><tr><th>group</th><th>error</th></tr></thead><tbody><tr><td>a</td><td>0.1</td></tr></tbody></table>'

    Args:
        header: Titles of the columns.
        rows: Cells of every row.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_html(self) -> str:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class Section:
    """One heading with its sentences, tables, charts and blocks of plain text, in that order.

    >>> from tempfile import TemporaryDirectory
    >>> section = Section("By group", ["Group a is better off."], [Table(("group", "error"), [("a", "0.1")])])
    >>> with TemporaryDirectory() as folder:
    ...     "<h2>By group</h2>" in write_page(f"{folder}/page.html", "Errors", [section]).read_text(encoding="utf-8")
    True

    Args:
        heading: Title of the section.
        text: Paragraphs.
        tables: Tables below them.
        charts: Pictures below the tables.
        code: Blocks of plain text at the end.
    """

    heading: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Any] = ()
    code: Sequence[str] = ()


def page_place(path: str | os.PathLike[str]) -> Path:
    """The file to write a page to, checked before the work."""
    place = Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"The folder {place.parent} does not exist: create it first.")
    if place.suffix.lower() not in (".html", ".htm"):  # also lest a table of the user's is overwritten by mistake
        raise ValueError(f"The name of a page should end in .html. Found {str(place)!r}.")
    if place.is_dir():
        raise IsADirectoryError(f"A page should be written to a file. Found a folder at {place}.")
    return place


def write_page(path: str | Path, title: str, sections: Iterable[Section], footer: str = "") -> Path:
    """Write the page; the drawing library is embedded once, so nothing is fetched from anywhere.

    >>> table = Table(("group", "error"), [("a", "0.1"), ("b", "0.2")])
    >>> write_page("page.html", "Errors", [Section("By group", ["Group a is better off."], [table])]).name
    'page.html'

    Args:
        path: HTML file to write.
        title: Title of the page.
        sections: What is on it, in order.
        footer: Small text at its end.
    """
    path = page_place(path)
    specs: list[dict[str, Any]] = []
    body: list[str] = []
    for section in sections:
        body.append(f"<h2>{escape(section.heading)}</h2>")
        body += [f"<p>{escape(text)}</p>" for text in section.text]
        body += [f"<div class='scroll'>{table.to_html()}</div>" for table in section.tables]
        for chart in section.charts:
            body.append(f'<div class="chart" id="chart{len(specs)}"></div>')
            specs.append(chart.to_dict())
        body += [f"<pre>{escape(block)}</pre>" for block in section.code]
    whole = f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + f"\n<footer>{escape(footer)}</footer>"
    write_atomically(path, page_html(title, house_style() + _CHARTS, whole, specs).encode())
    return path
