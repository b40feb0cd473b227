"""Inputs: checks of the model and the data of a forecast, with one sentence for each error."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tiltmeter.data.grouped import GroupedData, check_labels_known
from tiltmeter.data.nested import Nested, joined
from tiltmeter.measures.task import task_of
from tiltmeter.modules.forward import AtPlaces
from tiltmeter.recipe.watch import checked_watch
from tiltmeter.shown_text import warn_caller

#: All pairs of outputs are kept if both kernels take at most this many bytes.
MODERATE = 6e8


def checked_model(model: Any) -> nn.Module:
    """Return the model, or refuse one that has no tangent kernel."""
    if not isinstance(model, nn.Module):
        hint = ", which needs seeds= to make networks" if callable(model) else ""
        raise TypeError(f"`model` should be a torch.nn.Module. Found {type(model).__name__}{hint}.")
    if isinstance(model, torch.jit.ScriptModule):
        raise TypeError("`model` should be a plain module. Found a ScriptModule: pass the one that it was made from.")
    if any(is_lazy(parameter) for parameter in model.parameters()):
        raise ValueError("`model` has lazy parameters that are not initialised yet: run one batch through it first.")
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ValueError("`model` should have weights. Found it on the meta device, with shapes but no values.")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("`model` should have parameters to train. Found none.")
    return model


def checked_data(train: Any, held_out: Any) -> tuple[GroupedData, GroupedData]:
    """Return both parts of the data; if `held_out` is missing, it is split off `train`."""
    for name, value in (("train", train), ("held_out", train if held_out is None else held_out)):
        if not isinstance(value, GroupedData):
            raise TypeError(f"`{name}` should be GroupedData. Found {type(value).__name__}.")
    if held_out is None:
        train, held_out = train.split()
    if set(held_out.groups) != set(train.groups):
        raise ValueError(
            f"`train` and `held_out` should have the same groups. Found {list(train.groups)} and "
            f"{list(held_out.groups)}."
        )
    for group, size in held_out.sizes.items():
        if not size:
            raise ValueError(f"`held_out` should have points of every group. Found none in group {group!r}.")
    if len(train.labels) < 2:
        raise ValueError(f"`train` should have more than one label to learn. Found y = {train.labels[0]:g} only.")
    strange = np.setdiff1d(held_out.labels, train.labels)
    if len(train.labels) == 2 and len(strange):
        named = " and ".join(f"{label:g}" for label in train.labels)
        raise ValueError(f"`held_out` should have the labels of `train`, {named}. Found y = {strange[0]:g}.")
    check_labels_known(train, held_out)
    return train, held_out


def in_one_array(
    model: nn.Module, train: GroupedData, held_out: GroupedData
) -> tuple[nn.Module, GroupedData, GroupedData]:
    """Points in parts as the places of points, with a network that knows what is there; all else as it is."""
    if not isinstance(train.x, Nested):
        return model, train, held_out
    points = joined([data.tensor_points()[0] for data in (train, held_out)])
    first, second = (np.arange(len(data))[:, None] for data in (train, held_out))
    return AtPlaces(model, points), train.with_points(first), held_out.with_points(len(train) + second)


def checked_classes(data: GroupedData, outputs: int) -> None:
    """Check that labels are numbers of outputs, if there are several outputs."""
    if outputs > 1:
        task_of(data.y, outputs, "softmax", False)


def say_held_out() -> None:
    """Warn that the held-out points come from the training data."""
    warn_caller("`held_out` is not given: a fifth of every group of `train` is held out to look at.")


def checked_sample(sample: Any, seed: Any) -> int:
    """Check the number of points of the sample, and its seed."""
    if not _whole(sample) or sample < 2:
        raise ValueError(f"`sample` should be an integer of at least 2. Found sample = {sample!r}.")
    if not _whole(seed) or seed < 0:
        raise ValueError(f"`seed` should be an integer from 0. Found seed = {seed!r}.")
    return int(sample)


def evaluations_of(watch: Any, steps: int, read: Any) -> np.ndarray:
    """Return the steps to look at, including the last one."""
    given = checked_watch(watch)
    if given.read is not None and given.read is not read:
        raise ValueError("`read` of a forecast is that of its kernels: pass it to `tangent`.")
    return np.asarray(sorted({*given.when.steps(int(steps)), int(steps)}))


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def outputs_of(outputs: str | None, sample: int, held_out: int, count: int) -> Literal["full", "trace"]:
    """Return "full" if all pairs of outputs are kept, else "trace"."""
    if outputs not in (None, "full", "trace"):
        raise ValueError(f'`outputs` should be "full", "trace" or None. Found outputs = {outputs!r}.')
    if outputs is None:
        return "full" if count == 1 or 8.0 * sample * (sample + held_out) * count**2 <= MODERATE else "trace"
    return "trace" if outputs == "trace" and count > 1 else "full"


def checked_kernel(kernel: np.ndarray, start: np.ndarray) -> None:
    """Refuse kernels from which nothing can be forecast."""
    # No entry of a positive semi-definite matrix exceeds the largest of its diagonal.
    top = float(kernel.diagonal().max(initial=0.0))
    if top == 0.0:
        raise ValueError("The outputs of `model` do not depend on its weights: the tangent kernel is zero everywhere.")
    alike = np.ptp(kernel.diagonal()) <= 1e-9 * top and np.ptp(kernel) <= 1e-9 * top
    if alike and np.ptp(start) <= 1e-9 * max(1.0, float(np.abs(start).max())):
        raise ValueError("`model` should answer different points differently. Found one constant output for all.")
