"""overview: all measures in one table, from their own descriptions (`python -m tiltmeter.measures.overview docs`)."""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from tiltmeter.measures.catalogue import MEASURES, find
from tiltmeter.measures.measure import example_of, snapshot_of
from tiltmeter.modules.untouched import untouched

#: The table is between these lines of `measures.md`.
START, END = "<!-- table -->", "<!-- end of table -->"


@dataclass(frozen=True)
class Row:
    """One measure; `passes` is the cost of one observation on its own example."""

    name: str
    title: str
    takes: str
    passes: float
    exact: str
    absent: str

    @property
    def cost(self) -> str:
        return f"{self.passes:.3g}"


def rows() -> list[Row]:
    """One row for every measure of the catalogue, in the order of the catalogue.

    >>> [row.cost for row in rows() if row.name == "gradient-pull"]
    ['6']
    """
    found = []
    for name in MEASURES:
        kind = find(name)
        measure, model, data = example_of(kind)
        with warnings.catch_warnings(), untouched(model):
            warnings.simplefilter("ignore")
            passes = float(measure.passes(snapshot_of(model, data)))
        found.append(Row(name, kind.title, kind.takes, passes, kind.exact, kind.absent))
    return found


def markdown(docs: Path) -> str:
    """The table for the docs; each measure links to the page `measure-*.md` that contains its name or class."""
    pages = {page.name: page.read_text(encoding="utf-8") for page in sorted(docs.glob("measure-*.md"))}
    lines = [
        "| measure | what is measured | what it takes | passes | where exact | when absent |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows():
        named = re.compile(rf"[`\"]{row.name}[`\"]|\b{find(row.name).__name__}\b")
        page = next((page for page, text in pages.items() if named.search(text)), None)
        name = f"`{row.name}`" if page is None else f"[`{row.name}`]({page})"
        cells = (name, row.title, row.takes, row.cost, row.exact, row.absent)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def main(docs: Path) -> None:
    """Write the table into `measures.md`."""
    page = docs / "measures.md"
    head, rest = page.read_text(encoding="utf-8").split(START)
    page.write_text(f"{head}{START}\n\n{markdown(docs)}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
