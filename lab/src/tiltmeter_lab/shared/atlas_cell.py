"""bias_cell: networks trained on each of the three tasks, and all their biases at four moments of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.shared.atlas_biases import BIASES, read_biases, start_of
from tiltmeter_lab.shared.atlas_tasks import TASKS, Task
from tiltmeter_lab.shared.stacked_training import Snapshots, Trainer, draws, gathered, networks

#: Before training; after a twentieth of it; when the loss has fallen to the share that the task names; at the end.
MOMENTS = ("start", "early", "matched loss", "end")
#: The training loss is looked at after so many steps.
LOOK_EVERY = 10


def bias_cell(settings: dict[str, Any]) -> xr.Dataset:
    """Settings: data, activation, shape (hidden layers, width), scale, optimiser, lr, steps, points, seeds."""
    seeds = range(settings["seeds"])
    found = np.full((len(BIASES), len(MOMENTS), len(seeds)), np.nan)
    names = list(BIASES)
    for task_name, make in TASKS.items():
        made = [make(settings["data"], settings["points"], seed) for seed in seeds]
        tasks = [task for task in made if task is not None]
        if not tasks:
            continue
        states, reached = trained_states(tasks, settings)
        for seed, task in zip(seeds, tasks, strict=True):
            start = start_of(task_name, states["start"].model(seed), task)
            for column, moment in enumerate(MOMENTS):
                if reached[moment][seed]:
                    for name, value in read_biases(task_name, states[moment].model(seed), start, task).items():
                        found[names.index(name), column, seed] = value
    coords = {"bias": names, "moment": list(MOMENTS), "seed": list(seeds)}
    return xr.Dataset({"simplicity_bias": (("bias", "moment", "seed"), found)}, coords=coords)


def trained_states(
    tasks: Sequence[Task], settings: dict[str, Any]
) -> tuple[dict[str, tm.training.Stacked], dict[str, np.ndarray]]:
    """Copies of the networks at all moments, and which network reached which; one that diverges has no end."""
    x, y = (torch.stack([torch.as_tensor(part) for part in parts]) for parts in
            ([task.train.x for task in tasks], [task.train.y for task in tasks]))  # fmt: skip
    count, points, inputs = x.shape
    steps, seeds = settings["steps"], range(count)
    shape = (settings["shape"][0], settings["shape"][1])
    stacked = networks(inputs, shape, settings["activation"], settings["scale"], seeds)
    trainer = Trainer(stacked, settings["optimiser"], settings["lr"])
    chosen = torch.stack([draws(seed, steps, torch.full((steps,), points)) for seed in seeds])
    wanted = tasks[0].matched * (y - y.mean(1, keepdim=True)).square().mean(1)
    kept = {moment: Snapshots(stacked) for moment in MOMENTS}
    reached = {moment: torch.zeros(count, dtype=torch.bool) for moment in MOMENTS}

    def take(moment: str, which: torch.Tensor) -> None:
        kept[moment].take(which)
        reached[moment] |= which

    take("start", torch.ones(count, dtype=torch.bool))
    for step in range(1, steps + 1):
        places = chosen[:, step - 1]
        trainer.step(gathered(x, places), gathered(y, places))
        if step == max(1, steps // 20):
            take("early", _finite(stacked))
        if step % LOOK_EVERY == 0 and not reached["matched loss"].all():
            with torch.no_grad():
                now = (stacked(x).squeeze(-1) - y).square().mean(1)
            take("matched loss", (now <= wanted) & ~reached["matched loss"])
    take("end", _finite(stacked))
    return {name: one.kept for name, one in kept.items()}, {name: one.numpy() for name, one in reached.items()}


def _finite(stacked: tm.training.Stacked) -> torch.Tensor:
    """Which networks have only finite weights."""
    every = [torch.isfinite(value).flatten(1).all(1) for value in stacked.parameters.values()]
    return torch.stack(every).all(0)
