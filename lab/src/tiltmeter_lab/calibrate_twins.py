"""Calibrate the promises of forecasts: `python -m tiltmeter_lab.calibrate_twins FOLDER`.

Tasks are drawn by their number before anything is trained, and none is dropped: tables, pictures and sequences made by
random rules, so that no data set of the judging tasks is among them; nine kinds of networks; 100 to 10,000 held-out
points of a group; two to four groups. Each task has one real training. Its largest distance from the forecast within a
promise, in units of the scale of `tiltmeter.forecast.bands`, is the score of the task; the factor is the score that a
new task exceeds with a probability of one in ten. Rows are kept in the folder, so that the work can be interrupted.
With --write, the table that the library ships is written; the spread of rehearsals has its own command,
`calibrate_spread`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import tiltmeter as tm
from tiltmeter.forecast.bands import FACTORS, calibrated_scale

#: Part of every seed of these tasks, their numbers, and the share of trainings that may leave a band.
STREAM, NUMBERS, LEVEL = 41, range(2000, 2045), 0.1
KINDS = ("MLP", "batch norm", "layer norm", "dropout", "residual", "CNN", "residual CNN", "attention", "embedding")
#: Name in the table -> method, whether the batches are the run's, and the share of the training from which on.
PROMISES: dict[str, tuple[str, bool, float]] = {
    "twin without order, second half": ("twin", False, 0.5),
    "twin with order, from 10 %": ("twin", True, 0.1),
    "twin with order, end": ("twin", True, 1.0),
    "one rehearsal, second half": ("rehearsal", False, 0.5),
    "one rehearsal, end": ("rehearsal", False, 1.0),
}
#: Small networks of these kinds stay inside; twins of a transformer and of a ResNet-18 were wrong, so none is promised.
NOT_PROMISED = ("attention", "convolutions with batch normalisation")
#: The order of the real training.
ORDER = 77


class Residual(nn.Module):
    """A network with a forward of its own."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.first, self.inner, self.last = nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.first(x))
        found: Tensor = self.last(hidden + torch.relu(self.inner(hidden)))
        return found


class ResidualPicture(nn.Module):
    """Two convolutions with batch normalisation around a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.block = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width))
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.stem(x.view(-1, 1, 8, 8))
        found: Tensor = self.head(torch.relu(hidden + self.block(hidden)).mean((2, 3)))
        return found


class Reader(nn.Module):
    """Attention over eight rows of a picture, or over embedded tokens."""

    def __init__(self, width: int, tokens: bool) -> None:
        super().__init__()
        self.enter: nn.Module = nn.Embedding(64, width) if tokens else nn.Linear(8, width)
        self.attend = None if tokens else nn.MultiheadAttention(width, 4, batch_first=True)
        self.inner, self.head, self._tokens = nn.Linear(width, width), nn.Linear(width, 1), tokens

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.enter(x if self._tokens else x.view(-1, 8, 8))
        if self.attend is not None:
            hidden = hidden + self.attend(hidden, hidden, hidden, need_weights=False)[0]
        found: Tensor = self.head(torch.relu(self.inner(hidden.mean(1))))
        return found


@dataclass(frozen=True)
class Task:
    """A network and its training; `number` is the seed of everything random."""

    number: int
    kind: str
    width: int
    groups: int
    held_out: int
    optimiser: str
    lr: float
    steps: int

    def points(self) -> tuple[tm.GroupedData, tm.GroupedData]:
        """Points whose label depends on other inputs in every group, with shares and noise of their own."""
        rng = np.random.default_rng([STREAM, self.number, 1])
        shares = rng.dirichlet(np.full(self.groups, 2.0)) * 0.8 + 0.2 / self.groups
        parts = []
        for count, mixed in ((3000, shares), (self.held_out * self.groups, np.full(self.groups, 1.0 / self.groups))):
            code = rng.choice(self.groups, count, p=mixed)
            parts.append((code, rng.normal(size=(count, 64)) * (1.0 + 0.3 * code[:, None] / self.groups)))
        rules = rng.normal(size=(self.groups, 64)) * (rng.random((self.groups, 64)) < 0.2) + rng.normal(size=64) * 0.3
        bends, noise = rng.normal(size=(self.groups, 64)) * 0.3, rng.uniform(0.3, 2.0, self.groups)
        made = []
        for code, x in parts:
            score = (x * rules[code]).sum(1) + np.abs((x * bends[code]).sum(1)) + noise[code] * rng.normal(size=len(x))
            points: Any = x.astype(np.float32)
            if self.kind == "embedding":
                points = (np.argsort(-np.abs(x), axis=1)[:, :12]).astype(np.int64)
            made.append(tm.GroupedData(points, (score > 0).astype(int), [f"g{one}" for one in code]))
        return made[0], made[1]

    def model(self) -> nn.Module:
        """The network, with the initial weights of the task."""
        torch.manual_seed(self.number)
        width = self.width
        between: dict[str, nn.Module] = {
            "batch norm": nn.BatchNorm1d(width),
            "layer norm": nn.LayerNorm(width),
            "dropout": nn.Dropout(0.2),
        }
        if self.kind == "residual":
            return Residual(64, width)
        if self.kind == "CNN":
            convolution = nn.Conv2d(1, width // 4, 3, padding=1)
            tail = nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(4 * width, 1)
            return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), convolution, nn.ReLU(), *tail)
        if self.kind == "residual CNN":
            return ResidualPicture(width // 4)
        if self.kind in ("attention", "embedding"):
            return Reader(width // 2, self.kind == "embedding")
        middle = [between[self.kind]] if self.kind in between else []
        return nn.Sequential(nn.Linear(64, width), *middle, nn.ReLU(), nn.Linear(width, 1))

    def recipe(self, order: int | None) -> tm.Recipe:
        make: Any = partial(getattr(torch.optim, self.optimiser), lr=self.lr)
        return tm.Recipe(make, steps=self.steps, batch=64, order=order, loss=tm.Logistic())


def draw_task(number: int) -> Task:
    """The task of this number.

    >>> draw_task(2000).kind, draw_task(2001).kind
    ('MLP', 'batch norm')
    """
    rng = np.random.default_rng([STREAM, number, 0])
    optimiser = str(rng.choice(["AdamW", "Adam", "SGD"]))
    rate = float(np.exp(rng.uniform(*np.log((3e-4, 3e-3))))) * (30.0 if optimiser == "SGD" else 1.0)
    return Task(
        number,
        KINDS[(number - NUMBERS[0]) % len(KINDS)],
        int(rng.choice([128, 256])),
        int(rng.choice([2, 2, 3, 4])),
        int(np.exp(rng.uniform(*np.log((100, 10_000))))),
        optimiser,
        rate,
        int(rng.choice([150, 300, 600])),
    )


def scores(task: Task) -> dict[str, float]:
    """For every promise, the largest distance of training and forecast in scales; NaN where a method refuses."""
    train, held_out = task.points()
    watch = tm.Watch(when=tm.record.log_spaced(12), points=False)
    run = tm.train(task.model(), train, held_out, task.recipe(ORDER), watch=watch)
    share = 1 / 4 if task.kind in ("CNN", "residual CNN", "attention") else 1 / 8
    methods = {"twin": tm.methods.Twin(share), "rehearsal": tm.methods.Rehearsal(1)}
    made: dict[tuple[str, bool], tm.Trajectory] = {}
    found = {}
    for name, (method, known, since) in PROMISES.items():
        key = method, known
        if key not in made:
            recipe = task.recipe(ORDER if known else None)
            made[key] = tm.forecast(
                task.model(), train, held_out, recipe, method=methods[method], watch=watch, progress=False
            )
        found[name] = distance(made[key], run, since * task.steps)
    return found


def distance(ahead: tm.Trajectory, run: tm.Trajectory, first: float) -> float:
    """The largest over pairs of groups and evaluations from `first` on, in the loss and in the error."""
    largest = 0.0
    for curve in ("loss", "error"):
        values, real = (one[curve].transpose("time", "group").values for one in (ahead, run))
        errors = ahead[f"{curve}_se"].transpose("time", "group").values
        pairs = list(combinations(range(values.shape[1]), 2))
        gaps, true = (np.stack([part[:, a] - part[:, b] for a, b in pairs], 1) for part in (values, real))
        scale = calibrated_scale(gaps, np.stack([np.hypot(errors[:, a], errors[:, b]) for a, b in pairs], 1))
        inside = ahead[curve]["time"].values >= first - 1e-9
        largest = max(largest, float(np.nanmax((np.abs(gaps - true) / scale)[inside])))
    return largest


def factor(values: Sequence[float], level: float = LEVEL) -> float:
    """The value that one more task exceeds with at most this probability.

    >>> factor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    9.0
    """
    ordered = np.sort([value for value in values if np.isfinite(value)])
    place = int(np.ceil((len(ordered) + 1) * (1.0 - level)))
    return float(ordered[place - 1]) if 0 < place <= len(ordered) else float("inf")


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the library ships: a factor for every promise, and the networks that are promised nothing."""
    return {
        "origin": f"{len(rows)} tasks of stream {STREAM}, numbers {rows[0]['number']} to {rows[-1]['number']}, drawn "
        "beforehand, by python -m tiltmeter_lab.calibrate_twins",
        "level": LEVEL,
        "factors": {name: round(factor([row["scores"][name] for row in rows]), 2) for name in PROMISES},
        "spread": json.loads(FACTORS.read_text(encoding="utf-8"))["spread"],
        "not promised": list(NOT_PROMISED),
    }


def calibrate(folder: Path, numbers: Sequence[int] = NUMBERS, steps: int | None = None) -> Iterator[dict[str, Any]]:
    """The row of every task: read where it is kept, else made and kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        place = folder / f"{number}.json"
        if not place.exists():
            task = draw_task(number) if steps is None else replace(draw_task(number), steps=steps, held_out=100)
            row = {"number": number, "kind": task.kind, "scores": scores(task)}
            place.write_text(json.dumps(row), encoding="utf-8")
        yield json.loads(place.read_text(encoding="utf-8"))


def main(given: Sequence[str]) -> None:
    folder = Path(next((one for one in given if not one.startswith("--")), "calibration"))
    torch.set_num_threads(1)
    rows = []
    for row in calibrate(folder):
        rows.append(row)
        print(row["number"], row["kind"], {name: round(one, 2) for name, one in row["scores"].items()}, flush=True)
    text = json.dumps(table(rows), indent=1)
    print(text)
    if "--write" in given:
        FACTORS.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
