"""Networks of the tests, small enough for a CPU; and the Hessian of a loss as a whole matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tiltmeter.modules.tangent.hessian import hessian_times


def plain_cnn(shape: tuple[int, int, int], outputs: int = 1, width: int = 16) -> nn.Sequential:
    """For flat points that are images of this shape (channels, rows, columns).

    >>> import torch
    >>> plain_cnn((1, 28, 28))(torch.zeros(2, 784)).shape
    torch.Size([2, 1])
    """
    channels, rows, columns = shape
    positions = -(-rows // 4) * -(-columns // 4)  # two strides of 2, rounded up
    return nn.Sequential(
        nn.Unflatten(1, shape),
        nn.Conv2d(channels, width, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * width * positions, outputs),
    )


class Block(nn.Module):
    """Two convolutions with a shortcut connection."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        same = stride == 1 and before == after
        self.shortcut: nn.Module = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.main(x) + self.shortcut(x))


def resnet18(channels: int = 3, outputs: int = 10, width: int = 64) -> nn.Sequential:
    """Eight blocks of `width` to 8 `width` channels; the last two layers are Flatten (features) and Linear (head).

    >>> round(sum(p.numel() for p in resnet18().parameters()) / 1e6, 2)
    11.17
    """
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for factor in (1, 2, 4, 8):
        after = factor * width
        layers += [Block(before, after, 1 if factor == 1 else 2), Block(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, outputs))


def small_cnn(channels: int = 3, outputs: int = 1, width: int = 16, normalise: bool = False) -> nn.Sequential:
    """Convolutions of `width`, 2 `width` and 4 `width` channels with strides of 2, averaged over the image.

    >>> import torch
    >>> small_cnn(1, 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    layers: list[nn.Module] = []
    before = channels
    for after in (width, 2 * width, 4 * width):
        layers.append(nn.Conv2d(before, after, 3, stride=2, padding=1))
        if normalise:
            layers.append(nn.BatchNorm2d(after))
        layers.append(nn.ReLU())
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, outputs))


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


def dense_hessian(losses, parameters, places, chunk=256):
    """The whole matrix, column by column."""
    unit = torch.eye(sum(p.numel() for p in parameters), dtype=parameters[0].dtype)
    return torch.stack([hessian_times(losses, parameters, places, column, chunk) for column in unit], 1)
