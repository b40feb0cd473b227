"""verdict_page: the evidence in the documentation, of the stored outcomes: an index, and a page per experiment."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.claim import VERDICTS, Claim
from tiltmeter_lab.contradicted import SECOND, checked_again
from tiltmeter_lab.origins import ORIGINS, origin_of
from tiltmeter_lab.outcome import Outcome
from tiltmeter_lab.verdicts import (
    by_sentence,
    counted_by_origin,
    drawn_specs,
    heading,
    in_short,
    made,
    rank,
    row,
    small_png,
    spoken,
)

#: The stored outcomes: of them the documentation makes its pages, and the explorer shows them in folders without runs.
STORE = Path(__file__).with_name("verdicts.json")
#: The first experiment of each topic in the catalogue -> the topic.
TOPIC_STARTS = {
    "order-parameters": "dynamics of bias",
    "memorisation": "open questions",
    "forecast-accuracy": "forecasts",
    "group-dro-rings": "interventions",
    "spectral-1d": "simplicity biases",
    "early-alignment": "two-layer networks and shortcuts",
    "minority-drop": "classes, curvature, measures",
}
NOT_HELD = "what-did-not-hold"
CLEAR, CONTRADICTED, UNDECIDED = VERDICTS[:3]
HEADER = ("verdict", "claim", "number")
#: The first author of a work and, at the end of the part, its year: "Jain, Nobahari ... (2024)".
WORK = re.compile(r"(?<![\w-])(?!Theory)([A-Z][\w-]+(?: [A-Z]\w+)?)(?=,| and | et al| \(| \d)[^;]*?\b((?:19|20)\d\d)\b")
#: Width and height of the line that shows a number, and the part of it on which values lie.
WIDTH, HEIGHT, FROM, TO = 220, 46, 12, 208


def write_outcomes(outcomes: Sequence[Outcome], path: str | os.PathLike[str]) -> Path:
    """Store these outcomes in a JSON file; others that are there stay, if the catalogue has them.

    Pictures go to `_static/verdicts` next to it, each below 60 kB; those that no outcome has are removed.
    """
    file = Path(path)
    static = file.parent / "_static" / "verdicts"
    static.mkdir(parents=True, exist_ok=True)
    stored = {heading(one): one for one in read_outcomes(file) if one.name in EXPERIMENTS}
    stored |= {heading(one): _drawn(one, static) for one in outcomes}
    order = list(EXPERIMENTS)
    kept = sorted(stored.values(), key=lambda one: (order.index(one.name), one.variant != "quick", one.variant))
    plain = ",\n".join(json.dumps(one.to_json() | {"folder": one.variant}, ensure_ascii=False) for one in kept)
    file.write_text(f"[\n{plain}\n]\n", encoding="utf-8")
    used = {picture for one in kept for _, picture in one.pictures}
    for picture in static.glob("*.png"):
        if picture.name not in used:
            picture.unlink()
    return file


def read_outcomes(file: Path = STORE) -> list[Outcome]:
    """The stored outcomes; none if there is no such file."""
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


def pages(outcomes: Sequence[Outcome], pictures: str) -> dict[str, str]:
    """Name -> Markdown: a page for each experiment, with its pictures from this folder, and what did not hold."""
    texts = {name: experiment_page(several, pictures) for name, several in by_experiment(outcomes).items()}
    return texts | {NOT_HELD: not_held_page(outcomes)}


def by_experiment(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes of each experiment, in the order given."""
    names = dict.fromkeys(one.name for one in outcomes)
    return {name: [one for one in outcomes if one.name == name] for name in names}


def topic_of(name: str) -> str:
    """The part of the catalogue that holds an experiment."""
    topic = ""
    for other in EXPERIMENTS:
        topic = TOPIC_STARTS.get(other, topic)
        if other == name:
            break
    return topic


def works(paper: str) -> list[str]:
    """The works that a line about papers names: first author and year.

    >>> works("Le and Jegelka (2022), after Ji and Telgarsky (2019); theory of this package")
    ['Le 2022', 'Ji 2019']
    """
    return list(dict.fromkeys(f"{author} {year}" for author, year in WORK.findall(paper)))


def index_table(outcomes: Sequence[Outcome], folder: str) -> str:
    """The index as HTML: a table with a row per experiment; boxes and chips show where scripts run."""
    rows: list[str] = []
    named: set[str] = set()
    for name, several in by_experiment(outcomes).items():
        claims = spoken(several)
        counts = {verdict: sum(claim.verdict == verdict for _, claim in claims) for verdict in VERDICTS}
        origins = dict.fromkeys(origin_of(name, claim.sentence) for _, claim in claims)
        marks = [*(verdict for verdict, count in counts.items() if count), *origins, topic_of(name)]
        best = max(several, key=rank)
        papers = works(best.paper)
        named.update(papers)
        told = " ".join(f'<span class="verdict {_css(v)}">{n} {v}</span>' for v, n in counts.items() if n)
        cells = [f'<a href="{folder}/{name}.html">{escape(name)}</a>', escape(best.title), escape(best.paper), told]
        row_marks = escape("|".join([*marks, *papers]), quote=True)
        rows.append(f'<tr data-marks="{row_marks}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>')
    topics = list(dict.fromkeys(TOPIC_STARTS.values()))
    chips = "".join(
        f'<div class="chips" role="group" aria-label="{label}">'
        + "".join(f'<button type="button" aria-pressed="false">{escape(word)}</button>' for word in words)
        + "</div>"
        for label, words in (("Verdict", VERDICTS), ("Origin", ORIGINS), ("Topic", topics))
    )
    search = '<input type="search" placeholder="Name, title or paper" aria-label="Search the experiments">'
    options = "".join(f"<option>{escape(work)}</option>" for work in sorted(named))
    paper = f'<select aria-label="Paper"><option value="">all papers</option>{options}</select>'
    head = "".join(f"<th>{word}</th>" for word in ("experiment", "what it shows", "paper", "claims"))
    table = f'<table class="docutils"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<div class="evidence"><div class="filters" hidden>{search}{chips}{paper}<p></p></div>{table}</div>'


def index_page(outcomes: Sequence[Outcome], folder: str) -> str:
    """The lines of the index: numbers, the table, and the pages behind it."""
    counted = _table(("from", "claims", *VERDICTS), counted_by_origin(spoken(outcomes)))
    names = [f"{name} <{folder}/{name}>" for name in by_experiment(outcomes)]
    tree = ["```{toctree}", ":hidden:", "", f"{folder}/{NOT_HELD}", *names, "```"]
    held = f"[What did not hold]({folder}/{NOT_HELD}.md) lists every claim that is contradicted or undecided."
    lines = [in_short(outcomes), "", *counted, "", held, "", index_table(outcomes, folder), "", *tree, ""]
    return "\n".join(lines)


def not_held_page(outcomes: Sequence[Outcome]) -> str:
    """Every claim that is contradicted or undecided, with its number; of contradicted ones, what was checked again."""
    claims = spoken(outcomes)
    lines = ["# What did not hold", ""]
    meanings = {CONTRADICTED: "The whole interval lies on the wrong side.", UNDECIDED: "These runs cannot tell."}
    for verdict, meaning in meanings.items():
        chosen = [(name, claim) for name, claim in claims if claim.verdict == verdict]
        rows = [[f"[{name}]({name}.md)", _words(name, claim), line(claim)] for name, claim in chosen]
        header = ["experiment", "claim", "number"]
        if verdict == CONTRADICTED:
            header.append("checked again")
            for cells, (name, claim) in zip(rows, chosen, strict=True):
                cells.append(_again(name, claim, claims))
        lines += [f"## {verdict.capitalize()}", "", f"{len(chosen)} of {len(claims)} claims. {meaning}", ""]
        lines += [*_table(header, rows), ""]
    return "\n".join(lines)


def _again(experiment: str, claim: Claim, claims: Sequence[tuple[str, Claim]]) -> str:
    """What a second setting says of a contradicted claim, or why the claim is ours, as one cell."""
    if experiment == SECOND:
        return "This is the second setting."
    checked = checked_again(experiment, claim, claims)
    if isinstance(checked, str):
        return _plain(checked)
    rest = [(other, other.sentence.removeprefix(claim.sentence).strip(" ()")) for other in checked]
    return "; ".join(f"[{other.verdict}]({SECOND}.md): {_plain(f'{where}, {other.measured}')}" for other, where in rest)


def experiment_page(outcomes: Sequence[Outcome], pictures: str) -> str:
    """One experiment: its claims with their numbers, the pictures, the command, and other scales folded below."""
    best = max(outcomes, key=rank)
    lines = [f"# {_plain(best.title)}", "", f"{_plain(best.paper)}.", ""]
    shown = spoken(outcomes)
    if any(one.state == "run" for one in outcomes):
        lines += [*_table(HEADER, [_row(name, claim) for name, claim in shown]), ""]
    for title, file in best.pictures:
        lines += [f"![{_plain(title)}]({pictures}/{file})", ""]
    lines += [made(best), ""]
    for title, header, rows in best.tables:
        lines += [f"{_plain(title)}:", "", *_table(header, [[_plain(cell) for cell in each] for each in rows]), ""]
    speaking = {id(claim) for _, claim in shown}
    for one in sorted((one for one in outcomes if one is not best), key=rank, reverse=True):
        folded = [claim for claim in by_sentence(one).values() if id(claim) not in speaking and one.state == "run"]
        lines += [f"<details><summary>{escape(one.variant)}</summary>", "", made(one), ""]
        lines += _table(HEADER, [_row(one.name, claim) for claim in folded]) if folded else []
        lines += ["", *(f"![{_plain(title)}]({pictures}/{file})\n" for title, file in one.pictures), "</details>", ""]
    return "\n".join(lines)


def line(claim: Claim) -> str:
    """The number as a dot on a line, with its interval, the neutral value and the asked one; empty without a number.

    >>> "asked" in line(Claim("Groups differ", 0.2, "gap in error", 0.01, error=0.02, seeds=10, neutral=0.0))
    True
    >>> line(Claim("Losses cross", 1.0, "does the lead change", 1.0, rule="so"))
    ''
    """
    neutral = claim.threshold if claim.neutral is None else claim.neutral
    low, high = claim.interval or (claim.statistic, claim.statistic)
    values = (claim.statistic, claim.threshold, neutral, low, high)
    if claim.rule == "so" or not all(map(math.isfinite, values)):
        return ""
    least, most = min(values), max(values)

    def place(value: float) -> float:
        return (FROM + TO) / 2 if most == least else FROM + (TO - FROM) * (value - least) / (most - least)

    marks = {neutral: "neutral", claim.threshold: "asked"}  # one mark where both are the same
    parts = [f'<path class="axis" d="M0 16H{WIDTH}"/>']
    for value, word in marks.items():
        x = place(value)
        anchor = "start" if x < WIDTH / 3 else "end" if x > 2 * WIDTH / 3 else "middle"
        parts.append(f'<path class="{word}" d="M{x:.1f} 7V25"/>')
        parts.append(f'<text x="{x:.1f}" y="{44 if word == "neutral" else 35}" text-anchor="{anchor}">{word}</text>')
    parts.append(f'<path class="interval" d="M{place(low):.1f} 16H{place(high):.1f}"/>')
    parts.append(f'<circle cx="{place(claim.statistic):.1f}" cy="16" r="5"/>')
    told = escape(f"{claim.measured}; {claim.asked} asked; neutral is {neutral:.3g}", quote=True)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    shape = f'<svg class="number {_css(claim.verdict)}" role="img" aria-label="{told}" {size}>'
    return f"{shape}{''.join(parts)}</svg>"


def _row(experiment: str, claim: Claim) -> tuple[str, str, str]:
    badge = f'<span class="verdict {_css(claim.verdict)}">{claim.verdict}</span>'
    return badge, _words(experiment, claim), line(claim)


def _words(experiment: str, claim: Claim) -> str:
    """The claim, its number and its origin, as one cell."""
    sentence, origin, measured, asked, decision = row(experiment, claim)
    parts = [f"{measured}; {asked} asked" if measured else "", origin]
    notes = decision.removeprefix(claim.verdict).lstrip(",:. ")
    told = ". ".join(_plain(part[:1].upper() + part[1:].rstrip(".")) for part in (*parts, notes) if part)
    return f"**{_plain(sentence)}** <br>{told}."


def _css(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]


def _plain(text: str) -> str:
    """Words of an outcome as text of Markdown: none of their signs is markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", " ".join(text.split()))
