"""embedding: a table of which tokens select rows."""

from __future__ import annotations

from torch import Tensor, nn

from tiltmeter.tangent.factors.lookup import Lookup


def embedding(module: nn.Embedding, inputs: Tensor, delta: Tensor) -> Lookup:
    """1[token = token'] (delta . delta'), summed over pairs of positions; the padding token is not trained."""
    points, outputs = delta.shape[:2]
    lines = inputs.reshape(points, -1)
    delta = delta.reshape(points, outputs, -1, module.embedding_dim)
    if module.padding_idx is not None:
        delta = delta * (lines != module.padding_idx)[:, None, :, None]
    return Lookup(lines, delta)


def embedding_bag(module: nn.EmbeddingBag, inputs: Tensor, delta: Tensor) -> Lookup | None:
    """Like `embedding`: every token of a bag gets the bag's gradient, divided by their number for means."""
    if inputs.ndim != 2 or module.mode not in ("sum", "mean"):
        return None
    counted = inputs != (-1 if module.padding_idx is None else module.padding_idx)
    share = counted.to(delta.dtype)
    if module.mode == "mean":
        share = share / share.sum(1, keepdim=True).clamp(min=1.0)
    return Lookup(inputs, delta[:, :, None] * share[:, None, :, None])
