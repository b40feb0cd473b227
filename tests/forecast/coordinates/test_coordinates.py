"""All weights sampled is the linearised model itself; SGD on them is the kernel's forecast; what mixes is refused."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, jvp
from torch.optim import lr_scheduler

import tiltmeter as tm
from tiltmeter.forecast.coordinates.columns import columns
from tiltmeter.forecast.coordinates.strata import Stratum, strata
from tiltmeter.networks.mlp import mlp
from tiltmeter.networks.small_cnn import small_cnn
from tiltmeter.networks.transformer import transformer

ALL = tm.routes.Coordinates(count=10**9)


def network(outputs=1, hidden=(24,), dtype=torch.float64):
    torch.manual_seed(0)
    return mlp(6, hidden, outputs).to(dtype)


class Linearised(nn.Module):
    """The first-order expansion of a model about its weights, trained as a model of its own."""

    def __init__(self, model):
        super().__init__()
        self.names = [name.replace(".", "_") for name, _ in model.named_parameters()]
        self._known = [model]
        self._start = {name: p.detach().clone() for name, p in model.named_parameters()}
        for name, p in self._start.items():
            self.register_parameter(name.replace(".", "_"), nn.Parameter(p.clone()))

    def forward(self, x):
        moved = {n: getattr(self, n.replace(".", "_")) - p for n, p in self._start.items()}
        value, slope = jvp(lambda p: functional_call(self._known[0], p, (x,)), (self._start,), (moved,))
        return value + slope


def by_layer(parameters):
    first, *rest = list(parameters)
    return torch.optim.AdamW([{"params": [first], "lr": 1e-2}, {"params": rest, "weight_decay": 0.3}], lr=2e-3)


RECIPES = {
    "AdamW, cosine, clip": tm.Recipe(
        partial(torch.optim.AdamW, lr=1e-2), schedule=tm.schedules.Cosine(1e-2, 30), steps=30, order=2, clip=0.3
    ),
    "Adam, warmup": tm.Recipe(
        partial(torch.optim.Adam, lr=1e-2, weight_decay=0.1),
        schedule=partial(lr_scheduler.LinearLR, total_iters=10),
        steps=30,
        order=2,
        weights={"b": 3.0},
    ),
    "momentum, drawn": tm.Recipe(lr=0.1, momentum=0.9, nesterov=True, steps=30, order=2, proportions={"a": 1, "b": 1}),
    "RMSprop": tm.Recipe(torch.optim.RMSprop, steps=30, order=2, batch=None),
    "by layer": tm.Recipe(by_layer, steps=30, order=2),
}


@pytest.mark.parametrize("name", RECIPES)
def test_all_weights_are_the_linearised_model(two_labels, name):
    model = network()
    told = tm.forecast(model, *two_labels, RECIPES[name], route=ALL)
    run = tm.train(Linearised(model), *two_labels, RECIPES[name])
    assert set(told) == set(run)
    for curve in ("loss", "error", "margin", "confidence"):
        assert float(abs(told[curve] - run[curve]).max()) < 1e-6


def test_several_classes(three_classes):
    model, recipe = network(3), tm.Recipe(partial(torch.optim.Adam, lr=1e-2), steps=20, order=0)
    told = tm.forecast(model, *three_classes, recipe, route=ALL)
    run = tm.train(Linearised(model), *three_classes, recipe)
    assert float(abs(told["loss"] - run["loss"]).max()) < 1e-6
    assert told["class_accuracy"].dims == run["class_accuracy"].dims


def test_sgd_is_the_kernel_s_forecast_and_converges_with_the_count(two_labels):
    model = network(hidden=(400,))
    recipe = tm.Recipe(lr=0.05, steps=40, batch=None, loss=tm.Square())
    kernel = tm.forecast(model, *two_labels, recipe, route=tm.routes.Kernel())["loss"]
    whole = tm.forecast(model, *two_labels, recipe, route=ALL)["loss"]
    assert float(abs(whole - kernel).max()) < 1e-6
    off = []
    for count in (1000, 2400):
        several = tm.forecast(model, *two_labels, recipe, route=tm.routes.Coordinates(count, replicas=4))["loss"]
        off.append(np.sqrt(float(((several - kernel) ** 2).mean())))
    assert off[1] < off[0] < 0.1 * float(kernel.max())


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (lambda: small_cnn(3, 2, 8, normalise=True), (4, 3, 8, 8)),
        (lambda: transformer(4, features=3, width=16, heads=2, layers=1, outputs=2), (4, 4, 3)),
        (lambda: nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Tanh(), nn.Linear(7, 2)), (4, 5)),
    ],
    ids=["convolutions", "attention", "norm"],
)
def test_columns_are_gradients(model, shape):
    torch.manual_seed(0)
    network, x = model().double().eval(), torch.randn(shape, dtype=torch.float64)
    chosen = strata(network, 400, seed=0)
    found = columns(network, chosen, x, None)
    for output in range(2):
        for point in (0, 3):
            value = network(x[point : point + 1])[0, output]
            true = torch.autograd.grad(value, [network.get_parameter(one.name) for one in chosen])
            expected = torch.cat([g.flatten()[one.places] for g, one in zip(true, chosen, strict=True)])
            assert torch.allclose(found[point, output], expected, atol=1e-10)


def test_strata_stand_for_all_weights():
    model = mlp(50, (60, 60))
    found = strata(model, 1000, seed=0)
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    assert all(len(one.places) * one.stands_for == pytest.approx(sizes[one.name]) for one in found)
    assert isinstance(found[0], Stratum)
    assert 990 <= sum(len(one.places) for one in found) <= 1010


def test_replicas_have_weights_and_orders_of_their_own(two_labels):
    recipe = tm.Recipe(partial(torch.optim.Adam, lr=1e-3), steps=20)
    told = tm.forecast(network(), *two_labels, recipe, route=tm.routes.Coordinates(100, replicas=3))
    assert told["loss"].sizes["seed"] == 3
    assert float(told["loss"].std("seed").max()) > 0
    assert told.points["loss"].sizes["seed"] == 3


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 12), nn.Linear(12, 1)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (tm.Recipe(torch.optim.Adafactor, steps=5), "Found Adafactor, which mixes the gradients"),
        (tm.Recipe(torch.optim.LBFGS, steps=5), "Found LBFGS, which evaluates the loss several times"),
        (tm.Recipe(lambda given: torch.optim.Adam(list(given)[:2]), steps=5), "leaves out 2"),
        (tm.Recipe(torch.optim.Adam, steps=5, schedule=lr_scheduler.ReduceLROnPlateau), "needs a metric"),
    ],
)
def test_what_coordinates_refuse(two_labels, recipe, said):
    with pytest.raises((ValueError, TypeError), match=said):
        tm.forecast(Head(), *two_labels, recipe, route=tm.routes.Coordinates())


def test_too_many_weights_for_memory_are_refused(two_labels, monkeypatch):
    monkeypatch.setattr("tiltmeter.memory.available_memory", lambda: 10**6)
    with pytest.raises(ValueError, match="`count` should be at most"):
        tm.forecast(network(hidden=(400,)), *two_labels, tm.Recipe(torch.optim.Adam, steps=5), route=ALL)


def test_muon_is_refused_by_every_route(two_labels):
    plain = nn.Sequential(nn.Linear(6, 64, bias=False), nn.ReLU(), nn.Linear(64, 1, bias=False))
    for route in (None, tm.routes.Twin(), tm.routes.Coordinates()):
        with pytest.raises(ValueError, match="Found Muon, which mixes the gradients of different weights"):
            tm.forecast(plain, *two_labels, tm.Recipe(torch.optim.Muon, steps=5), route=route)
