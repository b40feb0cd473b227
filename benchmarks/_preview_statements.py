"""Who is named: previews beside trainings over many splits and attributes, and previews of random groups.

`python benchmarks/_preview_statements.py named rows.jsonl` and `... random rows.jsonl` add what the files lack;
`... judge named.jsonl random.jsonl` stores the counts. Fixed before the runs: the judging tables, up to two attributes
each (the task's own, and the first other column with two values of at least 15 %), seven splits; every task is read as
a benefit, so the declared rate is the true positive rate. A named group is wrong if the training's own claim about this
rate names another. Random groups: ten tables, 100 groupings, a name in any rate.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _measure import RESULTS
from _preview_tasks import JUDGE, Task, read
from torch import nn

import tiltmeter as tm
from tiltmeter.names import NOBODY

SPLITS, TABLES, GROUPINGS = 7, 10, 100
LEAST_SHARE = 0.15


def pooled(task: Task) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """All points of a task, and its groups by attribute."""
    parts = read(task)
    x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y"))
    names = [np.array([str(part.groups[code]) for code in part.codes]) for part in parts]
    groups = {task.group: np.concatenate(names)}
    for place in range(x.shape[1]):
        values, counts = np.unique(x[:, place], return_counts=True)
        same = any(len(np.unique(np.c_[x[:, place] > x[:, place].mean(), own], axis=0)) == 2 for own in groups.values())
        if len(values) == 2 and counts.min() >= LEAST_SHARE * len(x) and not same:
            groups[f"column {place}"] = np.where(x[:, place] == values[0], "low", "high")
            break
    return x, y, groups


def named(run: tm.Trajectory) -> Any:
    """The group that is worse off in the true positive rate at the end; "" where nobody is named."""
    judged = tm.leaders(run, "tpr")
    clear = [one for one in judged.differences if one.judged and one.sign[-1] != 0]
    return max(clear, key=lambda one: abs(one.gap[-1])).behind if clear else NOBODY


def trained(train: tm.GroupedData, held_out: tm.GroupedData, seed: int) -> tm.Trajectory:
    """The last evaluation of one training, as a run."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(train.x.shape[1], 64), nn.ReLU(), nn.Linear(64, 1))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.as_tensor(train.x), torch.as_tensor(train.y, dtype=torch.float32)
    waiting: list[torch.Tensor] = []
    for _ in range(2000):
        if not waiting:
            waiting = list(torch.randperm(len(x)).split(32))
        batch = waiting.pop()
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x[batch])[:, 0], y[batch]).backward()
        optimiser.step()
    with torch.no_grad():
        score = torch.sigmoid(model(torch.as_tensor(held_out.x))[:, 0]).numpy()
    groups = np.array(held_out.groups)[held_out.codes]
    return tm.predictions.run(label=held_out.y, score=score, group=groups)


def z_of(run: tm.Trajectory) -> float:
    """The largest difference of two groups' true positive rates over its standard error."""
    rate, error = (run[name].isel(time=-1).values for name in ("tpr", "tpr_se"))
    pairs = [(a, b) for a in range(len(rate)) for b in range(a)]
    return float(max(abs(rate[a] - rate[b]) / np.hypot(error[a], error[b]) for a, b in pairs))


def done(file: Path) -> set[tuple[Any, ...]]:
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else []
    return {tuple(row["key"]) for row in rows}


def add(file: Path, key: tuple[Any, ...], **row: Any) -> None:
    with file.open("a") as rows:
        rows.write(json.dumps({"key": list(key), **row}) + "\n")


def run_named(file: Path) -> None:
    known = done(file)
    for split in range(SPLITS):
        for task in JUDGE:
            x, y, groups = pooled(task)
            for attribute, members in groups.items():
                key = (task.name, attribute, split)
                if key not in known:
                    parts = tm.GroupedData(x, y, members).split(0.3, seed=100 + split)
                    view = tm.preview(*parts)
                    came = trained(*parts, seed=split)
                    said = named(view.run) if view.doubt.holds else NOBODY
                    add(file, key, said=str(said), came=str(named(came)), z=z_of(came), holds=view.doubt.holds)


def run_random(file: Path) -> None:
    known = done(file)
    for draw in range(GROUPINGS):
        for task in JUDGE[:TABLES]:
            key = (task.name, draw)
            if key not in known:
                x, y, _ = pooled(task)
                rng = np.random.default_rng(draw)
                members = np.where(rng.random(len(x)) < 0.4, "a", "b")
                view = tm.preview(*tm.GroupedData(x, y, members).split(0.3, seed=200 + draw))
                add(file, key, said=str(view.named))


def judge(first: Path, second: Path) -> dict[str, Any]:
    rows = list(map(json.loads, first.read_text().splitlines()))
    large = [row for row in rows if row["z"] > 3]
    drawn = list(map(json.loads, second.read_text().splitlines()))
    return {
        "statements": len(rows),
        "named": sum(row["said"] != NOBODY for row in rows),
        "wrong": sum(row["said"] != NOBODY and row["came"] not in (NOBODY, row["said"]) for row in rows),
        "named where the training names nobody": sum(row["said"] != NOBODY and row["came"] == NOBODY for row in rows),
        "gaps with |z| > 3": len(large),
        "of these named": sum(row["said"] != NOBODY for row in large),
        "refused": sum(not row["holds"] for row in rows),
        "random groupings": len(drawn),
        "of these named in any rate": sum(row["said"] != NOBODY for row in drawn),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, *files = sys.argv[1], *map(Path, sys.argv[2:])
    if what == "judge":
        table = judge(*files)
        (RESULTS / "preview_statements.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(table, indent=1))
    else:
        {"named": run_named, "random": run_random}[what](*files)
