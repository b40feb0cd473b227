"""What judged forecasts came to: the rows of `judge_forecasts` in numbers, a line each."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter_lab.calibrate_twins import KINDS

#: The rows that the documentation rests on.
KEPT = Path("docs/lab/judged-forecasts.json")
#: Kinds that are judged together: every family has eight tasks or more.
FAMILIES = {
    "dense": ("MLP", "dropout", "residual"),
    "normalised": ("batch norm", "layer norm"),
    "pictures": ("CNN", "residual CNN"),
    "sequences": ("attention", "embedding"),
}
CURVES = ("loss", "error")


def wilson(hits: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share.

    >>> [round(limit, 3) for limit in wilson(9, 10)]
    [0.596, 0.982]
    """
    if count == 0:
        return 0.0, 1.0
    middle, half = (
        hits / count + z**2 / (2 * count),
        z * math.sqrt(hits * (count - hits) / count**3 + z**2 / (4 * count**2)),
    )
    scale = 1 + z**2 / count
    return (middle - half) / scale, (middle + half) / scale


def summary(rows: Sequence[Mapping[str, Any]], budget: str) -> Iterator[str]:
    """The numbers of one budget, a line each."""
    families = {"all": KINDS, **FAMILIES}
    for family, kinds in families.items():
        chosen = [row for row in rows if row["kind"] in kinds]
        made = [(row, row["forecasts"][budget]) for row in chosen]
        promised = [forecast for _, forecast in made if forecast["promise"]]
        covered = [one[curve]["inside"] for forecast in promised for one in forecast["runs"] for curve in CURVES]
        covered = [one for one in covered if one is not None]
        low, high = wilson(sum(covered), len(covered))
        text = f"{budget}, {family}: {len(promised)} of {len(made)} with a promise; "
        text += f"inside {sum(covered)} of {len(covered)}"
        yield f"{text} ({low:.2f} to {high:.2f}); {_counted(made, 'end')}"
    for method in ("Rehearsal", "Twin", "Pilot", "Linear"):
        made = [
            (row, row["forecasts"][budget]) for row in rows if row["forecasts"][budget]["method"].startswith(method)
        ]
        if made:
            text = f"{budget}, {method}: {len(made)} tasks; {_counted(made, 'end')}"
            yield f"{text}; evaluations {_counted(made, 'evaluations')}"
    ratios = [row["forecasts"][budget]["cost"] / max(row["forecasts"][budget]["said"], 1e-9) for row in rows]
    near = sum(1 / 1.5 <= ratio <= 1.5 for ratio in ratios)
    middle = float(np.median(ratios))
    yield f"{budget}: price within a factor 1.5 in {near} of {len(ratios)}; median cost over price {middle:.2f}"
    kept = [row["forecasts"][budget]["cost"] <= 1.2 * _budget(row, budget) for row in rows]
    yield f"{budget}: budget kept within 20 % in {sum(kept)} of {len(kept)}"


def _budget(row: Mapping[str, Any], name: str) -> float:
    """The seconds that were allowed; the default is a minute, or 0.6 of the training where that is more."""
    return float(row["forecasts"][name]["budget"] or max(60.0, 0.6 * float(np.mean(row["training"]))))


def _counted(made: Sequence[tuple[Any, Mapping[str, Any]]], where: str) -> str:
    """Right, wrong and not stated, over both trainings and curves."""
    total: dict[str, int] = defaultdict(int)
    for _, forecast in made:
        for run in forecast["runs"]:
            for curve in CURVES:
                for name, count in run[curve][where].items():
                    total[name] += count
    return ", ".join(
        f"{name} {total[name]}" for name in ("right", "wrong", "not stated", "stated, not clear in training")
    )


def kept_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every part that is kept in a folder, or in the file of all rows."""
    if folder.is_file():
        rows: dict[str, list[dict[str, Any]]] = json.loads(folder.read_text(encoding="utf-8"))
        return rows
    return {
        part.name: [json.loads(path.read_text(encoding="utf-8")) for path in sorted(part.glob("*.json"))]
        for part in sorted(folder.iterdir())
    }


def write_rows(rows: Mapping[str, Sequence[Mapping[str, Any]]], place: Path) -> None:
    """All rows in one file, a line each."""
    parts = [f'"{part}": [\n' + ",\n".join(json.dumps(row) for row in listed) + "\n]" for part, listed in rows.items()]
    place.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def report(folder: Path) -> Iterator[str]:
    """Everything that is kept, in numbers."""
    kept = kept_in(folder)
    for part in ("tasks", "again", "fresh", "long", "tight"):
        if kept.get(part):
            yield f"{part}:"
            yield from _report_tasks(kept[part])
    for part in ("advice", "advice again", "advice alone", "advice dear"):
        if advised := kept.get(part):
            worse = sum(row["against plain"] > 2 * row["error of plain"] for row in advised)
            regret = float(np.median([row["regret"] for row in advised]))
            yield f"{part}, {len(advised)} tasks: median regret {regret:.4f}, clearly worse than plain {worse}"
            yield f"{part}: cost over training all arms {[round(row['cost'] / row['arms'], 2) for row in advised]}"
    for part in ("chance", "chance again"):
        if drawn := kept.get(part):
            names = [name for name in ("leader", "intervention", "for all alike", "cause") if name in drawn[0]]
            counts = {name: sum(row[name] for row in drawn) for name in names}
            yield f"{part}, {len(drawn)} draws of random groups: {counts}"


def _report_tasks(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The numbers of one set of tasks."""
    yield f"{len(rows)} tasks, {sum(np.mean(row['training']) > 120 for row in rows)} of more than 120 CPU seconds"
    for budget in ("default", "tight"):
        yield from summary(rows, budget)
    for name in ("second training", "pilot"):
        total: dict[str, int] = defaultdict(int)
        for row in rows:
            for curve in CURVES:
                for verdict, count in row[name][curve].items():
                    total[verdict] += count
        yield f"{name}: {dict(total)}"
