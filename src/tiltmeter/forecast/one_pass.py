"""one_pass: the setting under which torch makes a step of Adam in one pass over the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def one_pass(made: Any, group: Mapping[str, Any]) -> dict[str, Any]:
    """What to change in a parameter group of this optimiser; nothing if the user chose, or torch has no such step.

    >>> made = torch.optim.Adam([torch.zeros(3)])
    >>> one_pass(made, made.param_groups[0])
    {'fused': True}

    Small tensors take as long as the calls of torch's functions, of which the usual step makes a dozen.
    """
    usual = group.get("foreach") is None and group.get("fused") is None and not group.get("differentiable")
    known = type(made) in (torch.optim.Adam, torch.optim.AdamW) and not isinstance(group["lr"], torch.Tensor)
    return {"fused": True} if usual and known and not group.get("capturable") else {}
