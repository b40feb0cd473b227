"""The file of `tiltmeter train` and `tiltmeter forecast`: its tables as data, model and options."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.cli.public_data import PICTURES, TABLES_OF_PEOPLE, public_data
from tiltmeter.cli.toml_file import read_toml
from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.digits import digits
from tiltmeter.losses import CrossEntropy, Square
from tiltmeter.recipe.table import KEYS, recipe_from_table
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, When, every, log_spaced

TABLES = ("data", "model", "training", "looks", "forecast")
DATA = ("source", "label", "group", "columns", "look", "seed", "share", "labels", "classes", "shares")
MODEL = ("hidden", "activation")
TRAINING = (*KEYS, "seed", "checkpoint")
LOOKS = ("per_decade",)
FORECAST = ("sample", "real_steps")
ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "gelu": "GELU"}


def read_config(path: Path, more: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """The tables of the file, with known keys only; tables named in `more` are left as they are."""
    tables = read_toml(path)
    _only(tables, (*TABLES, *more), path.name)
    for name, keys in (
        ("data", DATA),
        ("model", MODEL),
        ("training", TRAINING),
        ("looks", ("per_decade",)),
        ("forecast", FORECAST),
    ):
        _only(tables.setdefault(name, {}), keys, f"{path.name} [{name}]")
    return tables


def train_as_told(
    tables: Mapping[str, Mapping[str, Any]],
    folder: Path,
    measures: tuple[Any, ...] = (),
    to: Path | None = None,
    resume: bool = False,
) -> Trajectory:
    """Train what the tables describe."""
    from tiltmeter.training.loop import train

    data, look = build_data(tables["data"], folder)
    given = tables["training"]
    recipe = recipe_from_table(given, data.groups)
    model = build_network(tables, data, recipe.loss)
    watch = Watch(when=build_when(tables), measures=measures)
    print(f"Training on {len(data):,} points, looking at {len(look):,} ...", file=sys.stderr)
    checkpoint = every(given.get("checkpoint", 1000))
    seed = given.get("seed", 0)
    return train(model, data, look, recipe, watch=watch, seed=seed, to=to, checkpoint=checkpoint, resume=resume)


def build_when(tables: Mapping[str, Mapping[str, Any]]) -> When:
    """The steps to look at."""
    return log_spaced(tables["looks"].get("per_decade", 20))


def build_network(tables: Mapping[str, Mapping[str, Any]], data: GroupedData, loss: Any) -> Any:
    """The network of the file's seed."""
    import torch

    torch.manual_seed(tables["training"].get("seed", 0))
    return build_model(tables["model"], data, loss)


def build_data(given: Mapping[str, Any], folder: Path) -> tuple[GroupedData, GroupedData]:
    """What to train on and what to look at: the embedded digits, a CSV file beside the configuration, a public set."""
    source = given.get("source", "digits")
    if source == "digits":
        return digits(share=given.get("share", 0.8), seed=given.get("seed", 0), labels=given.get("labels", "digit"))
    path = folder / source
    if source in (*TABLES_OF_PEOPLE, *PICTURES) and not path.is_file():
        return public_data(source, given)
    if not path.is_file():
        raise FileNotFoundError(f"[data] source: no file {path}.")
    for key in ("label", "group"):
        if key not in given:
            raise KeyError(f"[data] of a table needs `{key}`, the name of a column.")
    import pandas as pd

    table = pd.read_csv(path, skipinitialspace=True).dropna()
    label, group = given["label"], given["group"]
    for name in (label, *([group] if isinstance(group, str) else group)):
        if name not in table.columns:
            raise KeyError(f"{path.name}: no column {name!r}. There are: {', '.join(map(str, table.columns))}.")
    y, names = table[label], None
    if y.dtype.kind not in "fiub":
        codes, names = pd.factorize(y, sort=True)
        y = pd.Series(codes, index=table.index)
        print("Labels: " + ", ".join(f"{name} = {i}" for i, name in enumerate(names)), file=sys.stderr)
    members = (
        table[group].tolist() if isinstance(group, str) else list(map(tuple, table[list(group)].to_numpy().tolist()))
    )
    features = pd.get_dummies(table[given["columns"]] if "columns" in given else table.drop(columns=label), dtype=float)
    x = features.to_numpy(dtype=np.float64)
    train, look = GroupedData(x, y.to_numpy(), members).split(given.get("look", 0.2), given.get("seed", 0))
    middle, width = train.x.mean(0), train.x.std(0)
    width[width == 0] = 1.0
    return tuple(_scaled(part, middle, width) for part in (train, look))  # type: ignore[return-value]


def build_model(given: Mapping[str, Any], data: GroupedData, loss: Any) -> Any:
    """A stack of Linear layers for this data; one output for two labels or numbers, else one for each class."""
    from torch import nn

    word = given.get("activation", "relu")
    if word not in ACTIVATIONS:
        raise KeyError(f"[model] activation: no {word!r}. There are: {', '.join(ACTIVATIONS)}.")
    several = data.y.dtype.kind in "iub" and len(data.labels) > 2 and not isinstance(loss, Square)
    outputs = int(data.y.max()) + 1 if several or isinstance(loss, CrossEntropy) else 1
    sizes = [int(np.prod(data.x.shape[1:])), *given.get("hidden", [64])]
    layers: list[Any] = [nn.Flatten()]
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), getattr(nn, ACTIVATIONS[word])()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))


def _scaled(part: GroupedData, middle: np.ndarray, width: np.ndarray) -> GroupedData:
    import warnings

    with warnings.catch_warnings():  # small groups were warned about already
        warnings.simplefilter("ignore")
        labels = [part.groups[code] for code in part.codes]
        return GroupedData(((part.x - middle) / width).astype(np.float32), part.y, labels, groups=part.groups)


def _only(given: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in names:
            raise KeyError(f"{where}: unknown key {name!r}. There are: {', '.join(names)}.")
