"""Negative controls on digits with a patch: where an intervention must not help."""

from functools import cache

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import tiltmeter as tm
from tiltmeter.modules.networks import mlp

I = tm.interventions
pytestmark = pytest.mark.slow


@cache
def digits():
    """Groups of label and patch, which agree in 95 % of the training points and in half of the others."""
    x, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    y = (digit[order] >= 5).astype(int)
    share = np.where(np.arange(len(y)) < 1100, 0.95, 0.5)
    patch = np.where(rng.random(len(y)) < share, y, 1 - y)
    inputs = np.concatenate([x[order] / 16.0, 1.5 * np.repeat(2 * patch[:, None] - 1, 4, axis=1)], axis=1)
    data = tm.GroupedData(inputs.astype("float32"), y, [f"{i}{j}" for i, j in zip(y, patch, strict=True)])
    return data.take(np.arange(1100)), data.take(np.arange(1100, len(y)))


def worst(*laws, train=None, lr=0.05, steps=400, proportions=None):
    """The largest error of a group at the end."""
    points, held_out = digits()
    torch.manual_seed(0)
    recipe = tm.Recipe(lr=lr, steps=steps, batch=64, loss=tm.Logistic(), interventions=laws, proportions=proportions)
    when = tm.Watch(when=tm.record.at([steps]), points=False)
    run = tm.train(mlp(68, (64, 64), 1), points if train is None else train, held_out, recipe, watch=when)
    return float(run["error"].isel(time=-1).max())


def test_shuffled_groups_help_nobody():
    points, _ = digits()
    rng = np.random.default_rng(1)
    shuffled = tm.GroupedData(points.x, points.y, rng.permutation(np.asarray(points.groups)[points.codes]))
    plain = worst()
    assert worst(I.Balanced()) < plain - 0.3  # the right groups do
    for law in (I.Balanced(), I.GroupDRO(0.01)):
        assert worst(law, train=shuffled) > plain - 0.2


def test_normalised_gradients_of_natural_batches_fail_and_of_balanced_ones_do_not():
    law, equal = I.NormalisedGradient(), dict.fromkeys(digits()[0].groups, 0.25)
    assert worst(law) > 0.7
    assert worst(law, proportions=equal) < 0.5
