"""Digits forecast: a network on real images, forecast again for every setting of the sliders, and trained."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.analysis.phases import phases
from tiltmeter.explorer.run_folder import address_of
from tiltmeter.plot.theme import group_name
from tiltmeter.visible_text import visible

if TYPE_CHECKING:
    from tiltmeter.recipe import Recipe

#: Where trainings that the page starts are recorded, below the folder.
PLACE = "from-explorer"
WIDTH, SHARE, CONTRAST, BATCH = 256, 0.9, (0.2, 2.5), 16
MOST_STEPS, MOST_LR = 20_000, 1.0


def digits_forecast(lr: float, steps: int, weights: list[float], shares: list[float], full: bool) -> dict[str, Any]:
    """Forecast the losses of both groups, turned and upright; `full` also tests how far to trust them."""
    from tiltmeter.forecast.horizon import noted_horizon

    recipe = recipe_of(lr, steps, weights, shares)
    ahead = kernels().forecast(recipe, horizon=full)
    loss = ahead["loss"].transpose("time", "group")
    horizon = noted_horizon(ahead) if full else None
    return {
        "groups": [group_name(group) for group in loss.coords["group"].values.tolist()],
        "times": loss.coords["time"].values.tolist(),
        "values": loss.values.tolist(),
        "sentence": visible(str(phases(ahead))),
        "horizon": None if horizon is None else horizon.step,
        "horizon_text": None if horizon is None else visible(str(horizon)),
    }


def digits_best_weights(lr: float, steps: int, shares: list[float]) -> dict[str, Any]:
    """Find the loss weights that are forecast to make the worst group best off."""
    from tiltmeter.forecast.best_weights import best_weights

    found = best_weights(kernels(), recipe_of(lr, steps, [1.0, 1.0], shares))
    return {"weights": [float(found.weights[group]) for group in data()[0].groups], "sentence": visible(str(found))}


def digits_train(
    root: str, lr: float, steps: int, weights: list[float], shares: list[float], tell: Callable[[Any], None]
) -> dict[str, Any]:
    """Train the same network from the same weights into a new run directory; `tell` hears its name first."""
    from tiltmeter.training.loop import train

    name = _free(Path(root) / PLACE)
    address = address_of(f"{PLACE}/{name}".encode())
    tell({"run": address})
    examples, look = data()
    recipe = recipe_of(lr, steps, weights, shares)
    train(model_of(), examples, look, recipe, to=Path(root) / PLACE / name, seed=0)
    return {"run": address}


def _free(folder: Path) -> str:
    taken = {path.name for path in folder.glob("*")}
    return next(f"digits-{number}" for number in range(1, len(taken) + 2) if f"digits-{number}" not in taken)


@cache
def data() -> Any:
    """Return what to train on and what to look at."""
    from tiltmeter.data.public.digits import digits

    return digits(share=SHARE, contrast=CONTRAST, labels="large")


def model_of(seed: int = 0) -> Any:
    """Make the network with the initial weights of this seed."""
    import torch

    from tiltmeter.networks.mlp import mlp

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return mlp(64, (WIDTH,), 1)


@cache
def kernels() -> Any:
    """Return the kernels of the network of seed 0."""
    from tiltmeter.forecast.kernel.network_kernels import tangent

    return tangent(model_of(), *data(), progress=False)


def recipe_of(lr: float, steps: int, weights: list[float], shares: list[float]) -> Recipe:
    """Return the recipe of these settings; weights of 1 and shares of 0 leave the data as they are."""
    from tiltmeter.losses import Square
    from tiltmeter.recipe import Recipe
    from tiltmeter.recipe.sampling import Draws

    if not 0 < lr <= MOST_LR:
        raise ValueError(f"`lr` should lie between 0 and {MOST_LR:g}. Found lr = {lr:g}.")
    if not 1 <= steps <= MOST_STEPS:
        raise ValueError(f"`steps` should lie between 1 and {MOST_STEPS}. Found steps = {steps}.")
    groups = data()[0].groups
    given: dict[str, Any] = {}
    if not np.allclose(weights, 1.0):
        given["weights"] = dict(zip(groups, weights, strict=True))
    if not np.allclose(shares, 0.0):
        given["proportions"] = dict(zip(groups, shares, strict=True))
    return Recipe(lr=lr, steps=steps, batch=BATCH, sampling=Draws(), loss=Square(), **given)
