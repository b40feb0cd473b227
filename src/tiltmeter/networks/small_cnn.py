"""small_cnn: three convolutions, for images of 8 to 64 pixels on a CPU."""

from __future__ import annotations

from torch import nn


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
