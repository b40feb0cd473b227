"""The file of `tiltmeter train` and `tiltmeter forecast`: its tables as data, model and options."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.cli.toml_file import TRAINING_FILE, read_tables
from tiltmeter.data.any_frame import any_frame
from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.adult import adult
from tiltmeter.data.public.compas import compas
from tiltmeter.data.public.digits import digits
from tiltmeter.interventions.menu import menu
from tiltmeter.losses import CrossEntropy, Square
from tiltmeter.plugins import PARTS, plugin
from tiltmeter.question import Question
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.table import check_words, recipe_from_table
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, When, every, log_spaced
from tiltmeter.threads import check_fits

#: Data sets that [data] may name beside digits.
PUBLIC = ("adult", "compas")


def public_data(source: str, given: Mapping[str, Any]) -> tuple[GroupedData, GroupedData]:
    """Training and held-out data from a data set that `tiltmeter data list` names."""
    if source == "adult":
        return adult(given.get("group", "sex"))
    if source == "compas":
        return compas(tuple(given.get("group", ("African-American", "Caucasian"))), seed=given.get("seed", 0))
    return plugin(PARTS, "data-tables").public_data(source, given)  # type: ignore[union-attr, no-any-return]


def public_names() -> tuple[str, ...]:
    """The data sets that [data] may name, those of the laboratory included where it is installed."""
    tables = plugin(PARTS, "data-tables")
    return (*PUBLIC, *(() if tables is None else tables.NAMES))


#: Bytes of a weight with its gradient and two averages of an optimiser, in single precision.
WEIGHT_BYTES = 16
#: Deeper stacks without shortcuts do not train; describing thousands of layers takes minutes.
MOST_LAYERS = 200
ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "gelu": "GELU"}


def read_config(path: Path, more: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """The tables of the file, checked; tables named in `more` are left as they are."""
    tables = read_tables(path, TRAINING_FILE, more)
    check_words(tables["training"])
    if tables["problem"] and (classes := _drawn().classes_of(tables["problem"])):
        tables["model"].setdefault("outputs", classes)  # one score per class, under the squared error, too
    return tables


@dataclass(frozen=True, eq=False)
class TrainingFile:
    """What the tables describe: data, training settings, the steps to look at, and the seed of the network."""

    tables: Mapping[str, Mapping[str, Any]]
    data: GroupedData
    held_out: GroupedData
    recipe: Recipe
    watch: Watch
    seed: int

    @classmethod
    def of(cls, tables: Mapping[str, Mapping[str, Any]], folder: Path, measures: tuple[Any, ...] = ()) -> TrainingFile:
        data, held_out = build_data(tables, folder)
        given = tables["training"]
        recipe = recipe_from_table(given, data.groups)
        return cls(
            tables, data, held_out, recipe, Watch(when=build_when(tables), measures=measures), given.get("seed", 0)
        )

    @property
    def ordered(self) -> Recipe:
        """The settings with the order of batches that `train` makes of the seed."""
        return replace(self.recipe, order=self.seed) if self.recipe.order is None else self.recipe

    def network(self) -> Any:
        """The network of the file's seed."""
        import torch

        torch.manual_seed(self.seed)
        return build_model(self.tables["model"], self.data, self.recipe.loss)

    def with_arm(self, arm: str | None) -> Recipe:
        """The settings with an intervention of the menu, as `--with thresholds-by-group` names it."""
        if arm is None:
            return self.recipe
        asked = self.held_out.question
        known = menu(self.recipe.total_steps(len(self.data)), "loss" if asked is None else asked.asked)
        named = {name.replace(" ", "-").lower(): one for name, one in known.items()}
        if arm.lower() not in named:
            raise ValueError(f"--with: no {arm!r}. There are: {', '.join(named)}.")
        return replace(self.recipe, interventions=(*self.recipe.interventions, named[arm.lower()]))

    def train(
        self,
        recipe: Recipe,
        to: Path | None,
        resume: bool = False,
        forecast: Mapping[str, Any] | None = None,
        seeds: int | None = None,
    ) -> Trajectory:
        """Train the network by these settings, once or several times; a forecast that was kept is answered."""
        from tiltmeter.training.loop import train

        given = self.tables["training"]
        data, validation = self.data, None
        if "validation" in given:
            data, validation = data.split(given["validation"], self.seed)
        elif any(one.needs == "validation groups" for one in recipe.interventions):
            validation = data  # as `advise` fits what is fitted after the training
        return train(
            *(self.network(), data, self.held_out, recipe),
            watch=self.watch,
            seed=self.seed,
            to=to,
            checkpoint=every(given.get("checkpoint", 1000)),
            resume=resume,
            validation=validation,
            forecast=forecast if seeds is None else None,
            seeds=seeds,
        )


def train_as_told(
    tables: Mapping[str, Mapping[str, Any]],
    folder: Path,
    measures: tuple[Any, ...] = (),
    to: Path | None = None,
    resume: bool = False,
    forecast: Mapping[str, Any] | None = None,
    arm: str | None = None,
    seeds: int | None = None,
) -> Trajectory:
    """Train what the tables describe, with an intervention of the menu of `advise` where one is named."""
    import torch  # noqa: F401  # said now rather than after the data are read

    file = TrainingFile.of(tables, folder, measures)
    print(f"Training on {len(file.data):,} points, with {len(file.held_out):,} held-out points ...", file=sys.stderr)
    return file.train(file.with_arm(arm), to, resume, forecast, seeds)


def build_when(tables: Mapping[str, Mapping[str, Any]]) -> When:
    """The steps to look at."""
    return log_spaced(tables["evaluations"].get("per_decade", 20))


def build_data(tables: Mapping[str, Mapping[str, Any]], folder: Path) -> tuple[GroupedData, GroupedData]:
    """Return training and held-out data: digits, a file next to the TOML file, a public data set, or a problem."""
    train, held_out = _read_data(tables.get("data", {}), folder, tables.get("problem"))
    if not tables.get("question"):
        return train, held_out
    question = Question.from_json(tables["question"])
    return train.with_question(question), held_out.with_question(question)


def _read_data(
    given: Mapping[str, Any], folder: Path, problem: Mapping[str, Any] | None
) -> tuple[GroupedData, GroupedData]:
    source = given.get("source", "problem" if problem else "digits")
    named = source in ("digits", "problem", *public_names()) and not (folder / source).is_file()
    if "positive" in given and (named or Path(source).suffix.lower() == ".npz"):
        raise ValueError(f"[data] `positive` chooses a label of a table of your own. Found source = {source!r}.")
    if source == "problem":
        return _drawn().problem_data(given, problem or {})  # type: ignore[no-any-return]
    if problem:
        raise ValueError(f'[problem] is drawn from with [data] source = "problem". Found source = {source!r}.')
    if source == "digits":
        return digits(share=given.get("share", 0.8), seed=given.get("seed", 0), labels=given.get("labels", "digit"))
    path = folder / source
    if source in public_names() and not path.is_file():
        return public_data(source, given)
    if not source or not path.exists():
        raise FileNotFoundError(f"[data] source: no file {path if source else 'without a name'}.{_near(path)}")
    for key in ("label", "group"):
        if key not in given:
            raise KeyError(f"[data] of a table needs `{key}`, the name of a column.")
    data = _read_file(path, given)
    if data.reading is not None:
        print(data.reading, file=sys.stderr)
    train, held_out = data.split(given.get("held_out", 0.2), given.get("seed", 0))
    middle, width = train.x.mean(0, dtype=np.float64), train.x.std(0, dtype=np.float64)
    width = np.where(width == 0, 1.0, width)
    return tuple(  # type: ignore[return-value]
        part.with_points(((part.x - middle) / width).astype(np.float32)) for part in (train, held_out)
    )


def _drawn() -> Any:
    """What draws points from a problem; said in a sentence where exact theory is not installed."""
    drawn = plugin(PARTS, "problem-data")
    if drawn is None:
        raise ModuleNotFoundError("A [problem] needs exact theory: pip install 'tiltmeter[theory]'", name="numba")
    return drawn


def _near(path: Path) -> str:
    """The file of the same folder whose name is most like this one."""
    names = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, 1, 0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


def _read_file(path: Path, given: Mapping[str, Any]) -> GroupedData:
    """Read a table by its columns (the group is a feature unless `columns` leaves it out), or arrays by their names."""
    label, group, weights = given["label"], given["group"], given.get("weights")
    if path.suffix.lower() == ".npz":
        names = given.get("columns", ["x"])
        if len(names) != 1 or not isinstance(group, str):
            raise ValueError("[data] of a .npz file names one array each in `group` and in `columns`, as ['x'].")
        return GroupedData.from_npz(path, label=label, group=group, features=names[0], weights=weights)
    table = any_frame(path)
    chosen = given.get("columns", [name for name in table.columns if name not in (label, weights)])
    with warnings.catch_warnings():
        # Dropped rows are reported by `data.reading`, with everything else about the table.
        warnings.filterwarnings("ignore", "Dropped ", UserWarning)
        return GroupedData.from_frame(
            table,
            label=label,
            group=group,
            features=chosen,
            weights=weights,
            positive=given.get("positive"),
            missing=given.get("missing", "drop"),
        )


def build_model(given: Mapping[str, Any], data: GroupedData, loss: Any) -> Any:
    """A stack of Linear layers for this data; one output for two labels or numbers, else one for each class."""
    from torch import nn

    word = given.get("activation", "relu")
    if word not in ACTIVATIONS:
        raise KeyError(f"[model] activation: no {word!r}. There are: {', '.join(ACTIVATIONS)}.")
    several = data.y.dtype.kind in "iub" and len(data.labels) > 2 and not isinstance(loss, Square)
    outputs = given.get("outputs", int(data.y.max()) + 1 if several or isinstance(loss, CrossEntropy) else 1)
    sizes = [int(np.prod(data.x.shape[1:])), *given.get("hidden", [64])]
    if len(sizes) - 1 > MOST_LAYERS:
        raise ValueError(f"[model] `hidden` should have at most {MOST_LAYERS} layers. Found {len(sizes) - 1:,}.")
    weights = sum(a * b for a, b in pairwise([*sizes, outputs]))
    check_fits("hidden", weights, WEIGHT_BYTES, f"weights between layers of {', '.join(map(str, sizes))}")
    layers: list[Any] = [nn.Flatten()]
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), getattr(nn, ACTIVATIONS[word])()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))
