"""Page: headings, sentences, tables and charts as one HTML file that opens offline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .3rem .8rem; border-bottom: 1px solid #ddd; }
th { text-align: left; } td { font-variant-numeric: tabular-nums; }
.chart, .wide { overflow-x: auto; margin: 1rem 0; } .chart svg { max-width: 100%; min-width: 34rem; height: auto; }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
td { overflow-wrap: break-word; max-width: 36rem; }
@media (max-width: 40rem) { body { margin: .5rem auto; } th, td { padding: .25rem .4rem; font-size: .85rem; } }
 footer { color: #666; font-size: .85rem; margin-top: 3rem; }
"""


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_html(self) -> str:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class Section:
    """One heading with its sentences, tables, charts and blocks of plain text, in that order."""

    heading: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Any] = ()
    code: Sequence[str] = ()


def write_page(path: str | Path, title: str, sections: Iterable[Section], footer: str = "") -> Path:
    """Write the page; the drawing library is embedded once, so nothing is fetched from anywhere."""
    import vl_convert

    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it first.")
    specs: list[dict[str, Any]] = []
    body: list[str] = []
    for section in sections:
        body.append(f"<h2>{escape(section.heading)}</h2>")
        body += [f"<p>{escape(text)}</p>" for text in section.text]
        body += [f"<div class='wide'>{table.to_html()}</div>" for table in section.tables]
        for chart in section.charts:
            body.append(f'<div class="chart" id="chart{len(specs)}"></div>')
            specs.append(chart.to_dict())
        body += [f"<pre>{escape(block)}</pre>" for block in section.code]
    # "</" inside a script element would end it early.
    data = json.dumps(specs, allow_nan=False).replace("</", "<\\/")
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;") if specs else ""
    bundle = bundle.replace("</script", "<\\/script")
    draw = (
        f"const charts = {data};\n"
        "charts.forEach((spec, i) => vegaEmbed('#chart' + i, spec, {actions: false, renderer: 'svg'}));"
    )
    path.write_text(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>\n"
        + "\n".join(body)
        + f"\n<footer>{escape(footer)}</footer>\n<script>{bundle}</script>\n<script>{draw}</script></body></html>\n",
        encoding="utf-8",
    )
    return path
