"""The loop from groups that were found to interventions on them, judged on the true groups of fresh points.

python benchmarks/_discover_loop.py PART [--to FILE]

PART is `loop` (spoilt slices) or `shortcuts` (a column names the label, but not in a slice).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import tiltmeter as tm
from tiltmeter.discover.rules import columns_of

sys.path.insert(0, str(Path(__file__).parent))
from _discover_trainings import (
    KINDS,
    SEED,
    STEPS,
    Draws,
    adult,
    all_together,
    made_table,
    network,
    overlap,
    planted,
    random_slice,
    recipe,
    run_part,
    trained,
)

DRAWS = 6


def arms() -> dict[str, Any]:
    """Interventions that use groups."""
    known = tm.interventions
    return {
        "balanced weights": known.Balanced(),
        "balanced draws": known.Balanced(by="draws"),
        "group DRO": known.GroupDRO(rate=0.01),
        "down-sampled": known.Downsampled(),
    }


def without_groups(steps: int) -> dict[str, Any]:
    return {"JTT": tm.interventions.JTT(times=20, scout=max(1, steps // 10)), "CVaR": tm.interventions.CVaR(alpha=0.5)}


def errors_after(
    model: torch.nn.Module,
    fresh: tm.GroupedData,
    settings: tm.Recipe,
    seed: int,
    train: tm.GroupedData,
    intervention: Any,
) -> dict[str, float]:
    """The error of the true groups after a training from the same weights with the same batches."""
    chosen = () if intervention is None else (intervention,)
    end = tm.train(
        *(deepcopy(model), train, fresh, replace(settings, interventions=chosen)),
        seed=seed,
        watch=tm.Watch(when=tm.record.at([settings.steps])),
    )["error"].isel(time=-1)
    return {str(group): round(float(end.sel(group=group)), 4) for group in ("slice", "rest")}


@dataclass(frozen=True, eq=False)
class Task:
    """Rows with a slice that somebody planted, and which of them are trained on, held out and fresh."""

    about: dict[str, Any]
    rows: pd.DataFrame
    x: np.ndarray
    y: np.ndarray
    members: np.ndarray
    parts: tuple[np.ndarray, np.ndarray, np.ndarray]
    steps: int
    seed: int


def spoilt_slices() -> Iterator[Task]:
    """Slices of Adult that are spoilt in three ways."""
    table = adult()
    for draw in range(DRAWS):
        kind = KINDS[draw % len(KINDS)]
        rng = np.random.default_rng([SEED, 4, draw])
        rule, members, x, y = planted(kind, table, rng)
        train, held_out, test = np.split(rng.permutation(len(y)), [16_000, 24_000])
        about = {"kind": kind, "draw": draw, "slice": rule.name}
        yield Task(about, table.rows, x, y, members, (train, held_out, test), STEPS, draw)


#: A column that names the label: how often it does so outside of the slice and in it, and the sizes of slices.
AGREES, IN_SLICE, SHARES = 0.95, 0.05, (0.03, 0.06)
#: Rows of a task with a shortcut, to train on and held out; updates; repetitions of each task.
SHORT_TRAINED, SHORT_HELD_OUT, SHORT_STEPS, REPEATS = 4_000, 6_000, 600, 3


def shortcuts(first: int = 100) -> Iterator[Task]:
    """A column names the label, but not in a slice: three tasks on Adult and three made ones, each drawn again."""
    for place in range(DRAWS):
        for repeat in range(REPEATS):
            rng = np.random.default_rng([SEED, 5, first + place, repeat])
            table = adult() if place < DRAWS // 2 else made_table(rng)
            rule, members = random_slice(table, np.random.default_rng([SEED, 6, first + place]), SHARES)
            y = table.y
            agrees = rng.random(len(y)) < np.where(members, IN_SLICE, AGREES)
            hint = np.where(agrees, y, 1 - y).astype(np.float32)[:, None]
            x = np.hstack([table.numbers(), 2.0 * hint - 1.0])
            order = rng.permutation(len(y))
            parts = np.split(order, [SHORT_TRAINED, SHORT_TRAINED + SHORT_HELD_OUT])
            about = {"kind": "Adult" if place < DRAWS // 2 else "made", "task": place, "draw": repeat}
            about["slice"] = rule.name
            yield Task(about, table.rows, x, y, members, tuple(parts), SHORT_STEPS, 100 * place + repeat)


def loop(tasks: Callable[[], Iterator[Task]]) -> Draws:
    """The advice on discovered groups, on true groups and without groups, judged on true groups of fresh points."""
    for task in tasks():
        x, y, seed = task.x, task.y, task.seed
        train, held_out, test = task.parts
        run = trained(x, y, train, held_out, seed=9000 + seed, steps=task.steps)
        discovery = tm.discover(run, task.rows.iloc[held_out], seed=seed)
        true = np.where(task.members, "slice", "rest")
        plain = recipe(task.steps, loss=tm.Logistic(), order=seed)
        torch.manual_seed(9000 + seed)
        model = network(x.shape[1])

        fresh = tm.GroupedData(x[test], y[test], true[test])
        errors = partial(errors_after, model, fresh, plain, seed)
        row: dict[str, Any] = {**task.about, "clear": [group.name for group in discovery.clear]}
        columns = columns_of(task.rows.iloc[held_out])
        inside = [group.rule.holds(columns) for group in discovery.clear]
        row["overlap"] = round(max((overlap(mask, task.members[held_out]) for mask in inside), default=0.0), 3)
        together = all_together(x[train], y[train])
        row["plain"] = errors(together, None)
        for name, intervention in without_groups(task.steps).items():
            row[name] = errors(together, intervention)
        divided = {"true groups": [tm.GroupedData(x[part], y[part], true[part]) for part in (train, held_out)]}
        if discovery.clear:
            divided["discovered groups"] = [
                discovery.data(all_together(x[part], y[part]), task.rows.iloc[part]) for part in (train, held_out)
            ]
        for name, parts in divided.items():
            advice = tm.advise(
                model, *parts, plain, arms(), curve="error", method=tm.methods.Rehearsal(), progress=False
            )
            # What advise would take, and the best of what it tried by the number alone, clear or not.
            tried = {arm: advice.value(end) for arm, end in advice.runs.items()}
            for label, chosen in (
                (name, advice.ranked[0].name),
                (f"{name}, lowest", min(tried, key=tried.__getitem__)),
            ):
                intervention = None if chosen == "plain" else arms()[chosen]
                row[label] = {"advice": chosen, "clear": list(advice.better), **errors(parts[0], intervention)}
        for name in ("discovered groups", "discovered groups, lowest"):
            row.setdefault(name, {"advice": "plain", "clear": [], **row["plain"]})  # without groups, as it was
        yield row


def loop_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Worst-group error on true groups, and paired differences to plain training, with standard errors over tasks."""
    tasks: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        tasks.setdefault(row.get("task", row["draw"]), []).append(row)
    summary: dict[str, Any] = {}
    for name in (key for key in rows[0] if isinstance(rows[0][key], dict)):
        worst = np.array(
            [np.mean([[max(row[arm]["slice"], row[arm]["rest"]) for arm in (name, "plain")] for row in some], axis=0)
             for some in tasks.values()]
        )  # fmt: skip
        change = worst[:, 0] - worst[:, 1]
        summary[name] = {
            "worst-group error": round(float(worst[:, 0].mean()), 4),
            "change": round(float(change.mean()), 4),
            "se of the change": round(float(change.std(ddof=1) / np.sqrt(len(change))), 4),
            "tasks with a smaller error": f"{int((change < 0).sum())} of {len(change)}",
            "error of the rest": round(float(np.mean([row[name]["rest"] for row in rows])), 4),
        }
    return summary


if __name__ == "__main__":
    run_part(
        {"loop": (partial(loop, spoilt_slices), loop_summary), "shortcuts": (partial(loop, shortcuts), loop_summary)}
    )
