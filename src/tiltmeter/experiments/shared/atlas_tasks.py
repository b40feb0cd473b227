"""Three small tasks for the atlas of biases, each under three distributions of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.sines import Sines
from tiltmeter.networks.mlp import mlp

DENSITIES = ("uniform", "dense half", "normal")
WAVES = Sines((1, 4))
#: Coordinates of the task with an easy and a hard feature, and which of them those are.
INPUTS, EASY, HARD = 8, (0,), (1, 2)
#: Variances of the principal components, from the largest to the smallest.
SPECTRUM = np.geomspace(1.0, 0.05, 8)


def positions(density: str, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Numbers in [-1, 1]: evenly, four times as many below 0 as above, or normal with standard deviation 0.4.

    >>> float(positions("dense half", (1000,), np.random.default_rng(0)).mean()) < -0.2
    True
    """
    if density == "uniform":
        return generator.uniform(-1.0, 1.0, shape)
    if density == "dense half":
        below = generator.random(shape) < 0.8
        return np.where(below, -1.0, 1.0) * generator.random(shape)
    if density == "normal":
        return np.clip(0.4 * generator.normal(size=shape), -1.0, 1.0)
    raise KeyError(f"No density {density!r}. There are: {', '.join(DENSITIES)}.")


@dataclass(frozen=True)
class Task:
    """Points to train on and to look at, and the share of the initial loss at which runs are compared."""

    train: GroupedData
    look: GroupedData
    matched: float


def waves(density: str, points: int, seed: int) -> Task:
    """A slow and a fast wave of one number, of equal size; looked at on a regular grid."""
    x = positions(density, (points,), np.random.default_rng([seed, 1]))
    grid = WAVES.grid(128)
    return Task(_data(x[:, None], WAVES(x)), _data(grid[:, None], WAVES(grid)), 0.7)


def two_features(density: str, points: int, seed: int) -> Task:
    """Labels -1 and +1 that an easy coordinate tells (its sign) and two hard ones (near 0 or far from it)."""
    generator = np.random.default_rng([seed, 2])
    parts = []
    for count in (points, 400):
        y = generator.permutation(np.where(np.arange(count) % 2 == 0, 1.0, -1.0))
        x = positions(density, (count, INPUTS), generator)
        x[:, 0] = y * (0.1 + 0.9 * np.abs(x[:, 0]))
        for column in HARD:
            inside = 0.25 * x[:, column]
            outside = np.sign(x[:, column]) * (0.55 + 0.45 * np.abs(x[:, column]))
            x[:, column] = np.where(y > 0, outside, inside)
        parts.append(_data(x, y))
    return Task(parts[0], parts[1], 0.4)


def components(density: str, points: int, seed: int) -> Task:
    """A linear target to which every principal component of the inputs contributes the same variance."""
    generator = np.random.default_rng([seed, 3])
    parts = []
    for count in (points, 400):
        plain = positions(density, (count, len(SPECTRUM)), generator)
        plain = (plain - plain.mean(0)) / plain.std(0)
        parts.append(_data(plain * np.sqrt(SPECTRUM), plain.sum(1) / np.sqrt(len(SPECTRUM))))
    return Task(parts[0], parts[1], 0.5)


TASKS: dict[str, Callable[[str, int, int], Task]] = {
    "waves": waves,
    "two features": two_features,
    "components": components,
}


def network(inputs: int, shape: tuple[int, int], activation: str, scale: float, seed: int) -> nn.Sequential:
    """`shape` is (hidden layers, width); all weights of PyTorch's default are multiplied by `scale`."""
    torch.manual_seed(seed)
    model = mlp(inputs, (shape[1],) * shape[0], 1, activation)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    return model


def optimiser(name: str, lr: float, parameters: list[Tensor]) -> torch.optim.Optimizer:
    """SGD, SGD with momentum (at the same effective rate) or AdamW (at a tenth of it)."""
    if name == "SGD":
        return torch.optim.SGD(parameters, lr=lr)
    if name == "momentum":
        return torch.optim.SGD(parameters, lr=lr / 10, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=lr / 10)


def _data(x: np.ndarray, y: np.ndarray) -> GroupedData:
    return GroupedData(x.astype(np.float32), y.astype(np.float32), np.zeros(len(y), dtype=int))
