"""to_model_card: the section about bias in the model card of a model, as Hugging Face and skops keep it."""

from __future__ import annotations

import os
import re

from tiltmeter.arguments import A_RUN, checked_kind, checked_path
from tiltmeter.record.directory.atomic_files import write_atomically
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.report.findings import findings
from tiltmeter.report.model_card import HEADINGS, model_card

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
