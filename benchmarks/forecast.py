"""Forecasts: the price that is said before against the price that is paid, and what one thread saves for small work.

Times are CPU seconds of this process. `python benchmarks/forecast.py [price] [threads]` measures these parts alone and
keeps the other rows as they were written.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from _measure import report, written
from torch import nn

import tiltmeter as tm
from tiltmeter import threads
from tiltmeter.forecast.policy import choice_of
from tiltmeter.forecast.task import forecast_task
from tiltmeter.modules.networks import mlp

#: A price should be within this factor of what is paid.
NEAR = 1.5
STEPS = 400

Rows = dict[str, dict[str, float]]


def data(points: int = 3000, inputs: int = 64) -> tuple[tm.GroupedData, tm.GroupedData]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(points, inputs)).astype(np.float32)
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(rng.random(points) < 0.2, "rare", "common")).split(0.3)


def networks() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    convolution = nn.Sequential(
        *(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(512, 1)),
    )
    frozen = mlp(64, (512,))
    frozen[0].requires_grad_(False)
    return {"MLP 128": mlp(64, (128,)), "MLP 1024": mlp(64, (1024,)), "CNN": convolution, "linear head": frozen}


def recipe(steps: int = STEPS) -> tm.Recipe:
    return tm.Recipe(partial(torch.optim.AdamW, lr=1e-3), steps=steps, batch=64, loss=tm.Logistic())


def spent(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def price() -> Rows:
    """Every method on networks that it takes: seconds paid over seconds said."""
    rows: Rows = {}
    methods = {"rehearsals": tm.methods.Rehearsal(3), "twin": tm.methods.Twin(1 / 4), "linear": tm.methods.Linear()}
    for network, model in networks().items():
        for name, method in methods.items():
            task = forecast_task(model, *data(), recipe())
            if method.refusal(task) is not None:
                continue
            told = choice_of(task, method).seconds
            paid = spent(lambda method=method, task=task: method.forecast(task))
            ratio = paid / told
            met = 1 / NEAR <= ratio <= NEAR
            rows[f"{name} of {network}, paid over said"] = {
                "ratio": ratio,
                "bar": NEAR,
                "met": met,
                "said_seconds": told,
                "paid_seconds": paid,
            }
    return rows


def small_work() -> Rows:
    """A training of a small network with all threads against one, with the choice of the user's taken away."""
    for name in threads.CHOSEN:
        os.environ.pop(name, None)
    torch.set_num_threads(threads._cores())
    work = partial(tm.train, mlp(64, (64,)), *data(), recipe(1000))
    one = spent(work)
    limit, threads.SMALL = threads.SMALL, 0.0
    try:
        many = spent(work)
    finally:
        threads.SMALL = limit
    return {"training of a small network, all threads over one": {"ratio": many / one, "seconds": one, "all": many}}


PARTS = {"price": price, "threads": small_work}


def main(names: list[str]) -> None:
    rows = {label: row for label, row in written("forecast").items() if names}
    for name in names or PARTS:
        rows |= PARTS[name]()
    report("forecast", rows, "torch")


if __name__ == "__main__":
    main(sys.argv[1:])
