"""attention: the projections of nn.MultiheadAttention, which does not call submodules for them that could be hooked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tiltmeter.tangent.factors.factor import Factor
from tiltmeter.tangent.factors.tokens import Tokens
from tiltmeter.tangent.rules.linear import trained_inputs


@dataclass(frozen=True)
class Several:
    """Factors of separate parameters; their inner products are added."""

    factors: Sequence[Factor]

    @property
    def nbytes(self) -> int:
        return sum(factor.nbytes for factor in self.factors)

    def folded(self) -> Several:
        return Several([factor.folded() for factor in self.factors])

    def settled(self) -> Several:
        return Several([factor.settled() for factor in self.factors])

    def gram(self, other: Several) -> Tensor:
        first, *more = (mine.gram(theirs) for mine, theirs in zip(self.factors, other.factors, strict=True))
        for product in more:
            first = first + product
        return first


#: Adds a zero to the output of a projection, and stores it with the input of the projection.
Tap = Callable[[Tensor, Tensor], Tensor]


def opened_attention(
    module: nn.MultiheadAttention, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, tap: Tap
) -> Any:
    """The output of the module, computed again with a tap at each projection; None for unusual settings."""
    query, key, value, *more = (*args, *(kwargs[name] for name in ("query", "key", "value") if name in kwargs))
    if (
        more
        or module.in_proj_weight is None
        or module.bias_k is not None
        or module.add_zero_attn
        or not module.batch_first
        or query.ndim != 3
    ):
        return None
    q, k, v = _projected(module, query, key, value, tap)
    n, length, width = q.shape
    q, k, v = (part.view(n, -1, module.num_heads, module.head_dim).transpose(1, 2) for part in (q, k, v))
    logits = q @ k.transpose(2, 3) / module.head_dim**0.5
    if (mask := kwargs.get("attn_mask")) is not None:
        added = _added(mask, q.dtype)
        logits = logits + (added if mask.ndim == 2 else added.view(n, -1, *mask.shape[1:]))
    if (padding := kwargs.get("key_padding_mask")) is not None:
        logits = logits + _added(padding, q.dtype)[:, None, None]
    mixed = (logits.softmax(3) @ v).transpose(1, 2).reshape(n, length, width)
    last = module.out_proj
    projected = tap(mixed, F.linear(mixed, last.weight, last.bias))
    return (projected, *output[1:])


def _projected(
    module: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, tap: Tap
) -> tuple[Tensor, Tensor, Tensor]:
    assert module.in_proj_weight is not None
    if query is key and key is value:
        q, k, v = tap(query, F.linear(query, module.in_proj_weight, module.in_proj_bias)).chunk(3, 2)
        return q, k, v
    weights = module.in_proj_weight.chunk(3)
    biases = (None, None, None) if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    q, k, v = (
        tap(fed, F.linear(fed, weight, bias))
        for fed, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )
    return q, k, v


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as a term that is added to logits: masked positions get minus infinity."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, -torch.inf) if mask.dtype == torch.bool else mask


def attention(module: nn.MultiheadAttention, *taps: Tensor) -> Factor:
    """Like `linear`, for the projections of queries, keys and values, and for the output projection."""
    *inner, last = [taps[i : i + 2] for i in range(0, len(taps), 2)]
    into, out = (module.in_proj_weight, module.in_proj_bias), (module.out_proj.weight, module.out_proj.bias)
    factors: list[Factor] = []
    for (inputs, delta), (weight, bias) in [*[(pair, into) for pair in inner], (last, out)]:
        if weight.requires_grad or (bias is not None and bias.requires_grad):
            factors.append(Tokens(trained_inputs(inputs, weight, bias), delta))
    return Several(factors)
