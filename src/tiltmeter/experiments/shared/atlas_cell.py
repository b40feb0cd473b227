"""bias_cell: one network on each of the three tasks, and all its biases at four moments of training."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn

from tiltmeter.experiments.shared.atlas_biases import BIASES, read_biases, start_of
from tiltmeter.experiments.shared.atlas_tasks import TASKS, Task, network, optimiser

#: Before training; after a twentieth of it; when the loss has fallen to the share that the task names; at the end.
MOMENTS = ("start", "early", "matched loss", "end")
BATCH, LOOK_EVERY = 32, 5


def bias_cell(settings: dict[str, Any]) -> xr.Dataset:
    """Settings: density, activation, shape (hidden layers and width), scale, optimiser, lr, steps, points, seed."""
    found = np.full((len(BIASES), len(MOMENTS)), np.nan)
    names = list(BIASES)
    for task_name, make in TASKS.items():
        task = make(settings["density"], settings["points"], settings["seed"])
        inputs = task.train.x.shape[1]
        shape = (settings["shape"][0], settings["shape"][1])
        model = network(inputs, shape, settings["activation"], settings["scale"], settings["seed"])
        states = trained_states(model, task, settings)
        start = start_of(states["start"], task.look)
        for column, moment in enumerate(MOMENTS):
            if moment in states:
                for name, value in read_biases(task_name, states[moment], start, task.look).items():
                    found[names.index(name), column] = value
    coords = {"bias": names, "moment": list(MOMENTS)}
    return xr.Dataset({"simplicity_bias": (("bias", "moment"), found)}, coords=coords)


def trained_states(model: nn.Module, task: Task, settings: dict[str, Any]) -> dict[str, nn.Module]:
    """Copies of the network at the moments that it reaches; a run that diverges has no end."""
    x = torch.as_tensor(task.train.x)
    y = torch.as_tensor(task.train.y)
    null = float((y - y.mean()).square().mean())
    rule = optimiser(settings["optimiser"], settings["lr"], list(model.parameters()))
    order = torch.Generator().manual_seed(settings["seed"])
    states = {"start": deepcopy(model)}
    for step in range(1, settings["steps"] + 1):
        chosen = torch.randint(len(x), (BATCH,), generator=order)
        loss = 0.5 * (model(x[chosen]).squeeze(-1) - y[chosen]).square().mean()
        rule.zero_grad()
        loss.backward()
        rule.step()
        if step == max(1, settings["steps"] // 20):
            states["early"] = deepcopy(model)
        if step % LOOK_EVERY == 0 and "matched loss" not in states:
            with torch.no_grad():
                now = float((model(x).squeeze(-1) - y).square().mean())
            if not np.isfinite(now):
                return states
            if now <= task.matched * null:
                states["matched loss"] = deepcopy(model)
    if all(torch.isfinite(parameter).all() for parameter in model.parameters()):
        states["end"] = model
    return states
