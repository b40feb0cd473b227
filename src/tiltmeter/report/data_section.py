"""Data: who was trained on and who was held out, what was dropped; and what was trained."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

from tiltmeter.data.from_frame import label_sentence
from tiltmeter.plot.theme import group_name
from tiltmeter.record.labelled import label_from_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import Cell, card_table, paragraph, section
from tiltmeter.report.positive_label import positive_label
from tiltmeter.shown_text import percent


def data_section(found: Findings) -> str:
    """Sizes and positives of every group, trained on and held out."""
    problem: Any = found.run.origin.problem
    evaluation = problem.get("held_out") if isinstance(problem, Mapping) else None
    train = found.run.origin.settings.get("train")
    parts = {"Held out": evaluation, "Trained on": train}
    known: dict[str, Any] = {
        word: part for word, part in parts.items() if isinstance(part, Mapping) and "sizes" in part
    }
    if not known:
        return section("data", "Data", paragraph("The run does not say which points it looked at."))
    label = positive_label(found.run)
    yes = "of them positive" if label is None else f"of them positive ({label.name})"
    head, columns = ["Group"], []
    for word, part in known.items():
        head += [word, yes if _two_labels(part) else "labels"]
        columns.append((_sizes(part), part))
    rows = []
    for group in _sizes(next(iter(known.values()))):
        cells = [Cell(group_name(group), head=True)]
        for sizes, part in columns:
            size, rates = sizes.get(group, 0), _rates(part).get(group, [])
            cells.append(Cell(f"{size:,}", (f"{percent(size / max(part['points'], 1), 1)} of all",)))
            cells.append(_labels(size, rates))
        rows.append(cells)
    texts = [_account(part) for part in known.values()]
    weighted = any(part.get("weighted") for part in known.values())
    texts.append("Points are weighted." if weighted else "Points are not weighted.")
    if not isinstance(train, Mapping):
        texts.append("The run does not say how many points it was trained on.")
    return section("data", "Data", card_table(head, rows, ""), paragraph(" ".join(dict.fromkeys(filter(None, texts)))))


def _sizes(part: Mapping[str, Any]) -> dict[Hashable, int]:
    return {label_from_json(label): int(size) for label, size in part["sizes"]}


def _rates(part: Mapping[str, Any]) -> dict[Hashable, list[Any]]:
    return {label_from_json(label): rates for label, rates in part.get("label_rates") or []}


def _two_labels(part: Mapping[str, Any]) -> bool:
    rates = list(_rates(part).values())
    return bool(rates) and len(rates[0]) == 2


def _labels(size: int, rates: list[Any]) -> Cell:
    if len(rates) == 2:
        share = float(rates[1][1])
        return Cell(f"{round(share * size):,}", (percent(share, 1),))
    return Cell(", ".join(f"{label:g}: {percent(rate)}" for label, rate in rates[:10]))


def _account(part: Mapping[str, Any]) -> str:
    """What was done to the table while it was read."""
    read = part.get("reading")
    if not isinstance(read, Mapping):
        return ""
    said = [f"Read {int(read.get('rows', 0)):,} rows."]
    if read.get("labels"):
        said.append(label_sentence(read["labels"], read.get("positive")))
    dropped = {
        ("no group" if group is None else group_name(label_from_json(group))): n for group, n in read.get("dropped", [])
    }
    if any(dropped.values()):
        said.append(
            "Rows dropped for missing values: " + ", ".join(f"{name} {n:,}" for name, n in dropped.items()) + "."
        )
    return " ".join(said)


def trained_rows(run: Trajectory) -> list[tuple[str, str]]:
    """What was trained, in a few rows."""
    settings: Mapping[str, Any] = run.origin.settings
    rows = [("source", run.origin.source)]
    model = settings.get("model")
    if isinstance(model, dict):
        rows.append(("model", f"{model.get('class')}, {model.get('parameters', 0):,} parameters"))
    recorded = settings.get("recipe")
    recipe = recorded if isinstance(recorded, Mapping) else settings
    for name, value in (
        ("loss", settings.get("loss")),
        ("optimiser", recipe.get("optimiser", recipe.get("optimizer"))),
        ("schedule", recipe.get("schedule")),
        ("steps", settings.get("steps")),
        ("batch", recipe.get("batch")),
    ):
        if value is not None:
            rows.append((name, brief(value)))
    if run.origin.seeds:
        rows.append(("seeds", ", ".join(map(str, run.origin.seeds))))
    if run.diverged is not None:
        rows.append(("diverged", f"{float(run.diverged.min()):.6g}"))
    return [*rows, ("tiltmeter", run.origin.version)]


def setting_rows(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Everything noted about how it was made."""
    rows: list[tuple[str, str]] = []

    def walk(name: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, part in value.items():
                walk(f"{name}.{key}" if name else key, part)
        else:
            rows.append((name, brief(value)))

    walk("", dict(settings))
    return rows


def brief(value: Any) -> str:
    if isinstance(value, dict) and "class" in value:
        rest = ", ".join(f"{k} = {v}" for k, v in value.items() if k != "class" and v not in (None, False, 0))
        return f"{value['class']}({rest})"
    return value if isinstance(value, str) else json.dumps(value)


def pairs_table(rows: list[tuple[str, str]]) -> str:
    """Names and values, as a table."""
    return card_table(
        ("Name", "Value"), [[Cell(name, head=True), Cell(value)] for name, value in rows], "", stack=False
    )
