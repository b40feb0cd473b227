"""Verdict answers: all experiments with their outcomes, those of the folder and those that the laboratory brings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiltmeter_lab.catalogue import EXPERIMENTS, entry_of, known
from tiltmeter_lab.outcome import Outcome
from tiltmeter_lab.reproduce import OUTCOME, PICTURES, outcomes_in, reproduce
from tiltmeter_lab.study.demo_study import demo_study
from tiltmeter_lab.verdict_page import read_outcomes
from tiltmeter_lab.verdicts import made as made_by
from tiltmeter_lab.verdicts import row

#: Where outcomes are looked for, below the folder; `tiltmeter reproduce` writes there by itself.
PLACE = "reproduce"
#: An experiment that takes seconds, for the demo of the explorer.
DEMO = "learning-rates"
#: The most bytes of one stored picture.
MOST_BYTES = 2**24


def verdict_answers(root: str) -> list[dict[str, Any]]:
    """List every experiment with its title and paper, and its outcomes.

    Those that the folder holds are `here`. Of the variants that it lacks, those that come with the laboratory are
    shown, without pictures.
    """
    outcomes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    in_folder = outcomes_of(Path(root))
    for outcome in in_folder:
        outcomes[outcome.name].append(_told(outcome) | {"here": True})
    variants = {(outcome.name, outcome.variant) for outcome in in_folder}
    for outcome in read_outcomes():
        if (outcome.name, outcome.variant) not in variants:
            outcomes[outcome.name].append(_told(replace(outcome, pictures=())) | {"here": False})
    answers = []
    for name in EXPERIMENTS:
        entry = entry_of(name)
        answers.append(
            {
                "name": name,
                "title": entry.title,
                "paper": entry.paper,
                "needs": list(entry.needs),
                "outcomes": outcomes[name],
            }
        )
    return answers


def verdict_picture(root: str, name: str, variant: str, number: int) -> Any:
    """Return one stored picture of an outcome, as Vega-Lite."""
    for outcome in outcomes_of(Path(root)):
        if (outcome.name, outcome.variant) == (name, variant) and 0 <= number < len(outcome.pictures):
            folder = (Path(outcome.folder) / PICTURES).resolve()
            for file in folder.glob("*.json"):  # looked up among what is there, never joined to the name that is stored
                if file.stem == outcome.pictures[number][1] and _inside(file, Path(root)):
                    if file.stat().st_size > MOST_BYTES:
                        raise ValueError("This picture is too large to be shown here.")
                    try:
                        return json.loads(file.read_text(encoding="utf-8"))
                    except (ValueError, RecursionError):
                        raise ValueError("This picture is damaged.") from None
    raise ValueError("There is no such picture.")


def run_quick(root: str, name: str, tell: Callable[[Any], None]) -> dict[str, Any]:
    """Run an experiment at its quick scale into the folder; `tell` hears about every run."""
    outcome = reproduce(known(name), "quick", to=Path(root) / PLACE, tell=lambda text: tell(visible(text)))
    return _told(outcome)


def demo(folder: Path) -> list[str]:
    """Run a short experiment below the folder, unless it is there; returns the names of what was made."""
    made = []
    if not (folder / "demo" / "study").exists():
        demo_study(folder / "demo" / "study")
        made.append("study")
    if not (folder / PLACE / DEMO).exists():
        reproduce(DEMO, to=folder / PLACE)
        made.append(DEMO)
    return made


def outcomes_of(root: Path) -> list[Outcome]:
    """Read the outcomes below the folder; those behind links that lead out of it are left out, and one bad file hides
    no other."""
    if not (root / PLACE).is_dir():
        return []
    outcomes = outcomes_in(root / PLACE, strict=False)
    return [outcome for outcome in outcomes if _inside(Path(outcome.folder) / OUTCOME, root)]


def visible(text: str) -> str:
    """The text with control characters spelled out."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else repr(letter)[1:-1] for letter in text)


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def _told(outcome: Outcome) -> dict[str, Any]:
    claims = [
        {"verdict": claim.verdict, "cells": [visible(cell) for cell in row(outcome.name, claim)]}
        for claim in outcome.claims
    ]
    return {
        "variant": visible(outcome.variant),
        "state": outcome.state,
        "made": visible(made_by(outcome).replace("`", "")),
        "claims": claims,
        "pictures": [visible(title) for title, _ in outcome.pictures],
    }
