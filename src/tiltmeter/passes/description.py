"""Description: a model in a few words."""

from __future__ import annotations

from typing import Any

from torch import nn

#: Characters of a model's description that are kept.
TEXT = 4000


def describe(model: nn.Module) -> dict[str, Any]:
    """The model in a few words, for the Origin."""
    count = sum(parameter.numel() for parameter in model.parameters())
    return {"class": type(model).__name__, "parameters": count, "text": repr(model)[:TEXT]}
