"""resnet18: residual network with a 3x3 stem and no first pooling, for images of 32 to 64 pixels (He et al., 2016)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
