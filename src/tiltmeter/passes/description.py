"""Description: a model in a few words, for the Origin."""

from __future__ import annotations

from typing import Any

from torch import nn

#: Maximum length of a model's description, in characters.
TEXT = 4000


def describe(model: nn.Module) -> dict[str, Any]:
    """A short text that describes the model, for the Origin."""
    count = sum(parameter.numel() for parameter in model.parameters())
    return {"class": type(model).__name__, "parameters": count, "text": repr(model)[:TEXT]}
