"""Trainings that no forecast knows: one sentence from every route; rates of their own for layers are known."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

import tiltmeter as tm
from tiltmeter.modules.networks import mlp

ROUTES = {
    "chosen": None,
    "rehearsal": tm.methods.Rehearsal(1),
    "kernel": tm.methods.Kernel(sample=60),
    "twin": tm.methods.Twin(1 / 4),
}
ADAM = partial(torch.optim.Adam, lr=1e-3)
BAD = {
    "mixes": ({"optimiser": torch.optim.Adafactor}, "Adafactor"),
    "closure": ({"optimiser": torch.optim.LBFGS}, "LBFGS"),
    "metric": ({"optimiser": ADAM, "schedule": lr_scheduler.ReduceLROnPlateau}, "ReduceLROnPlateau"),
    "short": ({"optimiser": ADAM, "order": np.zeros((3, 8), int)}, "a row for each of the 4 steps. Found 3"),
    "beyond": ({"optimiser": ADAM, "order": np.full((4, 8), 10**6)}, "should hold places below"),
}


def network():
    torch.manual_seed(0)
    return mlp(6, (64,))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", BAD)
def test_one_sentence(two_labels, name, route):
    given, said = BAD[name]
    if name == "mixes" and route in ("chosen", "rehearsal"):  # a rehearsal takes any optimiser
        assert "loss" in tm.forecast(
            network(), *two_labels, tm.Recipe(**given, steps=4), method=ROUTES[route], progress=False
        )
        return
    with pytest.raises((ValueError, TypeError)) as caught:
        tm.forecast(network(), *two_labels, tm.Recipe(**given, steps=4), method=ROUTES[route], progress=False)
    text = str(caught.value)
    assert said in text or (route == "kernel" and "Found" in text)  # the kernel first says that it is for SGD
    assert "\n" not in text
    assert len(text) < 300


def by_layer(parameters):
    first, *rest = list(parameters)
    return torch.optim.SGD([{"params": [first], "lr": 0.05}, {"params": rest}], lr=0.01)


@pytest.mark.parametrize("route", ["chosen", "rehearsal", "twin"])
def test_layers_may_have_rates_of_their_own(two_labels, route):
    recipe = tm.Recipe(by_layer, steps=4, batch=16, order=0)
    told = tm.forecast(network(), *two_labels, recipe, method=ROUTES[route], progress=False)
    assert np.isfinite(told["loss"].values).all()


def test_the_kernel_refuses_rates_of_layers(two_labels):
    with pytest.raises(ValueError, match="should"):
        tm.forecast(network(), *two_labels, tm.Recipe(by_layer, steps=4), method=ROUTES["kernel"], progress=False)


def some(parameters):
    return torch.optim.Adam(list(parameters)[2:], lr=1e-2)


def test_parameters_outside_the_optimiser_are_left_alone(two_labels):
    """Twins leave them as they are, as the training does."""
    recipe = tm.Recipe(some, steps=6, batch=16, order=0)
    run = tm.train(network(), *two_labels, recipe)
    same = tm.forecast(network(), *two_labels, recipe, method=tm.methods.Twin(1), progress=False)
    assert float(abs(same["loss"] - run["loss"]).max()) == 0.0
    near = tm.forecast(network(), *two_labels, recipe, method=ROUTES["twin"], progress=False)
    assert np.isfinite(near["loss"].values).all()


@pytest.mark.parametrize("make", [ADAM, partial(torch.optim.SGD, lr=0.1, momentum=0.9)], ids=["Adam", "SGD"])
def test_a_frozen_backbone_is_linear_and_its_head_is_its_training(two_labels, make):
    model = network()
    for weight in list(model.parameters())[:-2]:
        weight.requires_grad_(False)
    recipe = tm.Recipe(make, steps=20, batch=16, order=0)
    told = tm.forecast(model, *two_labels, recipe, method=tm.methods.Linear(), progress=False)
    run = tm.train(model, *two_labels, recipe)
    assert float(abs(told["loss"] - run["loss"]).max()) < 1e-6
    assert isinstance(model[-1], nn.Linear)
