"""plain_cnn: two convolutions and a linear layer on every position, like the first convolutional networks."""

from __future__ import annotations

from torch import nn


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
