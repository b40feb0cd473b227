"""Facts: tables about one run: what was trained, its groups, its crossings, when to stop, its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tiltmeter.analysis.comparison import Comparison
from tiltmeter.analysis.crossings import Crossings
from tiltmeter.analysis.stopping import Stopping
from tiltmeter.names import NOBODY
from tiltmeter.record.labelled import label_from_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.report.page import Table

RULES = ("smallest gap", "best mean", "best worst group")


def trained(trajectory: Trajectory) -> Table:
    """What was trained, in a few rows."""
    settings: Mapping[str, Any] = trajectory.origin.settings
    rows = [("source", trajectory.origin.source)]
    model = settings.get("model")
    if isinstance(model, dict):
        rows.append(("model", f"{model.get('class')}, {model.get('parameters', 0):,} parameters"))
    recipe = settings.get("recipe", settings)  # runs of format 1 name the parts of the recipe one by one
    for name, value in (
        ("loss", settings.get("loss")),
        ("optimiser", recipe.get("optimiser", recipe.get("optimizer"))),
        ("schedule", recipe.get("schedule")),
        ("steps", settings.get("steps")),
        ("batch", recipe.get("batch")),
    ):
        if value is not None:
            rows.append((name, _brief(value)))
    if trajectory.origin.seeds:
        rows.append(("seeds", ", ".join(map(str, trajectory.origin.seeds))))
    looks = max((curve.sizes["time"] for curve in trajectory.values()), default=0)
    last = max((float(c.coords["time"].values[-1]) for c in trajectory.values() if c.sizes["time"]), default=0.0)
    rows += [("looks", f"{looks}, the last at {trajectory.clock} {last:.6g}"), ("tiltmeter", trajectory.origin.version)]
    if trajectory.diverged is not None:
        rows.append(("diverged", f"{float(trajectory.diverged.min()):.6g}"))
    return Table(("", ""), rows)


def groups(trajectory: Trajectory) -> Table | None:
    """Points and label rates of every group, of the points looked at and, where known, trained on."""
    problem: Any = trajectory.origin.problem
    parts = {"looked at": problem.get("look") if isinstance(problem, dict) else None}
    parts["trained on"] = trajectory.origin.settings.get("train")
    known: dict[str, Any] = {word: part for word, part in parts.items() if isinstance(part, dict) and "sizes" in part}
    if not known:
        return None
    names = [label_from_json(label) for label, _ in next(iter(known.values()))["sizes"]]
    rows = []
    for i, name in enumerate(names):
        row = [str(name)]
        for part in known.values():
            row += [f"{part['sizes'][i][1]:,}", f"{part['sizes'][i][1] / part['points']:.1%}"]
        rates = next(iter(known.values())).get("label_rates") or []
        shown = rates[i][1] if i < len(rates) and len(rates[i][1]) <= 10 else []
        row.append(", ".join(f"{label}: {rate:.1%}" for label, rate in shown))
        rows.append(row)
    header = ["group", *(f"{what} {word}" for word in known for what in ("points", "share")), "labels looked at"]
    return Table(header, rows)


def crossing_rows(found: Mapping[str, Crossings], clock: str) -> Table:
    """Every change of leader, and every stretch where nobody knows."""
    rows = []
    for curve, crossings in found.items():
        for c in crossings:
            rows.append(
                (curve, f"{c.time:.4g}", f"{c.low:.4g} to {c.high:.4g}", str(c.leader_before), str(c.leader_after))
            )
        for doubt in crossings.undecided:
            pair = " or ".join(map(str, doubt.pair))
            rows.append((curve, "undecided", f"{doubt.low:.4g} to {doubt.high:.4g}", pair, "inside the noise"))
    return Table(("curve", clock, "between looks at", "lead passes from", "to"), rows)


def stopping_rows(advice: Stopping) -> Table:
    """What each rule advises, and what it costs by the others."""
    rows = []
    for word, rule in zip(RULES, advice.rules, strict=True):
        price = rule.mean / advice.best_mean.mean - 1.0 if advice.best_mean.mean else 0.0
        rows.append(
            (word, f"{rule.time:.6g}", f"{rule.gap:.4f}", f"{rule.mean:.4f}", f"{price:+.1%}", f"{rule.worst:.4f}")
        )
    return Table(
        ("stop for the", f"at {advice.clock}", "gap", f"mean {advice.curve}", "price in mean", "worst group"), rows
    )


def compared(found: Comparison) -> Table:
    """Return a table that compares runs."""
    rows = [
        (
            row.name,
            _who(row.first_leader),
            ", ".join(f"{c.time:.4g}" for c in row.crossings) or "none",
            _who(row.last_leader),
            f"{row.worst_group} ({row.worst:.4f})",
            f"{row.gap:.4f}",
            f"{row.area:.4f}",
        )
        for row in found.rows
    ]
    header = ("run", "first leader", "lead changes at", "last leader", "worst group", "last gap", "area under the gap")
    return Table(header, rows)


def settings(trajectory: Trajectory) -> Table:
    """Everything noted about how it was made."""
    rows: list[tuple[str, str]] = []

    def walk(name: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, part in value.items():
                walk(f"{name}.{key}" if name else key, part)
        else:
            rows.append((name, _brief(value)))

    walk("", dict(trajectory.origin.settings))
    return Table(("setting", "value"), rows)


def _who(leader: object) -> str:
    return "undecided" if leader == NOBODY else str(leader)


def _brief(value: Any) -> str:
    if isinstance(value, dict) and "class" in value:
        rest = ", ".join(f"{k} = {v}" for k, v in value.items() if k != "class" and v not in (None, False, 0))
        return f"{value['class']}({rest})"
    return value if isinstance(value, str) else json.dumps(value)
