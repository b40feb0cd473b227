"""The seeds of one setting of an atlas, trained together: one batched product per layer for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

import tiltmeter as tm

BATCH = 32


def networks(
    inputs: int, shape: tuple[int, int], activation: str, scale: float, seeds: Sequence[int]
) -> tm.training.Stacked:
    """One network for each seed; `shape` is (hidden layers, width), weights are PyTorch's default times `scale`.

    >>> networks(8, (2, 16), "relu", 1.0, range(3))(torch.zeros(3, 10, 8)).shape
    torch.Size([3, 10, 1])
    """
    models = []
    for seed in seeds:
        torch.manual_seed(seed)
        # Without its first layer, which only flattens: then the whole stack is made of batched products.
        model = nn.Sequential(*list(tm.modules.mlp(inputs, (shape[1],) * shape[0], 1, activation))[1:])
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(scale)
        models.append(model)
    return tm.training.Stacked(models)


def optimiser(name: str, lr: float, parameters: list[Tensor]) -> torch.optim.Optimizer:
    """SGD, SGD with momentum (at the same effective rate) or AdamW (at a tenth of it)."""
    if name == "SGD":
        return torch.optim.SGD(parameters, lr=lr)
    if name == "momentum":
        return torch.optim.SGD(parameters, lr=lr / 10, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=lr / 10)


def draws(order: int, steps: int, pool: Tensor) -> Tensor:
    """Places of the points of every batch, (steps, batch): at each step evenly among the first `pool` of them.

    >>> draws(0, 2, torch.tensor([1, 1000]))[0].unique().tolist()
    [0]
    """
    uniform = torch.rand((steps, BATCH), generator=torch.Generator().manual_seed(order), dtype=torch.float64)
    return (uniform * pool[:, None]).long()


class Trainer:
    """Takes single steps of squared loss for all networks; what the optimiser remembers stays here."""

    def __init__(self, stacked: tm.training.Stacked, name: str, lr: float, decay: float | None = None) -> None:
        rule = optimiser(name, lr, list(stacked.parameters.values()))
        self.stacked, self._lr = stacked, float(rule.defaults["lr"])
        self._update = tm.training.stacked_update(rule, rule.defaults["weight_decay"] if decay is None else decay)

    def step(self, x: Tensor, y: Tensor) -> None:
        """One update; x has shape (networks, batch, inputs) and y (networks, batch)."""

        def loss(scores: Tensor) -> Tensor:
            return 0.5 * (scores.squeeze(-1) - y).square().mean(-1)

        _, gradients = self.stacked.differentiate(x, loss)
        self._update(self.stacked.parameters, gradients, self._lr)


class Snapshots:
    """Copies of the networks at moments that each of them reaches at its own time."""

    def __init__(self, stacked: tm.training.Stacked) -> None:
        self.stacked, self.kept = stacked, deepcopy(stacked)

    def take(self, which: Tensor) -> None:
        """Keep these networks (a mask) as they are now."""
        for name, value in self.stacked.parameters.items():
            self.kept.parameters[name][which] = value[which]


def gathered(x: Tensor, places: Tensor) -> Tensor:
    """Rows of every network's own points: x has shape (networks, points, ...), `places` (networks, batch)."""
    return x[torch.arange(len(x))[:, None], places]


def changed(stacked: tm.training.Stacked, change: Callable[[str, Tensor], Tensor]) -> tm.training.Stacked:
    """A copy with every parameter replaced by what `change` makes of it."""
    made = deepcopy(stacked)
    with torch.no_grad():
        for name, value in made.parameters.items():
            value.copy_(change(name, value))
    return made
