"""Twins of several initial weights train in one stack, and tell what those of each tell alone."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast import initialisations
from tiltmeter.forecast.twin import forecasts_of_networks
from tiltmeter.networks.mlp import mlp
from tiltmeter.networks.small_cnn import small_cnn

ADAM = tm.Recipe(torch.optim.Adam, steps=30, batch=16)
RECIPES = {
    "own orders": ADAM,
    "one order": tm.Recipe(partial(torch.optim.AdamW, lr=3e-3), steps=30, batch=16, order=3, clip=0.5),
    "weights": tm.Recipe(lr=0.1, momentum=0.9, steps=30, batch=16, weights={"rare": 3.0}),
    "a law": tm.Recipe(lr=0.1, steps=30, batch=16, order=3, interventions=(tm.interventions.GroupDRO(0.1),)),
}
TWIN = tm.routes.Twin(1 / 4, count=2)


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 12)).astype(np.float32)
    return tm.GroupedData(x, np.where(x[:, 0] > 0, 1, -1), np.where(np.arange(300) % 4, "common", "rare")).split(0.4)


def make():
    return mlp(12, (128,))


def alone(recipe, seed, route, make=make):
    torch.manual_seed(seed)
    return tm.forecast(make(), *data(), recipe, route=route, watch=tm.Watch(points=False))


def account(found):
    return found.origin.settings["calculation"]


@pytest.mark.parametrize("name", RECIPES)
def test_together_is_one_after_another(name):
    found = tm.forecast(make, *data(), RECIPES[name], route=TWIN, seeds=[4, 1, 7])
    assert (account(found)["trained"], account(found)["networks_together"]) == ("side by side", 3)
    assert found["loss"].coords["seed"].values.tolist() == [4, 1, 7]
    for seed in (4, 1, 7):
        one = alone(RECIPES[name], seed, TWIN)
        assert list(one) == list(found)
        for curve in one:
            np.testing.assert_allclose(found[curve].sel(seed=seed), one[curve].mean("seed"), rtol=1e-5, atol=1e-6)


def test_one_twin_each():
    found = tm.forecast(make, *data(), ADAM, route=tm.routes.Twin(1 / 4, count=1), seeds=2)
    one = alone(ADAM, 1, tm.routes.Twin(1 / 4, count=1))
    np.testing.assert_allclose(found["loss"].sel(seed=1), one["loss"], rtol=1e-5, atol=1e-6)


def test_only_those_that_fit_in_memory_train_together(monkeypatch):
    whole = tm.forecast(make, *data(), ADAM, route=TWIN, seeds=5)
    weights = sum(p.numel() for p in make().parameters())
    monkeypatch.setattr(initialisations, "MOST_WEIGHTS", 2 * weights)
    made = []
    parts = tm.forecast(lambda: (made.append(1), make())[1], *data(), ADAM, route=TWIN, seeds=5)
    assert len(made) == 5
    assert account(parts)["networks_together"] == 2
    np.testing.assert_allclose(parts["loss"], whole["loss"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("route", [tm.routes.Kernel(sample=100), tm.routes.Coordinates(200)])
def test_other_routes_take_one_network_after_the_other(route):
    made = []
    recipe = tm.Recipe(lr=0.1, steps=20, batch=None)
    found = tm.forecast(lambda: (made.append(1), make())[1], *data(), recipe, route=route, seeds=3)
    assert (len(made), found["loss"].sizes["seed"]) == (3, 3)


def test_networks_of_other_shapes_or_kinds_train_apart():
    widths = iter([128, 64])
    found = tm.forecast(lambda: mlp(12, (next(widths),)), *data(), ADAM, route=TWIN, seeds=2)
    assert (account(found)["trained"], account(found)["networks_together"]) == ("side by side", 1)
    images = tm.GroupedData(
        np.random.default_rng(0).normal(size=(60, 64)).astype(np.float32), [-1, 1] * 30, ["a", "b"] * 30
    )
    deep = lambda: nn.Sequential(nn.Unflatten(1, (1, 8, 8)), small_cnn(1))  # noqa: E731
    found = tm.forecast(deep, *images.split(0.5), tm.Recipe(torch.optim.Adam, steps=3), route=TWIN, seeds=2)
    assert account(found)["trained"] == "one by one"


def test_a_network_that_diverges_leaves_the_others(monkeypatch):
    real = forecasts_of_networks.twin_task

    def spoiled(model, *rest):
        if getattr(model, "spoiled", False):
            with torch.no_grad():
                next(model.parameters()).mul_(1e30)
        return real(model, *rest)

    monkeypatch.setattr(forecasts_of_networks, "twin_task", spoiled)
    made = []

    def factory():
        made.append(make())
        made[-1].spoiled = len(made) == 2
        return made[-1]

    recipe = tm.Recipe(lr=0.1, steps=30, batch=16, loss=tm.losses.Square())
    found = tm.forecast(factory, *data(), recipe, route=TWIN, seeds=3)
    assert found.diverged.notnull().values.tolist() == [False, True, False]
    assert np.isfinite(found["loss"].sel(seed=[0, 2])).all()
