"""A forecast is exact in the limit of infinite width: its error against real training falls as networks grow wider."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

WIDTHS = (64, 2048)


class Parametrised(nn.Module):
    """One hidden layer whose outputs and speed do not depend on its width: each layer is divided by sqrt(inputs)."""

    def __init__(self, width, seed):
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.first = nn.Parameter(torch.randn(width, 6, generator=random))
        self.last = nn.Parameter(torch.randn(width, generator=random))

    def forward(self, x):
        return torch.tanh(x @ self.first.T / 6**0.5) @ self.last / len(self.last) ** 0.5


def data():
    rng = np.random.default_rng(3)
    x, group = rng.normal(size=(300, 6)), np.where(np.arange(300) % 3 == 0, "b", "a")
    return tm.GroupedData(x, np.sign(x[:, 0] + (group == "b") * x[:, 1]), group).split(0.4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [tm.Square(), tm.Logistic()], ids=["square", "logistic"])
def test_the_error_falls_with_width(loss):
    train, held_out = data()
    found = {}
    for width in WIDTHS:
        off = []
        for seed in range(3):
            ahead = tm.forecast(
                Parametrised(width, seed), train, held_out, tm.Recipe(lr=0.1, steps=300, batch=None, loss=loss)
            )
            sgd = partial(torch.optim.SGD, lr=0.1)
            run = tm.train(
                Parametrised(width, seed), train, held_out, tm.Recipe(sgd, steps=300, batch=len(train), loss=loss)
            )
            off.append(tm.agreement(ahead, run)["loss"].rms)
        found[width] = np.mean(off)
    # First corrections fall as 1 / width or 1 / sqrt(width); 32 times as wide, the error should fall by more than 3.
    assert found[2048] < found[64] / 3, found
    assert found[2048] < 0.01
