"""Rules: one function per type of layer, from its input and the gradients at its output to a `Factor`.

A rule is used for a model only after its inner products were compared with true gradients on a few of the points, so a
layer that is used in an unusual way falls back to `generic`. To add a type of layer, write its function in a file here
and add a line to `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from tiltmeter.tangent.factors.factor import Factor
from tiltmeter.tangent.rules.attention import attention, opened_attention
from tiltmeter.tangent.rules.convolution import convolution
from tiltmeter.tangent.rules.embedding import embedding, embedding_bag
from tiltmeter.tangent.rules.linear import linear
from tiltmeter.tangent.rules.normalisation import normalisation

#: (module, its input, gradients of every score with respect to its output: (points, outputs, ...)) -> factor;
#: None if the rule does not apply. A layer that was opened gives such a pair for every tap.
Rule = Callable[..., Factor | None]

#: By exact type: a subclass may compute something else.
RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.BatchNorm1d: normalisation,
    nn.BatchNorm2d: normalisation,
    nn.BatchNorm3d: normalisation,
    nn.LayerNorm: normalisation,
    nn.RMSNorm: normalisation,
    nn.GroupNorm: normalisation,
    nn.InstanceNorm1d: normalisation,
    nn.InstanceNorm2d: normalisation,
    nn.Embedding: embedding,
    nn.EmbeddingBag: embedding_bag,
    nn.MultiheadAttention: attention,
}

#: Layers that are computed again with taps inside: (module, args, kwargs, output, tap) -> the same output.
OPENED: dict[type[nn.Module], Callable[..., Any]] = {nn.MultiheadAttention: opened_attention}


def reached(module: nn.Module) -> list[nn.Parameter]:
    """The trainable parameters that the rule of this layer covers."""
    if type(module) not in RULES:
        return []
    # An opened layer includes its children's parameters; the children of any other layer have their own rules.
    own = module.parameters() if type(module) in OPENED else module.parameters(recurse=False)
    return [parameter for parameter in own if parameter.requires_grad]
