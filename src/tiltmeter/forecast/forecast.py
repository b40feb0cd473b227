"""forecast: the group curves of a training that has not happened yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from tiltmeter.data.grouped import GroupedData, share_of
from tiltmeter.forecast.initialisations import over_seeds
from tiltmeter.forecast.inputs import checked_looks, checked_steps
from tiltmeter.forecast.network_kernels import tangent
from tiltmeter.forecast.optimiser import Optimiser
from tiltmeter.forecast.sample import masses
from tiltmeter.forecast.targets import known_loss
from tiltmeter.losses import Square
from tiltmeter.passes.forward import Read
from tiltmeter.record import Trajectory, When, log_spaced


def forecast(
    model: nn.Module | Callable[[], nn.Module],
    train: GroupedData,
    look: GroupedData | None = None,
    *,
    lr: float | Callable[[float], float],
    steps: int,
    batch: int | None = None,
    loss: Any = Square(),
    sample: int = 2500,
    seed: int = 0,
    weights: Mapping[Any, float] | None = None,
    proportions: Mapping[Any, float] | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    when: When = log_spaced(20),
    read: Read | None = None,
    decide: Callable[[Any], Any] | None = None,
    horizon: bool = True,
    real_steps: int = 0,
    seeds: int | Sequence[int] | None = None,
    progress: bool = True,
) -> Trajectory:
    """Forecast, before training, the curves that a `Probe` would record of this network on the points `look`.

    Early in training a network moves as its linearisation at the initial weights, which the tangent kernel of
    `sample` training points describes. `lr`, `momentum` and `weight_decay` are those of torch.optim.SGD, `lr` a number
    or a function of the step; `weights`, `proportions` and `loss` those of `train`; `read` and `decide` those of
    `Probe`. The model is not changed. To ask several questions of one network, keep its `tangent`.

    The forecast is of *this* network. With `seeds` (how many, or which), `model` is a function that makes one; the
    model of seed s is what it returns after `torch.manual_seed(s)`, and the curves have a dimension `seed`.

    It does not know features that the network learns, nor the noise of small batches: it holds early, for wide networks
    and small learning rates. How far is measured on the network and noted in `origin.settings["horizon"]`;
    `real_steps` allows that many steps of plain SGD with `batch` on a copy, to see how fast the kernel turns. Work of
    more than a few seconds tells on stderr how far it is, unless `progress` is False.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> ahead = forecast(nn.Linear(5, 1), *data.split(0.5), lr=0.05, steps=100)
    >>> ahead["error"].sel(time=100, group="a").item() < 0.1
    True
    """
    check_question(train, lr, steps, batch, loss, weights, proportions, momentum, weight_decay, when, real_steps)
    alone = progress and seeds is None

    def one(network: nn.Module) -> Trajectory:
        kernels = tangent(network, train, look, sample=sample, seed=seed, read=read, progress=alone)
        return kernels.forecast(
            lr=lr,
            steps=steps,
            batch=batch,
            loss=loss,
            weights=weights,
            proportions=proportions,
            momentum=momentum,
            weight_decay=weight_decay,
            when=when,
            decide=decide,
            horizon=horizon,
            real_steps=real_steps,
        )

    if seeds is None:
        return one(model)  # type: ignore[arg-type]  # checked where it enters
    return over_seeds(model, seeds, one, progress)


def check_question(
    train: GroupedData,
    lr: float | Callable[[float], float],
    steps: int,
    batch: int | None = None,
    loss: Any = Square(),
    weights: Mapping[Any, float] | None = None,
    proportions: Mapping[Any, float] | None = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    when: When = log_spaced(20),
    real_steps: int = 0,
) -> None:
    """Say what is wrong with the settings of a training before the kernels, which may take minutes."""
    Optimiser(lr, steps, momentum, weight_decay).fastest()
    known_loss(loss)
    checked_looks(when, steps)
    checked_steps(batch, real_steps, steps)
    if isinstance(train, GroupedData):
        masses(train, np.ones(len(train)), share_of(train, None), weights, proportions)
