"""Model card: a run as a section of Markdown, to paste into the card of a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tiltmeter.report.answers import answers
from tiltmeter.report.findings import Findings
from tiltmeter.report.positive_label import positive_label
from tiltmeter.report.wording import between, number
from tiltmeter.shown_text import percent, visible

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
            value = percent(one.value) if row.term.share else number(one.value)
            limits = between(one) if row.term.share else f"{number(one.low)} to {number(one.high)}"
            cells.append(f"{value} ({limits})" if one.known else value)
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
