"""Inputs: grouped data as the arrays that the theory takes, checked where they enter."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData, check_labels_known
from tiltmeter.data.nested import Nested, Streamed
from tiltmeter.losses import CrossEntropy, Logistic, Square
from tiltmeter.preview.flow import Kind

#: Training rows that the theory reads, at most; of larger tables it takes a sample, and says so.
MOST_ROWS = 10_000
#: More whole-number labels than this are measurements, not classes.
MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class Rows:
    """Points as rows: features as they came, soft labels, the mass of every row, and the place of its group."""

    x: np.ndarray
    labels: np.ndarray
    mass: np.ndarray
    codes: np.ndarray


@dataclass(frozen=True, eq=False)
class Inputs:
    """What is to be learned: training and held-out rows of the same groups, and the kind of the labels.

    `loss` is the loss as the rest of tiltmeter names it, `names` are the columns, `classes` the label values, `sampled`
    how many rows the table had where only a sample is read (0: all are), `tabular` whether points are rows of a table.
    """

    train: Rows
    held_out: Rows
    data: GroupedData
    held_out_data: GroupedData
    kind: Kind
    loss: Any
    groups: tuple[Hashable, ...]
    names: tuple[str, ...]
    classes: tuple[float, ...]
    sampled: int
    tabular: bool

    def with_rows(self, train: Rows, held_out: Rows) -> Inputs:
        """The same with other rows."""
        return replace(self, train=train, held_out=held_out)


def inputs_of(
    train: GroupedData,
    held_out: GroupedData,
    loss: Any = None,
    weights: Mapping[Any, float] | None = None,
    proportions: Mapping[Any, float] | None = None,
) -> Inputs:
    """Both parts of the data as arrays; group weights and proportions become masses of training rows."""
    train, held_out = checked_parts(train, held_out)
    sampled = len(train) if len(train) > MOST_ROWS else 0
    if sampled:
        train = train.take(np.sort(np.random.default_rng(0).permutation(sampled)[:MOST_ROWS]))
    kind, loss = kind_of(train, loss)
    classes = tuple(train.labels.tolist()) if kind != "numbers" or len(train.labels) == 2 else ()
    factors = example_weights(train, weights)
    mass = np.ones(len(train)) if factors is None else factors.astype(float)
    if proportions is not None:
        mass = mass * _drawn(train, proportions)
    tabular = len(train.x.shape) == 2 and (train.reading is not None or train.x.shape[1] <= 1000)
    return Inputs(
        Rows(flat(train.x), soft(train.y, kind, classes), mass / mass.sum(), train.codes),
        Rows(flat(held_out.x), soft(held_out.y, kind, classes), _held_mass(held_out), held_out.codes),
        train,
        held_out,
        kind,
        loss,
        train.groups,
        column_names(train),
        classes,
        sampled,
        tabular,
    )


def _held_mass(data: GroupedData) -> np.ndarray:
    mass = np.ones(len(data)) if data.weights is None else data.weights.astype(float)
    return np.asarray(mass / mass.sum())


def checked_parts(train: Any, held_out: Any) -> tuple[GroupedData, GroupedData]:
    """Training and held-out data with the same groups in one order, in memory and of one array."""
    for name, value in (("train", train), ("held_out", held_out)):
        if not isinstance(value, GroupedData):
            raise TypeError(f"`{name}` should be GroupedData. Found {type(value).__name__}.")
        if isinstance(value.x, Nested):
            raise TypeError(
                f"A preview reads points that are one array. Found `{name}` in parts (dict or tuple): pass the "
                "features of a frozen network, or use `tm.forecast`."
            )
        if isinstance(value.x, Streamed):
            raise TypeError(f"A preview reads points in memory. Found `{name}` streamed: take a sample of it.")
        if not value.x.size if isinstance(value.x, np.ndarray) else not value.x.numel():
            raise ValueError(f"A preview needs features. Found `{name}` without any.")
    if set(train.groups) != set(held_out.groups):
        raise ValueError(
            f"`train` and `held_out` should have the same groups. Found {list(train.groups)} and "
            f"{list(held_out.groups)}."
        )
    if train.x.shape[1:] != held_out.x.shape[1:]:
        raise ValueError(
            f"`train` and `held_out` should have the same features. Found shapes {tuple(train.x.shape[1:])} and "
            f"{tuple(held_out.x.shape[1:])}."
        )
    if len(train.labels) < 2:
        raise ValueError(f"`train` should have more than one label to learn. Found y = {train.labels[0]:g} only.")
    check_labels_known(train, held_out)
    for group, size in {**train.sizes, **{g: min(held_out.sizes[g], train.sizes[g]) for g in train.groups}}.items():
        if not size:
            raise ValueError(f"Both parts should have points of every group. Found none in group {group!r}.")
    if held_out.groups != train.groups:
        order = np.array([train.groups.index(group) for group in held_out.groups])
        same = object.__new__(GroupedData)
        codes = order[held_out.codes]
        same._set(*(held_out.x, held_out.y, codes, train.groups, held_out.weights, held_out.reading, held_out.question))
        held_out = same
    return train, held_out


def kind_of(train: GroupedData, loss: Any) -> tuple[Kind, Any]:
    """What the labels are, and the loss: by default the one that fits them."""
    labels = train.labels
    whole = bool((labels == np.round(labels)).all())
    if loss is not None and not isinstance(loss, (Square, Logistic, CrossEntropy)):
        raise TypeError(
            "`loss` of a preview should be tm.Square(), tm.Logistic() or tm.losses.CrossEntropy(). Found "
            f"{getattr(loss, '__name__', type(loss).__name__)}: rehearse the network with `tm.forecast`."
        )
    if isinstance(loss, Square):
        return "numbers", loss
    if len(labels) == 2:
        return "binary", Logistic()
    if isinstance(loss, Logistic):
        raise ValueError(f"The logistic loss is for two labels. Found {len(labels)} different ones.")
    if whole and len(labels) <= MOST_CLASSES and (train.y.dtype.kind in "iub" or loss is not None):
        if labels[0] != 0 or labels[-1] != len(labels) - 1:
            raise ValueError(f"Classes should be numbered from 0 without a gap. Found {labels[:8].tolist()}.")
        return "classes", CrossEntropy()
    return "numbers", Square()


def soft(y: np.ndarray, kind: Kind, classes: Sequence[float]) -> np.ndarray:
    """Labels as the theory takes them: 0 and 1, one column for each class, or the numbers themselves."""
    if kind == "numbers":
        return np.asarray(y, dtype=float)
    if kind == "binary":
        return np.asarray(y == classes[1], dtype=float)
    return np.asarray(np.eye(len(classes))[y.astype(int)])


def flat(x: Any) -> np.ndarray:
    """Points as rows of numbers."""
    array = x if isinstance(x, np.ndarray) else x.detach().cpu().numpy()
    return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


def column_names(data: GroupedData) -> tuple[str, ...]:
    """The names of the columns; of points without names, their numbers."""
    count = int(np.prod(data.x.shape[1:]))
    known = () if data.reading is None else data.reading.columns
    return tuple(known) if len(known) == count else tuple(f"column {place}" for place in range(count))


def _drawn(train: GroupedData, proportions: Mapping[Any, float]) -> np.ndarray:
    """The factor that gives every group its share of what is drawn."""
    unknown = [group for group in proportions if group not in train.groups]
    missing = [group for group in train.groups if group not in proportions]
    if unknown or missing:
        raise KeyError(
            f"`proportions` should give a share for every group, {', '.join(map(repr, train.groups))}. Found "
            f"{', '.join(map(repr, proportions))}."
        )
    shares = np.array([float(proportions[group]) for group in train.groups])
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise ValueError(f"`proportions` should be shares, not negative. Found {shares.tolist()}.")
    own = np.bincount(train.codes, train.weights, len(train.groups))
    return np.asarray((shares / shares.sum() / (own / own.sum()))[train.codes])
