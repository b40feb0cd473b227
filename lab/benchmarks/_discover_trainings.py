"""What the other files about `tm.discover` share: tables, planted slices, one training, and how a part is run.

Every part prints one line of JSON for each draw and a summary at the end. All seeds are fixed in these files. They need
the data of `tiltmeter data get`.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import tiltmeter as tm
from tiltmeter.data.public.adult import LEFT_OUT, adult_table
from tiltmeter.data.public.compas import FEATURES, compas_table
from tiltmeter.discover.rules import Rule, candidates, columns_of
from tiltmeter_lab.data.celeba import celeba

#: Every random number comes from this seed and the numbers of the part and the draw.
SEED = 340
KINDS = ("reversed labels", "label noise", "shuffled features")
#: Sizes of planted slices, as shares of all rows, and how many labels noise turns.
SMALLEST, LARGEST, NOISE = 0.03, 0.12, 0.35
Draws = Iterator[dict[str, Any]]
Summary = Callable[[list[dict[str, Any]]], dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """Rows that people can name, labels, and numbers beside the rows that a network sees but nobody can name."""

    rows: pd.DataFrame
    y: np.ndarray
    trained: int
    unnamed: np.ndarray | None = None

    def numbers(self) -> np.ndarray:
        encoded = pd.get_dummies(self.rows, dtype=float)
        spread = encoded.std(ddof=0).replace(0.0, 1.0)
        known = ((encoded - encoded.mean()) / spread).to_numpy(np.float32)
        return known if self.unnamed is None else np.hstack([known, self.unnamed])


def adult() -> Table:
    rows = adult_table("train")
    return Table(rows.drop(columns=list(LEFT_OUT)), (rows["income"] == ">50K").to_numpy(int), 20_000)


def compas() -> Table:
    rows = compas_table()
    return Table(rows[[*FEATURES, "race"]], rows["two_year_recid"].to_numpy(int), 2_500)


def faces() -> Table:
    """Attributes of faces; the label is one of them. Many are a matter of taste."""
    people = celeba("valid")
    rows = pd.DataFrame(
        {name: people.has(name) for name in people.names if name not in ("Smiling", "Mouth_Slightly_Open")}
    )
    return Table(rows, people.has("Smiling").astype(int), 10_000)


def made_table(rng: np.random.Generator, rows: int = 30_000, noise: float = 0.5) -> Table:
    """Six columns that people could know, and a label that ten unnamed numbers decide."""
    known = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "hours": rng.normal(38, 9, rows).round(),
            "job": rng.choice(["clerk", "cook", "driver", "nurse", "smith"], rows),
            "town": rng.choice(["north", "south", "east", "west"], rows),
            "owner": rng.choice(["yes", "no"], rows, p=[0.3, 0.7]),
            "calls": rng.poisson(3, rows),
        }
    )
    core = rng.normal(size=(rows, 10))
    y = core @ rng.normal(size=10) / np.sqrt(10) + noise * rng.normal(size=rows) > 0
    return Table(known, y.astype(int), 4_000, core.astype(np.float32))


def network(inputs: int, outputs: int = 1, widths: tuple[int, int] = (128, 128)) -> torch.nn.Sequential:
    sizes = (inputs, *widths)
    layers = [part for a, b in pairwise(sizes) for part in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], outputs))


#: Updates of a training on a table.
STEPS = 1500


def recipe(steps: int = STEPS, **more: Any) -> tm.Recipe:
    return tm.Recipe(partial(torch.optim.AdamW, lr=1e-3), steps=steps, batch=128, **more)


#: 26 evaluations of 1,500 steps.
WATCH = tm.Watch(when=tm.record.log_spaced(8), entropy=True)


def all_together(x: np.ndarray, y: np.ndarray) -> tm.GroupedData:
    return tm.GroupedData(x, y, np.zeros(len(y), dtype=int))


def trained(
    x: np.ndarray, y: np.ndarray, train: np.ndarray, held_out: np.ndarray, seed: int, steps: int = STEPS
) -> tm.Trajectory:
    """One network; nobody is in a group."""
    torch.manual_seed(seed)
    parts = [all_together(x[places], y[places]) for places in (train, held_out)]
    return tm.train(network(x.shape[1]), *parts, recipe(steps, loss=tm.Logistic()), seed=seed, watch=WATCH)


def random_slice(table: Table, rng: np.random.Generator, shares: tuple[float, float]) -> tuple[Rule, np.ndarray]:
    """A slice of one or two conditions that holds for a share of rows between these two: its rule and its rows."""
    offered = candidates(columns_of(table.rows))
    while True:
        places = rng.choice(len(offered.conditions), size=int(rng.integers(1, 3)), replace=False)
        members = offered.holds[:, places].all(1)
        apart = len(places) == 1 or members.sum() <= 0.9 * offered.holds[:, places].sum(0).min()
        if shares[0] <= members.mean() <= shares[1] and apart:
            return Rule.of([offered.conditions[place] for place in places]), members


def planted(kind: str, table: Table, rng: np.random.Generator) -> tuple[Rule, np.ndarray, np.ndarray, np.ndarray]:
    """A random slice that is spoilt in one way: its rule, its rows, and the data after that."""
    rule, members = random_slice(table, rng, (SMALLEST, LARGEST))
    x, y = table.numbers(), table.y.copy()
    inside = np.flatnonzero(members)
    if kind == "reversed labels":
        y[inside] = 1 - y[inside]
    elif kind == "label noise":
        turned = inside[rng.random(len(inside)) < NOISE]
        y[turned] = 1 - y[turned]
    else:
        x[inside] = x[rng.permutation(inside)]
    return rule, members, x, y


def overlap(members: np.ndarray, others: np.ndarray) -> float:
    return float((members & others).sum() / max((members | others).sum(), 1))


def run_part(parts: Mapping[str, tuple[Callable[[], Draws], Summary]]) -> None:
    """Run the part that the command line names: PART [--to FILE]."""
    words = [word for word in sys.argv[1:] if word != "--to"]
    if not words or words[0] not in parts:
        sys.exit(f"Name a part: {', '.join(parts)}.")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    draw, summarise = parts[words[0]]
    rows: list[dict[str, Any]] = []
    for row in draw():
        rows.append(row)
        print(json.dumps({name: value for name, value in row.items() if name != "masks"}), flush=True)
    summary = summarise(rows)
    print(json.dumps(summary, indent=2))
    if "--to" in sys.argv:
        text = json.dumps({"part": words[0], "seed": SEED, "summary": summary}, indent=2)
        Path(words[1]).write_text(text + "\n", encoding="utf-8")
