"""Group codes of a batch: what is wrong with those that a loop gave, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def unlike(losses: torch.Tensor, group: Any, dims: int) -> Exception:
    """The error of codes that do not match the losses, which have `dims` dimensions where all is well."""
    if group is not None and not torch.is_tensor(group):
        return TypeError(
            "`group` should be a tensor of codes, as torch.as_tensor(train.codes)[batch]. Found "
            f"{type(group).__name__}."
        )
    if losses.ndim > dims:
        squeezed = ": squeeze them, as losses[:, 0]" if losses.shape[-1] == 1 else ""
        return ValueError(f"`losses` should be one per point. Found shape {tuple(losses.shape)}{squeezed}.")
    found = "None" if group is None else f"shape {tuple(group.shape)}"
    return ValueError(f"`group` should hold the code of every point, of shape {tuple(losses.shape)}. Found {found}.")


def check_codes(group: Any, groups: Sequence[Any]) -> None:
    """Refuse codes of groups that do not exist; looked at only once something went wrong."""
    if torch.is_tensor(group) and group.numel():
        low, high = int(group.min()), int(group.max())
        if low < 0 or high >= len(groups):
            raise ValueError(
                f"`group` should hold codes from 0 to {len(groups) - 1}, of the groups {', '.join(map(repr, groups))}. "
                f"Found {low if low < 0 else high}."
            ) from None
