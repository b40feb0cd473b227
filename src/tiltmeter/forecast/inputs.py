"""Inputs: what a forecast can be made of, checked, in one sentence each."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from torch import nn
from torch.nn.parameter import is_lazy

from tiltmeter.data.grouped import GroupedData

#: Bytes of both kernels up to which all pairs of outputs are kept.
MODERATE = 6e8


def checked_model(model: Any) -> nn.Module:
    """The model, if it has a tangent kernel."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` should be a torch.nn.Module. Found {type(model).__name__}.")
    if any(is_lazy(parameter) for parameter in model.parameters()):
        raise ValueError("`model` has lazy parameters that are not initialised yet: run one batch through it first.")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("`model` should have parameters to train. Found none.")
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and not module.track_running_stats:
            raise ValueError(
                f"`model` should answer each point on its own, but its layer {name!r} needs a batch in training mode: "
                "give it running statistics."
            )
    return model


def checked_data(train: Any, look: Any) -> tuple[GroupedData, GroupedData]:
    """Both parts of the data, the second held out of the first where it is missing."""
    for name, value in (("train", train), ("look", train if look is None else look)):
        if not isinstance(value, GroupedData):
            raise TypeError(f"`{name}` should be GroupedData. Found {type(value).__name__}.")
    if look is None:
        train, look = train.split()
    if set(look.groups) != set(train.groups):
        raise ValueError(
            f"`train` and `look` should have the same groups. Found {list(train.groups)} and {list(look.groups)}."
        )
    for group, size in look.sizes.items():
        if not size:
            raise ValueError(f"`look` should have points of every group. Found none in group {group!r}.")
    if len(train.labels) < 2:
        raise ValueError(f"`train` should have more than one label to learn. Found y = {train.labels[0]:g} only.")
    return train, look


def say_held_out() -> None:
    """Say that the points to look at come from the training data."""
    warnings.warn("`look` is not given: a fifth of every group of `train` is held out to look at.", stacklevel=4)


def checked_sample(sample: Any) -> int:
    """How many points to take."""
    if isinstance(sample, bool) or not isinstance(sample, (int, np.integer)) or sample < 2:
        raise ValueError(f"`sample` should be an integer of at least 2. Found sample = {sample!r}.")
    return int(sample)


def checked_real(steps: Any) -> int:
    """How many real steps may be taken."""
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0 or steps == 1:
        raise ValueError(f"`real_steps` should be 0 or an integer of at least 2. Found real_steps = {steps!r}.")
    return int(steps)


def outputs_of(outputs: str | None, sample: int, look: int, count: int) -> Literal["full", "trace"]:
    """Whether to keep all pairs of outputs."""
    if outputs not in (None, "full", "trace"):
        raise ValueError(f'`outputs` should be "full", "trace" or None. Found outputs = {outputs!r}.')
    if outputs is None:
        return "full" if count == 1 or 8.0 * sample * (sample + look) * count**2 <= MODERATE else "trace"
    return "trace" if outputs == "trace" and count > 1 else "full"


def checked_kernel(kernel: np.ndarray, cross: np.ndarray, start: np.ndarray) -> None:
    """Refuse kernels from which nothing can be forecast."""
    if not (np.isfinite(kernel).all() and np.isfinite(cross).all() and np.isfinite(start).all()):
        raise ValueError("The tangent kernel of `model` should be finite. Found NaN or infinite entries in it.")
    top = float(np.abs(kernel).max(initial=0.0))
    if top == 0.0:
        raise ValueError("The outputs of `model` do not depend on its weights: the tangent kernel is zero everywhere.")
    alike = np.ptp(kernel.diagonal()) <= 1e-9 * top and np.ptp(kernel) <= 1e-9 * top
    if alike and np.ptp(start) <= 1e-9 * max(1.0, float(np.abs(start).max())):
        raise ValueError("`model` should answer different points differently. Found one constant output for all.")
