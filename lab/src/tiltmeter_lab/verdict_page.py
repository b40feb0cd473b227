"""verdict_page: the page of the documentation with all verdicts, of which each run replaces its own sections."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.outcome import Outcome
from tiltmeter_lab.verdicts import (
    HEADER,
    OVERVIEW,
    counted_in_words,
    drawn_specs,
    heading,
    made,
    overview_row,
    row,
    small_png,
)

TITLE = "# What was published, and what was found"
INTRODUCTION = (
    "Written by `tiltmeter reproduce --markdown`, never by hand; each experiment says when it was run. A verdict says "
    "whether a number met a rule in these runs; see [experiments](experiments.md) for how to run them and what the "
    "words mean."
)
#: What a verdict begins with, and what it says when it is close.
VERDICTS, CLOSE = ("holds", "does not hold", "not run"), "within two standard errors of the threshold"


@dataclass(frozen=True)
class VerdictSection:
    """One experiment at one scale: its heading, its row in the overview, and its lines."""

    heading: str
    overview: str
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.heading.partition(" (")[0]

    @property
    def order(self) -> tuple[int, bool, str]:
        """The place on the page: that of the catalogue, the quick scale first."""
        known = list(EXPERIMENTS)
        place = known.index(self.name) if self.name in known else len(known)
        return place, self.heading != self.name, self.heading

    @property
    def verdicts(self) -> list[str]:
        """The last cells of its claims; an experiment that was not run has one."""
        begin = _line(HEADER)
        if begin not in self.lines:
            return ["not run"]
        found = []
        for line in self.lines[self.lines.index(begin) + 2 :]:
            if not line.startswith("| "):
                break
            found.append(re.split(r"(?<!\\)\|", line)[-2].strip())
        return found


def write_markdown(outcomes: Sequence[Outcome], path: str | os.PathLike[str]) -> Path:
    """Write these outcomes into the page; sections of others that are there stay, if the catalogue has them.

    Pictures go to `_static/verdicts` next to it, each below 60 kB; those that no section shows are removed.
    """
    page = Path(path)
    static = page.parent / "_static" / "verdicts"
    static.mkdir(parents=True, exist_ok=True)
    kept = read_sections(page.read_text(encoding="utf-8")) if page.exists() else []
    found = {one.heading: one for one in kept if one.name in EXPERIMENTS}
    found |= {heading(one): _section(one, static) for one in outcomes}
    sections = sorted(found.values(), key=lambda one: one.order)
    lines = [TITLE, "", INTRODUCTION, "", _in_short(sections), ""]
    lines += [_line(OVERVIEW), "|---" * len(OVERVIEW) + "|", *(one.overview for one in sections)]
    for one in sections:
        lines += ["", f"## {one.heading}", "", *one.lines]
    text = "\n".join(lines) + "\n"
    page.write_text(text, encoding="utf-8")
    for picture in static.glob("*.png"):
        if f"(_static/verdicts/{picture.name})" not in text:
            picture.unlink()
    return page


def read_sections(text: str) -> list[VerdictSection]:
    """The sections of a page that `write_markdown` wrote.

    >>> read_sections(f"{TITLE}\\n\\n| [a](#a) | quick |\\n\\n## a\\n\\nWords.\\n")
    [VerdictSection(heading='a', overview='| [a](#a) | quick |', lines=('Words.',))]
    """
    head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    rows = {match[1]: match[0] for match in re.finditer(r"^\| \[[^]]*\]\(#([^)]*)\) \|.*$", head, re.MULTILINE)}
    found = []
    for part in parts:
        name, _, body = part.partition("\n")
        if _anchor(name) in rows:
            found.append(VerdictSection(name, rows[_anchor(name)], tuple(body.strip().split("\n"))))
    return found


def _section(one: Outcome, static: Path) -> VerdictSection:
    lines = [f"{one.title}. {one.paper}".rstrip(". ") + ".", ""]
    if one.state == "run":
        lines += [*_table(HEADER, [row(claim) for claim in one.claims]), ""]
    lines.append(made(one))
    for title, header, rows in one.tables:
        lines += ["", f"{title}:", "", *_table(header, rows)]
    for number, (title, spec) in enumerate(drawn_specs(one), start=1):
        variant = "" if one.variant == "quick" else f"-{one.variant}"
        file = static / f"{one.name}{variant}-{number}.png"
        file.write_bytes(small_png(spec))
        lines += ["", f"![{_plain(title)}](_static/verdicts/{file.name})"]
    cells = (f"[{one.name}](#{_anchor(heading(one))})", *overview_row(one)[1:])
    return VerdictSection(heading(one), _line(cells), tuple(lines))


def _in_short(sections: Sequence[VerdictSection]) -> str:
    """How many claims hold on the whole page."""
    said = [verdict for one in sections for verdict in one.verdicts]
    words = [next((word for word in VERDICTS if verdict.startswith(word)), "") for verdict in said]
    return counted_in_words(len(sections), words, sum(CLOSE in verdict for verdict in said))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of Markdown."""
    return [_line(header), "|---" * len(header) + "|", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _anchor(text: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", text).replace(" ", "-")


def _plain(title: str) -> str:
    return re.sub(r"[\[\]\n|]", " ", title)
