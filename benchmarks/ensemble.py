"""Many seeds at once against runs one after another in plain PyTorch: a 100-200-1 network, batches drawn anew."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from _measure import best, report
from torch import nn

from tiltmeter import GroupedData, Recipe, Square, Watch, ensemble
from tiltmeter.recipe.sampling import Draws
from tiltmeter.record import at

FEATURES, UNITS, STEPS, PART = 100, 200, 500, 8


def stack_of_linear_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, UNITS), nn.ReLU(), nn.Linear(UNITS, 1))


class AnyModule(nn.Module):
    """The same network as a module of its own, which only torch.func can stack."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(FEATURES, UNITS), nn.Linear(UNITS, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.hidden(x)))


def one_after_another(make, seeds: range, x: torch.Tensor, y: torch.Tensor, optimiser, batch: int) -> None:
    """What anyone would write: the leanest loop of plain PyTorch, with no evaluation at anything."""
    for seed in seeds:
        torch.manual_seed(seed)
        model = make()
        own = optimiser(model.parameters())
        for _ in range(STEPS):
            places = torch.randint(len(x), (batch,))
            loss = (0.5 * (model(x[places])[:, 0] - y[places]) ** 2).mean()
            own.zero_grad()
            loss.backward()
            own.step()


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2000, FEATURES)).astype(np.float32)
    data = GroupedData(points, np.sign(points[:, 0]), np.where(points[:, 1] > 0, "a", "b"))
    train, held_out = data.split(0.1)
    x, y = train.tensors()

    def row(make, optimiser, seeds: int, batch: int, bar: float | None) -> dict[str, float]:
        recipe = Recipe(optimiser, steps=STEPS, batch=batch, sampling=Draws(), loss=Square())
        together = partial(ensemble, make, train, held_out, recipe, seeds=seeds, watch=Watch(when=at([0])))
        part = partial(one_after_another, make, range(PART), x, y, optimiser, batch)
        slow, fast = [], []
        for _ in range(3):  # in turns, so that a busy moment of the machine hits both
            slow.append(best(part, 1) * seeds / PART)
            fast.append(best(together, 1))
        found = {"ratio": min(slow) / min(fast), "seconds": min(fast), "one_after_another_seconds": min(slow)}
        return found if bar is None else {**found, "bar": bar, "met": found["ratio"] >= bar}

    sgd = partial(torch.optim.SGD, lr=0.01)
    momentum = partial(torch.optim.SGD, lr=0.01, momentum=0.9)
    adam = partial(torch.optim.Adam, lr=0.001)
    report(
        "ensemble",
        {
            "32 seeds, batch 32, Linear layers, SGD": row(stack_of_linear_layers, sgd, 32, 32, 5.0),
            "32 seeds, batch 32, Linear layers, Adam": row(stack_of_linear_layers, adam, 32, 32, None),
            "32 seeds, batch 32, any module, SGD": row(AnyModule, sgd, 32, 32, None),
            "64 seeds, batch 1, Linear layers, SGD": row(stack_of_linear_layers, sgd, 64, 1, 8.0),
            "64 seeds, batch 1, Linear layers, momentum": row(stack_of_linear_layers, momentum, 64, 1, None),
            "64 seeds, batch 1, Linear layers, Adam": row(stack_of_linear_layers, adam, 64, 1, None),
            "64 seeds, batch 1, any module, SGD": row(AnyModule, sgd, 64, 1, 4.0),
            "64 seeds, batch 1, any module, Adam": row(AnyModule, adam, 64, 1, None),
        },
        "torch",
    )


if __name__ == "__main__":
    main()
