"""What a probe with its defaults adds to the CPU time of ten trainings, short and long, and what one evaluation costs.

    python benchmarks/probe_budget.py            # all kinds; five rounds of long ones, twenty of short ones
    python benchmarks/probe_budget.py mlp gru    # some

Plain loop, watched loop and a loop with the first and the last evaluation only take turns in one process, so that a
busy machine slows all; the ratios are those of their shortest rounds. A watched loop may cost 1.12 times the plain one;
where the first and the last evaluation alone exceed a tenth of the training, their cost and two percent more.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

import tiltmeter as tm

ROUNDS = 5


class Sequence(nn.Module):
    """A small transformer or GRU over tokens."""

    def __init__(self, recurrent: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.1)
        self.body = nn.GRU(32, 32, batch_first=True) if recurrent else nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.body(self.embed(x))
        return self.head((found[0] if isinstance(found, tuple) else found).mean(1))


def mlp(width: int, inputs: int = 10) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1936, 1)
    )


@dataclass(frozen=True)
class Kind:
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    held_out: int
    batch: int
    steps: int
    optimiser: Callable[..., torch.optim.Optimizer] = torch.optim.SGD


KINDS = {
    "logistic": Kind(lambda: nn.Linear(10, 1), (10,), 500, 32, 4000),
    "mlp-short": Kind(lambda: mlp(32), (10,), 2000, 64, 300),
    "mlp": Kind(lambda: mlp(32), (10,), 2000, 16, 6000),
    "mlp-adam": Kind(lambda: mlp(64), (10,), 2000, 256, 4000, torch.optim.Adam),
    "mlp-wide": Kind(lambda: mlp(512), (10,), 2000, 64, 1000),
    "many-points": Kind(lambda: mlp(32), (10,), 50_000, 64, 4000),
    "cnn-short": Kind(cnn, (1, 28, 28), 1000, 32, 60),
    "cnn": Kind(cnn, (1, 28, 28), 1000, 32, 600),
    "transformer-short": Kind(lambda: Sequence(False), (16,), 1000, 32, 80, torch.optim.AdamW),
    "transformer": Kind(lambda: Sequence(False), (16,), 1000, 32, 800, torch.optim.AdamW),
    "gru": Kind(lambda: Sequence(True), (16,), 1000, 32, 600, torch.optim.Adam),
}


def points(kind: Kind, count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    tokens = len(kind.shape) == 1 and kind.shape[0] == 16
    x = random.integers(50, size=(count, 16)) if tokens else random.normal(size=(count, *kind.shape)).astype("float32")
    return x, (x.reshape(count, -1)[:, 0] > (25 if tokens else 0)).astype(int)


def loop(
    kind: Kind, x: torch.Tensor, y: torch.Tensor, probe: Callable[[nn.Module], tm.Probe] | None
) -> tuple[float, tm.Probe | None]:
    """CPU seconds of one training, with what a probe does when it is made and closed."""
    torch.manual_seed(0)
    model = kind.make()
    optimiser = kind.optimiser(model.parameters(), lr=1e-3)
    start = time.process_time()
    watched = None if probe is None else probe(model)
    for step in range(kind.steps):
        if watched is not None:
            watched(step)
        batch = torch.randint(0, len(x), (kind.batch,))
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x[batch])[:, 0], y[batch]).backward()
        optimiser.step()
    if watched is not None:
        watched.close()
    return time.process_time() - start, watched


def one_evaluation(kind: Kind, held_out: tm.GroupedData) -> float:
    """Seconds of CPU of one evaluation; as the median of twenty."""
    model = kind.make()
    probe = tm.Probe(model, held_out, tm.Watch(when=tm.record.every(1)), budget=None)
    probe(0)
    found = []
    for step in range(1, 21):
        start = time.process_time()
        probe(step)
        found.append(time.process_time() - start)
    return float(np.median(found))


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    heads = ("plain", "watched", "ratio", "taken", "left out", "first+last", "one, ms")
    print(" " * 18, *(f"{head:>{max(8, len(head))}}" for head in heads))
    for name in names or KINDS:
        kind = KINDS[name]
        xs, ys = points(kind, 2000)
        x, y = torch.as_tensor(xs), torch.as_tensor(ys).float()
        held = points(kind, kind.held_out)
        held_out = tm.GroupedData(*held, np.where(np.arange(kind.held_out) % 3 == 0, "a", "b"))
        plain, watched, least = [], [], []
        for _ in range(ROUNDS if kind.steps > 300 else 4 * ROUNDS):
            plain.append(loop(kind, x, y, None)[0])
            seconds, probe = loop(kind, x, y, partial(tm.Probe, held_out=held_out))
            watched.append(seconds)
            ends = tm.Watch(when=tm.record.at([0]))
            least.append(loop(kind, x, y, partial(tm.Probe, held_out=held_out, watch=ends, budget=None))[0])
        assert probe is not None
        ratio, one = min(watched) / min(plain), one_evaluation(kind, held_out)
        fewest = min(least) / min(plain)
        verdict = "holds" if ratio <= max(1.12, fewest + 0.02) else "MISSED"
        taken, spared = probe.cost.evaluations, probe._recorder.left_out
        print(
            f"{name:<18} {min(plain):>7.2f}s {min(watched):>7.2f}s {ratio:>6.3f} {taken:>6} {spared:>8} "
            f"{fewest:>10.3f} {1e3 * one:>8.2f}  {verdict}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
