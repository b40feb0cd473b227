"""measure: evaluate one measure directly on a model and data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.digits import digits
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.snapshot import Measure, Snapshot
from tiltmeter.modules.forward import Read, bare
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.untouched import put_back, streams, untouched
from tiltmeter_lab.measures.catalogue import find

#: Number of points of each group of the digits.
POINTS = 40


def example_of(kind: Any, seed: int = 0) -> tuple[Any, nn.Module, GroupedData]:
    """(measure, model, data): from the class's own `example(seed)`, otherwise its defaults on a few digits.

    >>> class Nothing:
    ...     pass
    >>> _, model, data = example_of(Nothing)
    >>> data.sizes, sum(p.numel() for p in model.parameters())
    ({'turned': 40, 'upright': 40}, 1210)
    """
    before = streams()
    try:
        torch.manual_seed(seed)
        own = getattr(kind, "example", None)
        if own is not None:
            measure, model, data = own(seed)
            return measure, model, data
        return kind(), mlp(64, (16,), 10), few_digits(seed)
    finally:
        put_back(before)


def few_digits(seed: int = 0) -> GroupedData:
    """A few of the digits, the same number from both groups."""
    _, held_out = digits(seed=seed)
    places = [place for group in held_out.groups for place in held_out.of_group(group)[:POINTS]]
    return held_out.take(places)


def two_labels(seed: int = 0) -> tuple[nn.Module, GroupedData]:
    """A model with one output, and digits with two labels (5 and above are positive): an example for measures.

    >>> model, data = two_labels()
    >>> data.labels.tolist()
    [0, 1]

    Args:
        seed: Seed of the choice of digits.
    """
    found = few_digits(seed)
    members = [found.groups[code] for code in found.codes]
    return mlp(64, (16,), 1), GroupedData(found.x, (found.y >= 5).astype(int), members)


def measure(
    chosen: Measure | str,
    model: nn.Module,
    data: GroupedData,
    loss: Any = None,
    *,
    decide: Callable[[Any], Any] | None = None,
    read: Read | None = None,
    chunk: int = 256,
    step: int | None = None,
) -> Mapping[str, xr.DataArray]:
    """Evaluate a measure (or the measure of this name, with its defaults) on a model and these points.

    >>> import numpy as np, torch
    >>> data = GroupedData(np.eye(4)[[0, 1, 2, 3] * 20], [0, 1, 1, 1] * 20, ["a", "a", "b", "b"] * 20)
    >>> from tiltmeter.measures.default_curves import error
    >>> sorted(measure(error, torch.nn.Linear(4, 2), data))
    ['error', 'error_se']

    The model, its gradients and the random streams are left unchanged.

    Args:
        chosen: A measure, or its name to take it with its defaults.
        model: Network to look at; it is not changed.
        data: Points to evaluate it on, with their groups.
        loss: Loss to use, of `tm` or any callable of torch; None: the one that fits labels and outputs.
        decide: Turns scores into decisions; None: the positive label above its midpoint, or the largest output.
        read: Finds the scores in what the model returns; None: the model returns scores.
        chunk: Points that pass through the model at once; fewer need less memory.
        step: Number of updates so far, for measures that need it; None: not known.
    """
    taken = find(chosen)() if isinstance(chosen, str) else chosen
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` should be a torch.nn.Module. Found {type(model).__name__}.")
    inner = bare(model)
    with untouched(inner):
        return taken(snapshot_of(inner, data, loss, decide=decide, read=read, chunk=chunk, step=step))


def snapshot_of(
    model: nn.Module,
    data: GroupedData,
    loss: Any = None,
    *,
    decide: Callable[[Any], Any] | None = None,
    read: Read | None = None,
    chunk: int = 256,
    step: int | None = None,
) -> Snapshot:
    """Everything that a measure may use about a model now. Make it, and use it, inside `untouched(model)`.

    >>> import torch
    >>> from tiltmeter.modules.untouched import untouched
    >>> data, model = GroupedData(torch.eye(4).repeat(20, 1), [0, 1] * 40, ["a", "b"] * 40), torch.nn.Linear(4, 1)
    >>> with untouched(model):
    ...     snapshot = snapshot_of(model, data)
    >>> snapshot.loss.shape, snapshot.definition
    ((80,), 'logistic loss')

    Args:
        model: Network to look at; it is not changed.
        data: Points to evaluate, with their groups.
        loss: Loss to use, of `tm` or any callable of torch; None: the one that fits labels and outputs.
        decide: Turns scores into decisions; None: the positive label above its midpoint, or the largest output.
        read: Finds the scores in what the model returns; None: the model returns scores.
        chunk: Points that pass through the model at once; fewer need less memory.
        step: Number of updates so far; None: not known.
    """
    return Answers(model, data, loss, decide, read, chunk, keep_scores=True).snapshot(model, step)
