"""Model card: a run as a section of Markdown, to paste into the card of a model."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from tiltmeter.arguments import A_RUN, checked_kind, checked_path
from tiltmeter.record.directory.atomic_files import write_atomically
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.report.answers import answers
from tiltmeter.report.findings import Findings, findings
from tiltmeter.report.positive_label import positive_label
from tiltmeter.shown_text import visible

#: The titles of the section, by which an older one is found: of a training, and of one evaluation.
HEADINGS = ("## Bias during training", "## Bias of the model")


def model_card(found: Findings, others: tuple[Findings, ...] = ()) -> str:
    """The headline and the answers, then the value of every group at the last evaluation with 95 % limits."""
    label = positive_label(found.run)
    yes = [label.sentence] if label is not None and "tpr" in found.rows else []
    line = found.judged.headline
    sentences = [
        line.line,
        *([line.licence] if line.licence else []),
        *yes,
        *(f"{one.question} {one.text}" for one in answers(found, others)),
    ]
    rows = [*found.rows.values(), *found.extra.values()]
    head = ["group", *(row.term.curve for row in rows)]
    body = []
    for place, name in enumerate(found.names):
        cells = [name]
        for row in rows:
            one = row.values[place]
            value = row.term.told(one.value)
            cells.append(f"{value} ({row.term.limits(one)})" if one.known else value)
        body.append(cells)
    lines = [HEADINGS[not found.several], "", *[f"- {plain(sentence)}" for sentence in sentences], ""]
    at = " at the last evaluation," if found.several else ""
    lines += [*markdown(head, body), "", f"Values{at} with 95 % limits of each number alone."]
    return "\n".join([*lines, f"Measured with tiltmeter {found.run.origin.version}."])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown, its cells as plain text."""
    told = [[plain(cell) for cell in row] for row in [head, *rows]]
    return [f"| {' | '.join(row)} |" for row in [told[0], ["---"] * len(told[0]), *told[1:]]]


def plain(text: str) -> str:
    r"""Text that Markdown and HTML show as it is: no element, link, emphasis, code or end of a cell.

    >>> print(plain("<b>[x](y) | a_b"))
    &lt;b>\[x\](y) \| a\_b

    What reads the same without an escape has none, since a card is also read as text.

    >>> print(plain("Male & Black, <= 50K, &lt;"))
    Male & Black, <= 50K, &amp;lt;
    """
    one_line = " ".join(visible(text).split("\n"))
    one_line = re.sub(r"&(?=#?\w+;)", "&amp;", one_line)
    one_line = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", one_line)
    one_line = re.sub(r"^(\s*)>", r"\1&gt;", one_line)
    return re.sub(r"([\\`*_\[\]|~#!$])", r"\\\1", one_line)


#: The section, up to the next heading of its level or the end.
_SECTION = re.compile(rf"^({'|'.join(HEADINGS)})\n.*?(?=^#{{1,2}} |\Z)", re.MULTILINE | re.DOTALL)


def to_model_card(run: Trajectory, path: str | os.PathLike[str] | None = None) -> str:
    """Return the section "Bias during training" in Markdown, and put it into the card at `path` if one is given;
    for one evaluation it is called "Bias of the model".

    >>> from tiltmeter import SGD, predict, teacher_mixture
    >>> text = to_model_card(predict(teacher_mixture(rho=0.8), SGD(lr=0.1), [0.1, 1.0, 10.0], curves=("loss",)))
    >>> text.splitlines()[0], "| group | loss |" in text
    ('## Bias during training', True)

    The card is a README.md as Hugging Face shows it; a section of this name that is there already is replaced, all else
    (its metadata too) stays as it is. For a card of skops: `card.add(**{"Bias during training": text})`, without the
    first line. The section says what this run shows on these points, not that the model is fair.

    Args:
        run: Run that the section is about.
        path: Card (README.md) that the section is put into; None: only returned.
    """
    checked_kind("run", run, Trajectory, A_RUN)
    text = model_card(findings(run))
    if path is None:
        return text
    place = checked_path("path", path)
    if place.suffix.lower() != ".md":
        raise ValueError(f"`path` should end in .md. Found {place.name!r}.")
    before = place.read_text(encoding="utf-8") if place.exists() else ""
    section = f"{text}\n"
    if _SECTION.search(before):
        after = _SECTION.sub(lambda _: f"{section}\n", before, count=1).rstrip("\n") + "\n"
    else:
        after = f"{before.rstrip()}\n\n{section}" if before.strip() else section
    write_atomically(place, after.encode())
    return text
