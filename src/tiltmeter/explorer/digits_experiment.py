"""Digits experiment: a network on real images that come with scikit-learn, so that there is always one to forecast."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tiltmeter.explorer.experiment import Experiment
from tiltmeter.losses import Square
from tiltmeter.recipe import Recipe
from tiltmeter.recipe.sampling import Draws

WIDTH, SHARE, CONTRAST, BATCH, LR, STEPS = 256, 0.9, (0.2, 2.5), 16, 0.006, 600
ABOUT = (
    "A network of 256 hidden units will tell small digits from large ones. Nine tenths of the images are upright and "
    "faint, one tenth turned and bright."
)


@cache
def digits_experiment() -> Experiment:
    """The example of the page and of its demo runs.

    >>> digits_experiment().groups
    ['turned', 'upright']
    """
    from tiltmeter.data.public.digits import digits

    data, look = digits(share=SHARE, contrast=CONTRAST, labels="large")
    recipe = Recipe(lr=LR, steps=STEPS, batch=BATCH, sampling=Draws(), loss=Square())

    def train(bent: Recipe, to: Path) -> None:
        from tiltmeter.training.loop import train as train_it

        train_it(network(), data, look, bent, to=to, seed=0)

    return Experiment(ABOUT, data, look, recipe, network, train)


def network(seed: int = 0) -> Any:
    """The network with the initial weights of this seed."""
    import torch

    from tiltmeter.networks.mlp import mlp

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return mlp(64, (WIDTH,), 1)
