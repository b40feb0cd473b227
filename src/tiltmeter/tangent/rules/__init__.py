"""Rules: one function per type of layer, from what it was fed and the gradients at its output to a `Factor`.

A rule is only trusted for a model after its products were compared with true gradients on a few of the points, so a
layer that is used in an unusual way falls back to `generic`. To add a type of layer, write its function in a file here
and add a line to `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from tiltmeter.tangent.factor import Factor
from tiltmeter.tangent.rules.attention import attention, opened_attention
from tiltmeter.tangent.rules.convolution import convolution
from tiltmeter.tangent.rules.embedding import embedding, embedding_bag
from tiltmeter.tangent.rules.linear import linear
from tiltmeter.tangent.rules.normalisation import normalisation

#: (module, its input, gradients of every output with respect to what it returned: (points, outputs, ...)) -> factor;
#: None where the rule does not reach. A layer that was opened gives such a pair for every tap.
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

#: Layers that are computed again with taps inside: (module, args, kwargs, what it returned, tap) -> the same.
OPENED: dict[type[nn.Module], Callable[..., Any]] = {nn.MultiheadAttention: opened_attention}


def reached(module: nn.Module) -> list[nn.Parameter]:
    """The trained parameters that the rule of this layer is about."""
    if type(module) not in RULES:
        return []
    # An opened layer has its children's parameters too; of any other, children have rules of their own.
    own = module.parameters() if type(module) in OPENED else module.parameters(recurse=False)
    return [parameter for parameter in own if parameter.requires_grad]
