"""Rules: one function per type of layer, from what it was fed and the gradients at its output to a `Factor`.

A rule is only trusted for a model after its products were compared with true gradients on a few of the points, so a
layer that is used in an unusual way falls back to `generic`. To add a type of layer, write its function in a file here
and add a line to `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from tiltmeter.tangent.factor import Factor
from tiltmeter.tangent.rules.convolution import convolution
from tiltmeter.tangent.rules.embedding import embedding, embedding_bag
from tiltmeter.tangent.rules.linear import linear
from tiltmeter.tangent.rules.normalisation import normalisation

#: (module, its input, gradients of every output with respect to what it returned: (points, outputs, ...)) -> factor;
#: None where the rule does not reach.
Rule = Callable[[Any, Tensor, Tensor], Factor | None]

#: By exact type: a subclass may compute something else.
RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.BatchNorm1d: normalisation,
    nn.BatchNorm2d: normalisation,
    nn.BatchNorm3d: normalisation,
    nn.LayerNorm: normalisation,
    nn.GroupNorm: normalisation,
    nn.InstanceNorm1d: normalisation,
    nn.InstanceNorm2d: normalisation,
    nn.Embedding: embedding,
    nn.EmbeddingBag: embedding_bag,
}
