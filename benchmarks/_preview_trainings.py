"""Trainings that previews are compared with: two networks, two seeds, on every task; rows as JSON lines, resumable.

`python benchmarks/_preview_trainings.py calibrate rows.jsonl` trains what the file lacks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _preview_tasks import CALIBRATE, JUDGE, Task, read
from torch import nn

import tiltmeter as tm

#: The network of `tiltmeter init`, and a deeper one.
NETWORKS = ("64", "128-64 LayerNorm GELU")
STEPS, BATCH, LR, SEEDS = 2000, 32, 1e-3, (0, 1)
#: Evaluations, log-spaced; the pilot is the state after 5 % of the training.
PILOT = STEPS // 20
EVALUATIONS = sorted({*np.unique(np.geomspace(1, STEPS, 30).astype(int)).tolist(), PILOT, 0, STEPS})


def network(name: str, inputs: int) -> nn.Module:
    """A fresh network of one of the two kinds."""
    if name == NETWORKS[0]:
        return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 1))
    parts = (nn.Linear(inputs, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 64), nn.LayerNorm(64), nn.GELU())
    return nn.Sequential(*parts, nn.Linear(64, 1))


def rates(held_out: tm.GroupedData, positive: np.ndarray, score: np.ndarray) -> dict[str, Any]:
    """Every group's rates at one evaluation: selection, TPR, FPR, error, in the order of groups."""
    found: dict[str, list[float | None]] = {"positive_rate": [], "tpr": [], "fpr": [], "error": []}
    decided = score > 0
    for code in range(len(held_out.groups)):
        own = held_out.codes == code
        parts = {"positive_rate": own, "tpr": own & positive, "fpr": own & ~positive}
        for name, where in parts.items():
            found[name].append(float(decided[where].mean()) if where.any() else None)
        found["error"].append(float((decided != positive)[own].mean()))
    return found


def counts(held_out: tm.GroupedData, positive: np.ndarray) -> dict[str, list[int]]:
    """Held-out points in the denominator of every rate, by group."""
    total = np.bincount(held_out.codes, minlength=len(held_out.groups))
    yes = np.bincount(held_out.codes, positive, len(held_out.groups)).astype(int)
    return {
        "positive_rate": total.tolist(),
        "tpr": yes.tolist(),
        "fpr": (total - yes).tolist(),
        "error": total.tolist(),
    }


def trained(task: Task, name: str, seed: int) -> dict[str, Any]:
    """One training of one network, with its rates at every evaluation."""
    train, held_out = read(task)
    x, y = torch.as_tensor(train.x), torch.as_tensor(train.y, dtype=torch.float32)
    seen, positive = torch.as_tensor(held_out.x), held_out.y == 1
    torch.manual_seed(1000 + seed)
    model = network(name, x.shape[1])
    optimiser = torch.optim.AdamW(model.parameters(), lr=LR)
    order = torch.Generator().manual_seed(seed)
    waiting: list[torch.Tensor] = []
    path: list[dict[str, Any]] = []
    for step in range(STEPS + 1):
        if step in EVALUATIONS:
            with torch.no_grad():
                score = model(seen)[:, 0].double().numpy()
            loss = float(np.logaddexp(0.0, -np.where(positive, score, -score)).mean())
            path.append({"step": step, "loss": loss, **rates(held_out, positive, score)})
        if not waiting:
            waiting = list(torch.randperm(len(x), generator=order).split(BATCH))
        batch = waiting.pop()
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x[batch])[:, 0], y[batch]).backward()
        optimiser.step()
    groups = [str(group) for group in held_out.groups]
    return {
        "task": task.name,
        "network": name,
        "seed": seed,
        "groups": groups,
        "counts": counts(held_out, positive),
        "points": len(train),
        "path": path,
    }


def main(which: str, file: Path) -> None:
    """Train every task that the file lacks."""
    torch.set_num_threads(1)
    done = set()
    if file.exists():
        done = {(r["task"], r["network"], r["seed"]) for r in map(json.loads, file.read_text().splitlines())}
    for task in {"calibrate": CALIBRATE, "judge": JUDGE}[which]:
        for name in NETWORKS:
            for seed in SEEDS:
                if (task.name, name, seed) not in done:
                    with file.open("a") as rows:
                        rows.write(json.dumps(trained(task, name, seed)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
