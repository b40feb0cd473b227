"""Training with a probe against the same training without, and the probe's own time against bare forward passes.

10,000 steps of a small convolutional network, batch 64, 2 x 1,000 points to look at. Times are those of the process on
one thread, in short blocks taken in turn, so that what else the machine does falls on all alike.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.modules.forward import bare

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report

STEPS, BATCH, CHUNK, BLOCK = 10_000, 64, 256, 100


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 9, 10),
    )


def data(points: int, seed: int) -> tm.GroupedData:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(points, 1, 14, 14)).astype(np.float32)
    return tm.GroupedData(x, rng.integers(0, 10, points), np.arange(points) % 2)


class Run:
    """One training that can be advanced by blocks of steps, its time and that of its probe added up."""

    def __init__(self, train: tm.GroupedData, probe: tm.Probe | None, model: nn.Module) -> None:
        self.model, self.probe = model, probe
        self.x, self.y = train.tensors()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.step, self.seconds, self.looking = 0, 0.0, 0.0

    def advance(self) -> None:
        start = time.process_time()
        for _ in range(BLOCK):
            if self.probe is not None:
                before = time.process_time()
                self.probe(self.step)
                self.looking += time.process_time() - before
            first = self.step * BATCH % (len(self.x) - BATCH)
            self.optimizer.zero_grad()
            x, y = self.x[first : first + BATCH], self.y[first : first + BATCH]
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
            self.step += 1
        self.seconds += time.process_time() - start


def bare_passes(model: nn.Module, x: torch.Tensor, evaluations: int) -> float:
    """The forward passes that so many evaluations cannot do without."""
    start = time.process_time()
    model.eval()
    with torch.no_grad():
        for _ in range(evaluations):
            for i in range(0, len(x), CHUNK):
                bare(model)(x[i : i + CHUNK])
    model.train()
    return time.process_time() - start


def evaluations_alone(sizes: tuple[int, ...], points: bool) -> float:
    """Time of the evaluations of a probe that writes to disk over that of the bare forward passes, taken in turn."""
    torch.manual_seed(0)
    layers = [part for n, m in pairwise(sizes) for part in (nn.Linear(n, m), nn.ReLU())][:-1]
    model = nn.Sequential(*layers)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, sizes[0])).astype(np.float32)
    held_out = tm.GroupedData(x, rng.integers(0, 2, 2000), np.arange(2000) % 2)
    tensor = held_out.tensors()[0]
    looking, passes = 0.0, 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        tm.Probe(model, held_out, watch=tm.Watch(points=points), to=f"{folder}/run", chunk=CHUNK, budget=None) as probe,
    ):
        for number, step in enumerate(tm.record.log_spaced(20).steps(100_000)):
            start = time.process_time()
            probe.evaluate(step)
            if number >= 10:  # the first evaluations write labels and warm up
                looking += time.process_time() - start
                passes += bare_passes(model, tensor, 1)
            else:
                bare_passes(model, tensor, 1)
    return looking / passes


def main() -> None:
    torch.set_num_threads(1)
    train, held_out = data(8000, 0), data(2000, 1)
    folder = tempfile.TemporaryDirectory()
    runs = {}
    for name, when in (("without", None), ("20", tm.record.log_spaced(20)), ("5", tm.record.log_spaced(5))):
        model = network()
        probe = (
            None
            if when is None
            else tm.Probe(
                model, held_out, watch=tm.Watch(when=when), to=f"{folder.name}/{name}", chunk=CHUNK, budget=None
            )
        )
        runs[name] = Run(train, probe, model)
    passes, shadow = 0.0, network()
    chosen = tm.record.log_spaced(20).steps(STEPS)
    for block in range(STEPS // BLOCK):
        for run in runs.values():
            run.advance()
        evaluations = len([s for s in chosen if block * BLOCK <= s < (block + 1) * BLOCK])
        passes += bare_passes(shadow, held_out.tensors()[0], evaluations)
    ends = [list(run.model.parameters()) for run in runs.values()]
    assert all(torch.equal(p, q) and torch.equal(p, r) for p, q, r in zip(*ends, strict=True))
    seconds = {name: run.seconds for name, run in runs.items()}
    rows = {}
    for label, ratio, bar in (
        ("training with log_spaced(20) over without", seconds["20"] / seconds["without"], 1.15),
        ("training with log_spaced(5) over without", seconds["5"] / seconds["without"], 1.05),
        ("time of the probe over its bare forward passes", runs["20"].looking / passes, 1.3),
    ):
        rows[label] = {"ratio": ratio, "bar": bar, "met": ratio <= bar}
    for sizes in ((784, 256, 1), (784, 1024, 1)):
        name = "-".join(map(str, sizes))
        ratio = evaluations_alone(sizes, points=True)
        rows[f"an evaluation of {name} with every point kept, over its bare forward pass"] = {
            "ratio": ratio,
            "bar": 1.3,
            "met": ratio <= 1.3,
        }
        rows[f"an evaluation of {name} without, over its bare forward pass"] = {
            "ratio": evaluations_alone(sizes, points=False)
        }
    rows["bare forward passes of log_spaced(20), added to training"] = {"ratio": 1.0 + passes / seconds["without"]}
    rows["training without, seconds"] = {"ratio": seconds["without"]}
    report("probe", rows, "torch")


if __name__ == "__main__":
    main()
