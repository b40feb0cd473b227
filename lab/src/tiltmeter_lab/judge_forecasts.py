"""Judge forecasts on new tasks: `python -m tiltmeter_lab.judge_forecasts FOLDER [PART ...]`.

The parts are tasks, again, fresh, long, tight, advice, advice again, advice alone, advice dear, chance, chance again
and report; if none is named, tasks, advice, chance and report. With `keep` all rows are written to
docs/lab/judged-forecasts.json, which `report` reads as well as a folder.

Everything is drawn by its number before anything is trained, and nothing is dropped. Rows are kept in the folder, one
file each, so that the work can be interrupted.

- *tasks*: 45 real tasks, nine kinds of networks five times each. Each is trained twice from the same initial weights
  with two batch orders, and forecast without an order at the default budget and at a tenth of the training.
- *advice*: the first twelve tasks. Interventions are ranked, then all are trained with another batch order.
- *chance*: 200 draws of random groups over four data sets: a leader, an intervention or a cause is a false alarm. An
  intervention that is said to help all groups alike is none: it may well do so.

The data sets are not those of `calibrate_twins`, whose tasks are made by random rules. TILTMETER_DATA is the folder of
the data.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.calibrate_twins import KINDS
from tiltmeter_lab.judged_forecasts import CURVES, FAMILIES, KEPT, kept_in, report, write_rows
from tiltmeter_lab.shared.picture_tasks import random_task

#: Part of every seed, and the numbers of the tasks and of the draws of random groups.
STREAM, NUMBERS, ADVISED, DRAWS = 97, range(5000, 5045), range(5000, 5012), range(200)
#: Fresh draws of random groups, after advice told what helps all groups alike from what helps the worst, and fresh
#: tasks, after it counted how much trainings fluctuate (number 5600 had shown that it must).
DRAWS_AGAIN, ADVISED_AGAIN = range(200, 400), range(5620, 5632)
#: Fresh tasks, after advice evaluated seldom before the end; both sides choose their evaluations themselves.
ADVISED_ALONE = range(5640, 5652)
#: The next six convolutional networks, whose trainings are dear, after narrow copies that promise nothing no longer
#: choose (number 5645 had shown that they must not).
ADVISED_DEAR = (5662, 5663, 5671, 5672, 5680, 5681)
#: Fresh tasks by the same rule, for what was changed after the first ones had been seen.
AGAIN = range(5100, 5127)
#: Fresh tasks again, after the spread was calibrated and narrow copies were timed anew; short ones, and six long ones.
FRESH, LONG_AGAIN = range(5300, 5318), range(5405, 5411)
#: Fresh tasks for budgets of a tenth of the training, after the least budget became two seconds.
TIGHT, LEAST = range(5500, 5518), 2.0
#: The batch orders of the two trainings of a task, and of the trainings that judge advice.
ORDERS, ADVICE_ORDER = (101, 102), 103
#: A pilot sees this share of the training.
PILOT = 0.05
#: Columns and levels of a table that is read as tokens.
TOKENS, LEVELS = 16, 4


class Residual(nn.Module):
    """A dense network with a shortcut around its second layer."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.enter, self.inner, self.leave = nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.enter(x))
        scores: Tensor = self.leave(hidden + torch.relu(self.inner(hidden)))
        return scores


class ResidualPicture(nn.Module):
    """Convolutions with batch normalisation and a shortcut, on pictures given as rows of pixels."""

    def __init__(self, side: int, width: int) -> None:
        super().__init__()
        self.side = side
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU())
        self.block = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1),
            nn.BatchNorm2d(width),
        )
        self.leave = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.stem(x.view(-1, 1, self.side, self.side))
        scores: Tensor = self.leave(torch.relu(hidden + self.block(hidden)).mean((2, 3)))
        return scores


class Attention(nn.Module):
    """One layer of a transformer over rows of a picture or parts of a table."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.parts = next(parts for parts in range(28, 0, -1) if inputs % parts == 0)
        self.enter = nn.Linear(inputs // self.parts, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.leave = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.layer(self.enter(x.view(len(x), self.parts, -1)))
        scores: Tensor = self.leave(hidden.mean(1))
        return scores


class Embedded(nn.Module):
    """Tokens, embedded, averaged and read by a dense layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter, self.inner = nn.Embedding(TOKENS * LEVELS, width), nn.Linear(width, width)
        self.leave = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.leave(torch.relu(self.inner(self.enter(x).mean(1))))
        return scores


@cache
def faces() -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """CelebA's attributes (no pictures) of 30,000 people of the training part and 6,000 of the test part."""
    parts = [lab.data.celeba("train").attributes[:30000], lab.data.celeba("test").attributes[:6000]]
    names = lab.data.celeba("test").names
    return np.asarray(parts[0], dtype=np.float32), np.asarray(parts[1], dtype=np.float32), names


def face_task(rng: np.random.Generator) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Predict one attribute from the others; the groups are by another."""
    *parts, names = faces()
    target = names.index(str(rng.choice(["Attractive", "Smiling", "Blond_Hair", "High_Cheekbones", "Wavy_Hair"])))
    by = names.index(str(rng.choice(["Male", "Young", "Eyeglasses"])))
    rest = [place for place in range(len(names)) if place not in (target, by)]
    made = []
    for part in parts:
        group = np.where(part[:, by] > 0, names[by], f"not {names[by]}").tolist()
        made.append(tm.GroupedData(part[:, rest], (part[:, target] > 0).astype(int), group))
    return made[0], made[1]


@cache
def picture_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of one channel, 28 x 28, and their classes."""
    images = getattr(tm.data, name)("train")
    x = np.asarray(images.x)
    if x.ndim == 4:  # colours, 32 x 32
        axis = 1 if x.shape[1] == 3 else 3
        x = x.mean(axis)[:, 2:30, 2:30]
    return x[:20000].astype(np.float32), np.asarray(images.y)[:20000]


def picture_task(rng: np.random.Generator) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Two groups of four classes each."""
    name = str(rng.choice(["mnist", "fashion_mnist", "cifar10"]))
    rho, held_out = float(rng.uniform(0.6, 0.9)), int(rng.choice([300, 700]))
    train, away = random_task(*picture_set(name), rng, rho, held_out)
    return _single(train), _single(away)


def table_task(rng: np.random.Generator) -> tuple[tm.GroupedData, tm.GroupedData]:
    """A table about people."""
    name = str(rng.choice(["adult by sex", "adult by race", "compas", "faces", "faces"]))
    if name == "faces":
        return face_task(rng)
    if name == "compas":
        return tm.data.compas(("African-American", "Caucasian", "Hispanic"), seed=int(rng.integers(1000)))
    train, away = tm.data.adult(name.rpartition(" ")[2])
    return train, away.take(rng.permutation(len(away))[:6000])


def _single(data: tm.GroupedData) -> tm.GroupedData:
    return data.with_points(np.asarray(data.x, dtype=np.float32))


def as_tokens(parts: Sequence[tm.GroupedData], rng: np.random.Generator) -> list[tm.GroupedData]:
    """Some columns as tokens, one for each column and quarter of its values in the training data."""
    first = np.asarray(parts[0].x, dtype=np.float64)
    kept = rng.permutation(np.flatnonzero(first.std(0) > 0))[:TOKENS]
    edges = np.quantile(first[:, kept], [0.25, 0.5, 0.75], axis=0)
    made = []
    for part in parts:
        level = (np.asarray(part.x)[None][:, :, kept] > edges[:, None]).sum(0)
        made.append(part.with_points((level + LEVELS * np.arange(len(kept))).astype(np.int64)))
    return made


@dataclass(frozen=True)
class Task:
    """A network and its training on real data; `number` is the seed of everything random."""

    number: int
    kind: str
    long: bool
    width: int
    optimiser: str
    lr: float
    steps: int

    def points(self) -> tuple[tm.GroupedData, tm.GroupedData]:
        rng = np.random.default_rng([STREAM, self.number, 1])
        pictures = self.kind in FAMILIES["pictures"] or (self.kind != "embedding" and rng.random() < 0.3)
        parts = picture_task(rng) if pictures else table_task(rng)
        if self.kind == "embedding":
            train, held_out = as_tokens(parts, rng)
            return train, held_out
        return _single(parts[0]), _single(parts[1])

    def model(self, inputs: int) -> nn.Module:
        """The network, with the initial weights of the task."""
        torch.manual_seed(self.number)
        width = self.width
        if self.kind == "residual":
            return Residual(inputs, width)
        if self.kind == "residual CNN":
            return ResidualPicture(28, width // 16)
        if self.kind == "attention":
            return Attention(inputs, width // 8)
        if self.kind == "embedding":
            return Embedded(width)
        if self.kind == "CNN":
            few = width // 16
            return nn.Sequential(
                nn.Unflatten(1, (1, 28, 28)),
                *(nn.Conv2d(1, few, 3, 2, 1), nn.ReLU(), nn.Conv2d(few, 2 * few, 3, 2, 1), nn.ReLU()),
                *(nn.Flatten(), nn.Linear(2 * few * 49, 1)),
            )
        between: dict[str, Callable[[], nn.Module]] = {
            "batch norm": partial(nn.BatchNorm1d, width),
            "layer norm": partial(nn.LayerNorm, width),
            "dropout": partial(nn.Dropout, 0.2),
        }
        layers: list[nn.Module] = []
        for size in (inputs, width):
            layers += [nn.Linear(size, width), *([between[self.kind]()] if self.kind in between else []), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(width, 1))

    def recipe(self, order: int | None) -> tm.Recipe:
        make: Any = partial(getattr(torch.optim, self.optimiser), lr=self.lr)
        return tm.Recipe(make, steps=self.steps, batch=64, order=order, loss=tm.Logistic())


#: Width and steps of long trainings: meant to take two minutes of one core or more.
LONG = {
    "MLP": (1024, 13000),
    "dropout": (1024, 14000),
    "residual": (1024, 14000),
    "batch norm": (1024, 12500),
    "layer norm": (1024, 12500),
    "CNN": (512, 18000),
    "residual CNN": (512, 6000),
    "attention": (512, 17500),
    "embedding": (1024, 15000),
}


def draw_task(number: int) -> Task:
    """The task of this number.

    >>> draw_task(5000).kind, draw_task(5041).long
    ('MLP', True)
    """
    rng = np.random.default_rng([STREAM, number, 0])
    kind, turn = KINDS[(number - NUMBERS[0]) % len(KINDS)], (number - NUMBERS[0]) // len(KINDS)
    optimiser = str(rng.choice(["AdamW", "Adam", "SGD"]))
    rate = float(np.exp(rng.uniform(*np.log((3e-4, 3e-3))))) * (30.0 if optimiser == "SGD" else 1.0)
    long = turn == 4 or (turn == 3 and kind in FAMILIES["pictures"]) or number in LONG_AGAIN
    width, steps = int(rng.choice([128, 256, 512])), int(rng.choice([300, 600, 1000]))
    if long:
        width, steps = LONG[kind]
    return Task(number, kind, long, width, optimiser, rate, steps)


def watch() -> tm.Watch:
    return tm.Watch(when=tm.record.log_spaced(8))


def seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work returns, and the CPU seconds of this process."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def judge_task(number: int) -> dict[str, Any]:
    """Two trainings and two forecasts of one task, and how they compare."""
    task = draw_task(number)
    train, held_out = task.points()
    inputs = int(np.asarray(train.x).shape[1])
    runs, costs = [], []
    for order in ORDERS:
        run, cost = seconds(partial(tm.train, task.model(inputs), train, held_out, task.recipe(order), watch=watch()))
        runs.append(run)
        costs.append(cost)
    row: dict[str, Any] = {"number": number, "kind": task.kind, "long": task.long, "steps": task.steps}
    row |= {"groups": {str(group): size for group, size in held_out.sizes.items()}, "training": costs, "forecasts": {}}
    for name, budget in (("default", None), ("tight", max(LEAST, costs[0] / 10))):
        row["forecasts"][name] = judge_forecast(task, inputs, train, held_out, budget, runs)
    row["second training"] = agreement_at_end(runs[1], runs[0], 1.0)
    row["pilot"] = agreement_at_end(runs[1], runs[0], PILOT)
    return row


def judge_forecast(
    task: Task, inputs: int, train: tm.GroupedData, held_out: tm.GroupedData, budget: float | None, runs: Sequence[Any]
) -> dict[str, Any]:
    """One forecast beside the trainings: price, coverage of its promise, leaders at the end and over training."""
    choices: list[Any] = []
    ahead, cost = seconds(
        partial(
            tm.forecast, task.model(inputs), train, held_out, task.recipe(None), budget, watch=watch(),
            progress=choices.append,
        )
    )  # fmt: skip
    promise = ahead.origin.settings["promise"]
    row: dict[str, Any] = {"method": repr(choices[0].method), "budget": budget, "said": choices[0].seconds}
    row |= {"cost": cost, "promise": None if promise is None else promise["sentence"]}
    row["runs"] = [beside(ahead, run) for run in runs]
    return row


def beside(ahead: tm.Trajectory, run: tm.Trajectory) -> dict[str, Any]:
    """Coverage of the promised bands and the leaders that a forecast states, for one training."""
    stated, real = tm.leaders(ahead, *CURVES), tm.leaders(run, *CURVES)
    row: dict[str, Any] = {}
    for curve in CURVES:
        counts: dict[str, dict[str, int]] = {"end": defaultdict(int), "evaluations": defaultdict(int)}
        for truth in real.differences_in(curve):
            told = next((one for one in stated.differences_in(curve) if one.pair == truth.pair), None)
            # A pilot ends before the training does: what it does not reach, it does not state.
            names = {} if told is None else dict(zip(told.times.tolist(), told.leader, strict=True))
            for when, leader in zip(truth.times.tolist(), truth.leader, strict=True):
                verdict = _verdict(names.get(when, ""), leader)
                counts["evaluations"][verdict] += 1
                if when == truth.times[-1]:
                    counts["end"][verdict] += 1
        row[curve] = {"inside": inside(ahead, run, curve), **{name: dict(one) for name, one in counts.items()}}
    return row


def _verdict(stated: Any, leader: Any) -> str:
    """Right or wrong where both are named; what is missing otherwise."""
    if leader == "":
        return "nobody leads" if stated == "" else "stated, not clear in training"
    if stated == "":
        return "not stated"
    return "right" if stated == leader else "wrong"


def inside(ahead: tm.Trajectory, run: tm.Trajectory, curve: str) -> bool | None:
    """Whether all gaps of a training lie within the promised limits; None without a promise."""
    low, high = (f"{curve}_gap_{side}" for side in ("low", "high"))
    if low not in ahead or not np.isfinite(ahead[low].values).any():
        return None
    reached = run[curve].sel(time=ahead[low]["time"].values)
    values = reached.transpose("time", "group").values
    groups = values.shape[1]
    gaps = np.stack([values[:, a] - values[:, b] for a in range(groups) for b in range(a + 1, groups)], axis=1)
    lower, upper = ahead[low].transpose("time", "pair").values, ahead[high].transpose("time", "pair").values
    known = np.isfinite(lower) & np.isfinite(upper) & np.isfinite(gaps)
    return bool(((gaps >= lower - 1e-9) & (gaps <= upper + 1e-9))[known].all())


def agreement_at_end(other: tm.Trajectory, run: tm.Trajectory, share: float) -> dict[str, dict[str, int]]:
    """The sign of the gap after a share of another training, against the clear leaders at the end of this one."""
    real = tm.leaders(run, *CURVES)
    row: dict[str, dict[str, int]] = {}
    for curve in CURVES:
        times = other[curve]["time"].values
        values = other[curve].isel(time=int(np.flatnonzero(times <= share * times[-1])[-1]))
        counts: dict[str, int] = defaultdict(int)
        for truth in real.differences_in(curve):
            if truth.leader[-1] != "":
                first, second = (float(values.sel(group=group)) for group in truth.pair)
                ahead = truth.pair[0] if first < second else truth.pair[1] if second < first else ""
                counts[_verdict(ahead, truth.leader[-1])] += 1
        row[curve] = dict(counts)
    return row


def judge_advice(number: int, watched: bool = True) -> dict[str, Any]:
    """Interventions ranked for one task, and the same interventions trained with another order."""
    when: dict[str, Any] = {"watch": watch()} if watched else {}
    task = draw_task(number)
    train, held_out = task.points()
    inputs = int(np.asarray(train.x).shape[1])
    model = task.model(inputs)
    # What is imported at the first step of a process belongs to neither side.
    tm.train(task.model(inputs), train, held_out, replace(task.recipe(ADVICE_ORDER), steps=1, epochs=None))
    advice, cost = seconds(
        partial(tm.advise, model, train, held_out, task.recipe(None), curve="error", progress=False, **when)
    )
    worst, prices = {}, {}
    for name in ("plain", *advice.interventions):
        arm = () if name == "plain" else advice.interventions[name]
        recipe = replace(task.recipe(ADVICE_ORDER), interventions=tuple(arm))
        fitted = train if any(one.needs == "validation groups" for one in arm) else None  # as `advise` fits them
        run, prices[name] = seconds(
            partial(tm.train, task.model(inputs), train, held_out, recipe, validation=fitted, **when)
        )
        worst[name] = float(run["error"].isel(time=-1).max("group"))
    first = advice.ranked[0].name
    return {
        "number": number, "kind": task.kind, "cost": cost, "arms": sum(prices.values()), "first": first,
        "method": advice.method, "better": list(advice.better), "worst": worst,
        "regret": worst[first] - min(worst.values()),
        "against plain": worst[first] - worst["plain"],
        "error of plain": _error_of_worst(worst["plain"], held_out),
    }  # fmt: skip


def _error_of_worst(rate: float, held_out: tm.GroupedData) -> float:
    """The standard error of an error rate in the smallest group: what is no clear difference."""
    return math.sqrt(max(rate * (1 - rate), 1e-9) / min(held_out.sizes.values()))


def judge_chance(number: int) -> dict[str, Any]:
    """Random groups on one of four data sets: does anything name a leader, an intervention or a cause?"""
    rng = np.random.default_rng([STREAM, 3, number])
    name = ("adult", "compas", "mnist", "faces")[number % 4]
    if name == "mnist":
        x, y = picture_set("mnist")
        whole = tm.GroupedData(lab.data.standardised(x.reshape(len(x), -1)), (y % 2), ["all"] * len(x))
    elif name == "faces":
        whole = face_task(np.random.default_rng([STREAM, 4]))[0]
    elif name == "compas":
        parts = tm.data.compas(seed=0)
        whole = parts[0]
    else:
        whole = tm.data.adult()[0]
    rows = rng.permutation(len(whole))[:3000]
    x, y = np.asarray(whole.x, dtype=np.float32)[rows], np.asarray(whole.y)[rows]
    group = np.where(rng.random(len(rows)) < 0.6, "a", "b").tolist()
    data = tm.GroupedData(x, y, group)
    train, held_out = data.split(0.5, seed=number)
    torch.manual_seed(number)
    model = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 1))
    recipe = tm.Recipe(lr=0.1, steps=100, batch=64, loss=tm.Logistic())  # plain SGD, which kernels know
    ahead = tm.forecast(model, train, held_out, recipe, watch=watch(), progress=False)
    led = tm.leaders(ahead)
    advice = tm.advise(model, train, held_out, recipe, curve="error", progress=False)
    cause = tm.tangent(model, train, held_out, sample=500).why(recipe, step=100)
    return {
        "number": number, "data": name, "leader": led.headline.leader not in ("", None),
        "intervention": advice.confirmed is not None and advice.confirmed.helps,
        "cause": cause_named(cause), "claim": led.headline.line, "why": str(cause), "advice": advice.headline,
    }  # fmt: skip


def cause_named(cause: Any) -> bool:
    """Whether an explanation names something that drives the gap."""
    return bool(cause.clear and (cause.matter or cause.from_labels))


def kept_rows(folder: Path, numbers: Sequence[int], judge: Callable[[int], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The row of every number: read where it is kept, else made and kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        place = folder / f"{number}.json"
        if not place.exists():
            row = judge(number)
            aside = place.with_suffix(".aside")
            aside.write_text(json.dumps(row), encoding="utf-8")
            aside.replace(place)
        yield json.loads(place.read_text(encoding="utf-8"))


def main(given: Sequence[str]) -> None:
    folder, parts = Path(given[0]), given[1:] or ("tasks", "advice", "chance", "report")
    torch.set_num_threads(1)
    stages: dict[str, tuple[Sequence[int], Callable[[int], dict[str, Any]]]] = {
        "tasks": (NUMBERS, judge_task),
        "again": (AGAIN, judge_task),
        "fresh": (FRESH, judge_task),
        "long": (LONG_AGAIN, judge_task),
        "tight": (TIGHT, judge_task),
        "advice": (ADVISED, judge_advice),
        "advice again": (ADVISED_AGAIN, judge_advice),
        "advice alone": (ADVISED_ALONE, partial(judge_advice, watched=False)),
        "advice dear": (ADVISED_DEAR, partial(judge_advice, watched=False)),
        "chance": (DRAWS, judge_chance),
        "chance again": (DRAWS_AGAIN, judge_chance),
    }
    for part in parts:
        if part in stages:
            numbers, judge = stages[part]
            for row in kept_rows(folder / part, numbers, judge):
                print(part, row["number"], row.get("kind", ""), flush=True)
    if "keep" in parts:
        write_rows({**kept_in(KEPT), **kept_in(folder)}, KEPT)
    if "report" in parts:
        print("\n".join(report(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
