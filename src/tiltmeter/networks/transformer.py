"""transformer: a small encoder for sequences of tokens, of vectors or of image patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Transformer(nn.Module):
    """Encoder layers over embedded tokens with learned positions; the output layer takes the mean over tokens.

    Takes integer tokens (points, length) if `vocabulary` is given, otherwise vectors (points, length, features).
    """

    def __init__(
        self, length: int, features: int, vocabulary: int | None, outputs: int, width: int, layers: int, heads: int
    ) -> None:
        super().__init__()
        self.embed: nn.Module = nn.Linear(features, width) if vocabulary is None else nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.1 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(self.embed(x) + self.positions).mean(1))  # type: ignore[no-any-return]


def transformer(
    length: int,
    features: int = 1,
    vocabulary: int | None = None,
    outputs: int = 1,
    width: int = 32,
    layers: int = 2,
    heads: int = 4,
) -> Transformer:
    """A small transformer without dropout.

    >>> transformer(6, vocabulary=2, outputs=3)(torch.zeros(5, 6, dtype=torch.long)).shape
    torch.Size([5, 3])
    """
    if width % heads:
        raise ValueError(f"`width` should be a multiple of `heads`. Found width = {width}, heads = {heads}.")
    return Transformer(length, features, vocabulary, outputs, width, layers, heads)
