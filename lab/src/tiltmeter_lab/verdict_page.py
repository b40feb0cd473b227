"""verdict_page: the page of the documentation with all verdicts, drawn from the numbers that are kept beside it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.claim import VERDICTS
from tiltmeter_lab.outcome import Outcome
from tiltmeter_lab.verdicts import (
    HEADER,
    OVERVIEW,
    by_sentence,
    counted_by_origin,
    drawn_specs,
    heading,
    in_short,
    made,
    overview_row,
    rank,
    row,
    small_png,
    spoken,
)

TITLE = "# What was published, and what was found"
INTRODUCTION = (
    "Written by `tiltmeter reproduce --markdown`, never by hand; each experiment says when it was run. A claim is "
    "*clear*, *contradicted* or *undecided* by the 95 % interval of its number; a number without an error is only "
    "*measured*. *Published* means in a setting close to the paper's. See [experiments](experiments.md) for how to run "
    "them and what the words mean."
)
CONTRADICTED = VERDICTS[1]


def write_markdown(outcomes: Sequence[Outcome], path: str | os.PathLike[str]) -> Path:
    """Write these outcomes into the page; others that are there stay, if the catalogue has them.

    The numbers are kept in a JSON file of the same name. Pictures go to `_static/verdicts` next to it, each below 60
    kB; those that no section shows are removed.
    """
    page = Path(path)
    static = page.parent / "_static" / "verdicts"
    static.mkdir(parents=True, exist_ok=True)
    found = {heading(one): one for one in read_outcomes(page) if one.name in EXPERIMENTS}
    found |= {heading(one): _drawn(one, static) for one in outcomes}
    order = list(EXPERIMENTS)
    kept = sorted(found.values(), key=lambda one: (order.index(one.name), one.variant != "quick", one.variant))
    claims = spoken(kept)
    lines = [TITLE, "", INTRODUCTION, "", in_short(kept), ""]
    lines += _table(("from", "claims", *VERDICTS), counted_by_origin(claims))
    against = [(f"[{name}](#{name})", *row(name, claim)[:4]) for name, claim in claims if claim.verdict == CONTRADICTED]
    if against:
        lines += ["", "What is contradicted:", "", *_table(("experiment", *HEADER[:4]), against)]
    cells = [overview_row(one) for one in kept]
    lines += ["", *_table(OVERVIEW, [(f"[{one[0]}](#{one[0]})", *one[1:]) for one in cells])]
    for name in dict.fromkeys(one.name for one in kept):
        lines += ["", f"## {name}", "", *_section([one for one in kept if one.name == name])]
    text = "\n".join(lines) + "\n"
    page.write_text(text, encoding="utf-8")
    plain = ",\n".join(json.dumps(one.to_json() | {"folder": one.variant}, ensure_ascii=False) for one in kept)
    page.with_suffix(".json").write_text(f"[\n{plain}\n]\n", encoding="utf-8")
    for picture in static.glob("*.png"):
        if f"(_static/verdicts/{picture.name})" not in text:
            picture.unlink()
    return page


def read_outcomes(page: Path) -> list[Outcome]:
    """The outcomes that a page shows, from the file beside it; none if there is no such file."""
    file = page.with_suffix(".json")
    return [Outcome.from_json(one) for one in json.loads(file.read_text(encoding="utf-8"))] if file.exists() else []


def _drawn(one: Outcome, static: Path) -> Outcome:
    """The outcome with its pictures written as PNG, and their names instead of those of the specifications."""
    pictures = []
    for number, (title, spec) in enumerate(drawn_specs(one), start=1):
        variant = "" if one.variant == "quick" else f"-{one.variant}"
        name = f"{one.name}{variant}-{number}.png"
        (static / name).write_bytes(small_png(spec))
        pictures.append((title, name))
    return replace(one, pictures=tuple(pictures), folder=one.variant)


def _section(outcomes: Sequence[Outcome]) -> list[str]:
    """One experiment: a row for each claim, what other scales found folded below, and how it was obtained."""
    best = max(outcomes, key=rank)
    lines = [f"{best.title}. {best.paper}".rstrip(". ") + ".", ""]
    said = spoken(outcomes)
    if any(one.state == "run" for one in outcomes):
        lines += [*_table(HEADER, [row(name, claim) for name, claim in said]), ""]
    speaking = {id(claim) for _, claim in said}
    folded = [
        (one.variant, *row(one.name, claim))
        for one in outcomes
        for claim in by_sentence(one).values()
        if id(claim) not in speaking and one.state == "run"
    ]
    if folded:
        table = _table(("scale", *HEADER), folded)
        lines += ["<details><summary>The same claims at other scales</summary>", "", *table, "", "</details>", ""]
    for one in sorted(outcomes, key=rank, reverse=True):
        lines += [made(one), ""]
        for title, header, rows in one.tables:
            lines += [f"{title}:", "", *_table(header, rows), ""]
        for title, file in one.pictures:
            lines += [f"![{_plain(title)}](_static/verdicts/{file})", ""]
    return lines[:-1]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of Markdown."""
    return [_line(header), "|---" * len(header) + "|", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _plain(title: str) -> str:
    return re.sub(r"[\[\]\n|]", " ", title)
