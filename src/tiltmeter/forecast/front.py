"""forecast: the group curves of a training that has not happened yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.tangent import tangent
from tiltmeter.losses import Square
from tiltmeter.passes.forward import Read
from tiltmeter.record import Trajectory, When, log_spaced


def forecast(
    model: nn.Module,
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
    horizon: bool = True,
    real_steps: int = 0,
) -> Trajectory:
    """Forecast, before training, the curves that a `Probe` would record of this network on the points `look`.

    Early in training a network moves as its linearisation at the initial weights, which the tangent kernel of
    `sample` training points describes. `lr`, `momentum` and `weight_decay` are those of torch.optim.SGD, `lr` a number
    or a function of the step; `weights`, `proportions` and `loss` those of `train`. The model is not changed. To ask
    several questions of one network, keep its `tangent`.

    What it does not know: features that the network learns, so that it holds early, for wide networks and small
    learning rates.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> ahead = forecast(nn.Linear(5, 1), *data.split(0.5), lr=0.05, steps=100)
    >>> ahead["error"].sel(time=100, group="a").item() < 0.1
    True
    """
    kernels = tangent(model, train, look, sample=sample, seed=seed, read=read)
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
        horizon=horizon,
        real_steps=real_steps,
    )
