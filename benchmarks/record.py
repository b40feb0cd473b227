"""Loading a run of 100,000 evaluations, and recording one evaluation, against the least that any reader of JSON lines
does.

The run has two curves, one with two groups. `load` is compared with decoding every line by itself, which is what the
reader of format 1 did before anything else: there the whole took 2.0 to 2.4 times as long as the decoding. The bar is
0.6 s where it took 1.7, which is 0.71 of the decoding at the least. The last row is one evaluation of a network of two
small layers and 200 points, without records of points. Times are those of the process, taken in turn, the shortest of
several."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report

EVALUATIONS, REPEATS = 100_000, 5


def seconds(*works: Callable[[], Any]) -> list[float]:
    """The shortest time of the process for each, measured in turn."""
    found = [float("inf")] * len(works)
    for _ in range(REPEATS):
        for place, work in enumerate(works):
            start = time.process_time()
            work()
            found[place] = min(found[place], time.process_time() - start)
    return found


def write(path: Path, evaluations: int) -> None:
    loss = xr.DataArray([0.5, 0.4], dims="group", coords={"group": ["a", "b"]})
    with tm.record.Recorder(path, clock="step", origin=tm.record.Origin("benchmark")) as recorder:
        for step in range(evaluations):
            values = np.array([0.5 / (1 + step), step / 7])
            recorder.append(step, {"loss": loss.copy(data=values), "norm": step / 3})


def decode(path: Path) -> None:
    with (path / "curves.jsonl").open("rb") as file:
        for line in file:
            json.loads(line)


def keep(path: Path, points: int, evaluations: int) -> Callable[[], None]:
    losses = np.random.default_rng(0).normal(size=points).astype("float32")
    arrays = {"loss": xr.DataArray(losses, dims="point"), "decision": xr.DataArray(losses > 0, dims="point")}

    def work() -> None:
        with tm.record.Recorder(
            path / os.urandom(8).hex(), clock="step", origin=tm.record.Origin("benchmark")
        ) as recorder:
            for step in range(evaluations):
                recorder.append(step, {"loss": 0.5}, points=arrays)

    return work


def tiny_held_out(folder: Path) -> float:
    """Milliseconds of an evaluation that is nearly all bookkeeping; NaN without PyTorch."""
    try:
        import torch
    except ImportError:
        return float("nan")
    torch.set_num_threads(1)
    x = np.random.default_rng(0).normal(size=(200, 10)).astype("float32")
    held_out = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(x[:, 1] > 0, "a", "b"))
    model = torch.nn.Sequential(torch.nn.Linear(10, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    found = float("inf")
    with tm.Probe(model, held_out, tm.Watch(points=False), folder / "tiny", budget=None) as probe:
        for block in range(61):  # noise only adds time: the shortest of many is the evaluation itself
            start = time.process_time()
            for step in range(40 * block, 40 * (block + 1)):
                probe.evaluate(step)
            if block:  # the first evaluations write labels and warm up
                found = min(found, (time.process_time() - start) / 40)
    return 1e3 * found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        held_out = tiny_held_out(Path(folder))  # first, in a process that holds nothing else, as in a training
        run = Path(folder) / "run"
        write(run, EVALUATIONS)
        load, decoding, check = seconds(lambda: tm.load(run), lambda: decode(run), lambda: tm.record.check(run))
        small, large = seconds(keep(Path(folder), 10, 100), keep(Path(folder), 2000, 100))
        rows: dict[str, dict[str, Any]] = {
            "load of 100,000 evaluations over decoding every line": {"ratio": load / decoding, "bar": 0.71},
            "check of 100,000 evaluations over decoding every line": {"ratio": check / decoding},
            "an evaluation with 2,000 points kept over one with 10": {"ratio": large / small},
            "load of 100,000 evaluations, seconds": {"ratio": load},
            "an evaluation of a tiny network, milliseconds": {"ratio": held_out, "bar": 1.0},
        }
    for row in rows.values():
        if "bar" in row:
            row["met"] = row["ratio"] <= row["bar"]
    report("record", rows)


if __name__ == "__main__":
    main()
