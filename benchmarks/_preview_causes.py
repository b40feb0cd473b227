"""Networks trained in the five populations, on fresh tables: what `Preview.causes` said beside what came.

`python benchmarks/_preview_causes.py train rows.jsonl` trains what the file lacks (rows are resumable), and `judge`
prints and stores the shares; with `calibrate` as a third word both take tasks that calibrate, and nothing is stored.
Fixed before the runs: the first twelve tasks of the judging list, two optimisers, five seeds with label draws and
held-out halves of their own; the true positive rate (every task is read as a benefit) and the loss; phases at 30, 70
and 100 % of the fall of the loss. A change is clear where five paired trainings have |t| > 3 and it is at least a point
(or 0.005 in loss).
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _measure import RESULTS
from _preview_tasks import CALIBRATE, JUDGE, Task, read

import tiltmeter as tm
from tiltmeter.preview.causes import LEAST, Contrast, causes_of
from tiltmeter.preview.confirm import contrasts, trained_in
from tiltmeter.preview.inputs import Inputs, Rows
from tiltmeter.preview.populations import Population, populations

CALIBRATING = sys.argv[3:] == ["calibrate"]
TASKS = CALIBRATE[::2] if CALIBRATING else JUDGE[:12]
SEEDS, CURVES = range(5), ("tpr", "loss")
OPTIMISERS = {
    "AdamW": tm.Recipe(partial(torch.optim.AdamW, lr=1e-3), steps=1500, batch=32, loss=tm.Logistic()),
    "SGD": tm.Recipe(partial(torch.optim.SGD, lr=0.1), steps=1500, batch=32, loss=tm.Logistic()),
}
#: A clear change: |t| over paired trainings, and its size.
CLEAR, SIZES = 3.0, {"tpr": 0.01, "loss": 0.005}
#: Random groupings of five tables.
TABLES, GROUPINGS = 5, 20

Rows_ = list[dict[str, Any]]


def half(rows: Rows, seed: int) -> Rows:
    """A half of the judging people, drawn by the seed."""
    kept = np.random.default_rng((seed, 1)).random(len(rows.labels)) < 0.5
    mass = rows.mass[kept]
    return Rows(rows.x[kept], rows.labels[kept], mass / mass.sum(), rows.codes[kept])


def sides(inputs: Inputs) -> tuple[int, int | None]:
    return 0, 1 if len(inputs.groups) == 2 else None


def trainings(task: Task, file: Path, done: set[tuple[str, str, int, str]]) -> None:
    """Every training of one task that the file lacks, one row for each."""
    inputs = tm.preview(*read(task)).inputs
    worlds = {"as it is": Population("as it is", inputs.train, inputs.held_out)}
    worlds |= {cause: world for cause, world in populations(inputs).items() if not world.refused}
    for optimiser, recipe in OPTIMISERS.items():
        for seed in SEEDS:
            for name, world in worlds.items():
                if (task.name, optimiser, seed, name) in done:
                    continue
                judged = replace(world, held_out=half(world.held_out, seed))
                seen = inputs.with_rows(inputs.train, judged.held_out)
                run = trained_in(seen, judged, seed, recipe=recipe)
                found = {curve: contrasts(seen, judged, run, curve, sides(inputs)) for curve in CURVES}
                row = {"task": task.name, "optimiser": optimiser, "seed": seed, "world": name, **found}
                with file.open("a") as rows:
                    rows.write(json.dumps(row) + "\n")


def stored(file: Path) -> Rows_:
    return list(map(json.loads, file.read_text().splitlines())) if file.exists() else []


def came(rows: Rows_, task: str, optimiser: str, cause: str, curve: str, phase: str) -> np.ndarray:
    """The changes of the contrast, paired by seed."""
    own = {
        (row["world"], row["seed"]): row[curve][phase]
        for row in rows
        if (row["task"], row["optimiser"]) == (task, optimiser)
    }
    seeds = [seed for seed in SEEDS if (cause, seed) in own and ("as it is", seed) in own]
    return np.array([own[cause, seed] - own["as it is", seed] for seed in seeds])


def cases(file: Path) -> Rows_:
    """One row for each task, optimiser, cause, curve and phase: what was said and what came."""
    rows, found = stored(file), []
    for task in TASKS:
        view = tm.preview(*read(task))
        for curve in CURVES:
            contrast = Contrast(curve, *sides(view.inputs))
            causes = causes_of(view.inputs, view.course, contrast)
            plain = causes_of(view.inputs, view.course, contrast, least=0.0)
            for row in causes.rows:
                for optimiser in OPTIMISERS:
                    changes = came(rows, task.name, optimiser, row.cause, curve, row.phase)
                    if len(changes) < 3:
                        continue
                    mean, error = changes.mean(), changes.std(ddof=1) / np.sqrt(len(changes))
                    clear = abs(mean) > CLEAR * error and abs(mean) >= SIZES[curve]
                    found.append(
                        {"task": task.name, "optimiser": optimiser, "cause": row.cause, "curve": curve}
                        | {"phase": row.phase, "gap": row.gap, "said": row.change, "came": float(mean)}
                        | {"clear": bool(clear), "named": row.named}
                        | {"beyond chance": plain.of(row.cause, row.phase).named}
                    )
    return found


def summary(found: Rows_) -> dict[str, Any]:
    """Signs and top causes against the trivial rules, with intervals from tasks drawn again."""
    table: dict[str, Any] = {}
    for curve in CURVES:
        own = [row for row in found if row["curve"] == curve]
        clear = [row for row in own if row["clear"]]
        signs = [(row["task"], row["said"] * row["came"] > 0, row["gap"] * row["came"] < 0) for row in clear]
        tops = []
        for key in {(row["task"], row["optimiser"], row["phase"]) for row in clear}:
            group = [row for row in own if (row["task"], row["optimiser"], row["phase"]) == key]
            largest = max(group, key=lambda row: abs(row["came"]))
            if largest["clear"]:
                said = max(group, key=lambda row: abs(row["said"]))
                tops.append((key[0], said["cause"] == largest["cause"], largest["cause"] == "base rate"))
        unclear = [row for row in own if not row["clear"]]
        least = LEAST if curve == "tpr" else SIZES["loss"]
        said, was = np.array([[row["said"], row["came"]] for row in clear]).T
        table[curve] = {
            "signs": compared(signs),
            "top cause": compared(tops),
            "correlation": float(np.corrcoef(said, was)[0, 1]),
            "slope": float((said @ was) / (said @ said)),
            "named in clear changes": [sum(row["named"] for row in clear), len(clear)],
            "named in unclear changes": [sum(row["named"] for row in unclear), len(unclear)],
            "named where it came the other way": sum(row["named"] and row["said"] * row["came"] < 0 for row in clear),
            "said above the threshold in unclear changes": [
                sum(abs(row["said"]) >= least for row in unclear),
                len(unclear),
            ],
        }
    return table


def compared(rows: list[tuple[str, bool, bool]]) -> dict[str, Any]:
    """How often the theory and the trivial rule are right in the same cases, and the difference over tasks."""
    tasks = sorted({task for task, *_ in rows})
    by_task = {task: np.array([[a, b] for name, a, b in rows if name == task], dtype=float) for task in tasks}
    rng, drawn = np.random.default_rng(0), []
    for _ in range(4000):
        chosen = np.concatenate([by_task[tasks[place]] for place in rng.integers(0, len(tasks), len(tasks))])
        drawn.append(chosen[:, 0].mean() - chosen[:, 1].mean())
    ours, theirs = np.array([[a, b] for _, a, b in rows], dtype=float).sum(axis=0)
    return {
        "right": int(ours),
        "trivial rule": int(theirs),
        "cases": len(rows),
        "tasks": len(tasks),
        "difference, 90 %": np.quantile(drawn, (0.05, 0.95)).tolist(),
    }


def thresholds(found: Rows_) -> None:
    """What share of unclear and of clear changes would be named with other thresholds on size."""
    for curve, sizes in (("tpr", (0.03, 0.05, 0.08, 0.1, 0.15)), ("loss", (0.005, 0.01, 0.02, 0.03, 0.05))):
        own = [row for row in found if row["curve"] == curve]
        for least in sizes:
            shares = [
                np.mean([row["beyond chance"] and abs(row["said"]) >= least for row in own if row["clear"] == clear])
                for clear in (False, True)
            ]
            print(curve, least, "unclear {:.3f} clear {:.3f}".format(*shares))


def random_groupings() -> list[int]:
    """In how many random groupings a cause is named, and how many there were."""
    named = 0
    for task in TASKS[:TABLES]:
        train, held_out = read(task)
        for draw in range(GROUPINGS):
            rng = np.random.default_rng(draw)
            parts = []
            for data in (train, held_out):
                groups = np.where(rng.random(len(data)) < 0.4, "a", "b")
                parts.append(tm.GroupedData(data.x, data.y, groups))
            view = tm.preview(*parts)
            contrast = Contrast("tpr", 0, 1)
            named += bool(causes_of(view.inputs, view.course, contrast, seed=draw).named)
    return [named, TABLES * GROUPINGS]


def main() -> None:
    torch.set_num_threads(1)
    what, file = sys.argv[1], Path(sys.argv[2])
    if what == "train":
        done = {(row["task"], row["optimiser"], row["seed"], row["world"]) for row in stored(file)}
        for task in TASKS:
            trainings(task, file, done)
        return
    found = cases(file)
    if CALIBRATING:
        print(json.dumps(summary(found), indent=1))
        thresholds(found)
        return
    table = {**summary(found), "random groupings with a cause": random_groupings()}
    (RESULTS / "preview_causes.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
