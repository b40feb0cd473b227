"""A mask over the inputs: which numbers of a point, counted from 0 in the flattened point."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def checked_mask(mask: Any) -> tuple[int, ...]:
    """Places of inputs as a tuple, sorted, each once.

    >>> checked_mask([66, 64, 65])
    (64, 65, 66)
    """
    if isinstance(mask, (str, bytes)) or not isinstance(mask, Iterable):
        raise TypeError(f"`mask` should hold places of inputs, as (64, 65). Found {type(mask).__name__}.")
    given = list(mask)
    for one in given:
        if isinstance(one, (bool, np.bool_)) or not isinstance(one, (int, np.integer)) or one < 0:
            raise ValueError(f"`mask` should hold places of inputs, whole numbers from 0. Found {one!r} among them.")
    if not given:
        raise ValueError("`mask` should hold at least one place. Found none.")
    return tuple(sorted({int(one) for one in given}))


def check_mask_fits(mask: tuple[int, ...], x: Any, law: str) -> None:
    """Refuse points that are not one tensor of numbers, and places beyond their end."""
    import torch

    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        found = f"a tensor of {x.dtype}" if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{law} needs points that are one tensor of numbers with a fraction. Found {found}.")
    size = x[0].numel()
    if mask[-1] >= size:
        raise ValueError(f"`mask` of {law} should name places among {size} inputs. Found place {mask[-1]}.")
