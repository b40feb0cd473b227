"""What a preview costs, beside a training of the network of `tiltmeter init` and a forecast by rehearsals.

CPU seconds of one process and one thread, in one run. `python benchmarks/preview_speed.py`.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from _measure import report
from torch import nn

import tiltmeter as tm

ROWS, COLUMNS, STEPS = 30_000, 100, 2000


def table(rows: int = ROWS) -> tuple[tm.GroupedData, tm.GroupedData]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    second = rng.random(rows) < 0.3
    y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * second + rng.logistic(size=rows) > 0).astype(int)
    return tm.GroupedData(x, y, np.where(second, "b", "a")).split(0.2)


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def main() -> None:
    torch.set_num_threads(1)
    train, held_out = table()
    recipe = tm.Recipe(partial(torch.optim.AdamW, lr=1e-3), steps=STEPS, batch=32, loss=tm.Logistic())

    def network() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 1))

    spent(lambda: tm.preview(train, held_out))  # what is done once is not counted
    rows: dict[str, dict[str, float]] = {}
    preview, view = spent(lambda: tm.preview(train, held_out))
    training, _ = spent(lambda: tm.train(network(), train, held_out, recipe))
    forecast, _ = spent(lambda: tm.forecast(network(), train, held_out, recipe, progress=False))
    weights, _ = spent(lambda: view.what_if(weights={"b": 2.0}))
    thresholds, _ = spent(lambda: view.what_if(thresholds={"b": 0.4}))
    stop, _ = spent(lambda: view.what_if(stop=0.5))
    causes, _ = spent(lambda: view.causes("tpr"))
    ladder, _ = spent(view.ladder)
    tracemalloc.start()
    tm.preview(train, held_out)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    million, _ = spent(lambda: tm.preview(*table(1_000_000)))
    for label, seconds in {
        "a training of init's network": training,
        "tm.forecast, by rehearsals": forecast,
        "a what-if: weights": weights,
        "a what-if: thresholds": thresholds,
        "a what-if: stop": stop,
        "causes with limits": causes,
        "the ladder": ladder,
        "a preview of a million rows, made and sampled": million,
    }.items():
        rows[f"{label} / a preview"] = {"seconds": seconds, "preview": preview, "ratio": seconds / preview}
    rows["peak memory of a preview, in MB"] = {"ratio": most / 2**20}
    report("preview_speed", rows)


if __name__ == "__main__":
    main()
