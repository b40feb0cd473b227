"""Twins trained one by one: evaluations that are read at the end give what `train` gives."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from networks import small_cnn, transformer
from tiltmeter.forecast.twin import forecasts_by_twins as forecast_by_twins
from tiltmeter.forecast.twin import light_training
from tiltmeter.forecast.twin.light_training import train_lightly
from tiltmeter.forecast.twin.twins import Points, Shifted
from tiltmeter.record import every

SHAKY = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
RECIPES = {
    "Adam": tm.Recipe(torch.optim.Adam, steps=20, batch=16),
    "rate and weights": tm.Recipe(
        partial(torch.optim.SGD, lr=0.1), schedule=tm.schedules.Cosine(0.1, 20), steps=20, weights={"b": 3.0}, order=4
    ),
    "clipped, drawn": tm.Recipe(lr=0.1, steps=20, clip=0.1, proportions={"a": 0.5, "b": 0.5}),
    "diverges": tm.Recipe(lr=1e30, steps=20, loss=tm.losses.Square()),
}


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6)).astype(np.float32)
    return tm.GroupedData(x, np.where(x[:, 0] > 0, 1, -1), np.where(np.arange(200) % 4, "a", "b")).split(0.5)


def fresh(network):
    torch.manual_seed(1)
    for layer in network.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    return network.train()


def same(one, other):
    assert list(one) == list(other)
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-6, atol=1e-7)  # the losses of long rows are rounded
        assert one[name].attrs == other[name].attrs
    assert (one.diverged is None) == (other.diverged is None)
    assert one.diverged is None or float(one.diverged) == float(other.diverged)


def score_spread(y_true, y_score):
    return float(np.std(y_score))


@pytest.mark.parametrize("name", RECIPES)
def test_looks_read_at_the_end_are_those_of_train(name):
    train, held_out = data()
    watch = tm.Watch(when=every(3), points=False, measures=(score_spread,))
    slow = tm.train(fresh(SHAKY), train, held_out, RECIPES[name], watch=watch, seed=5)
    weights = [p.detach().clone() for p in SHAKY.parameters()]
    same(train_lightly(fresh(SHAKY), train, held_out, RECIPES[name], watch, 5), slow)
    assert name == "diverges" or all(torch.equal(a, b) for a, b in zip(SHAKY.parameters(), weights, strict=True))
    assert all(layer.training for layer in SHAKY.modules())


def test_scores_that_do_not_fit_in_memory_are_read_look_by_look(monkeypatch):
    train, held_out = data()
    watch = tm.Watch(when=every(3), points=False)
    kept = train_lightly(fresh(SHAKY), train, held_out, RECIPES["Adam"], watch, 5)
    monkeypatch.setattr(light_training, "KEPT", 0)
    found = train_lightly(fresh(SHAKY), train, held_out, RECIPES["Adam"], watch, 5)
    assert found.origin.source == "training"
    same(kept, found)


def test_random_streams_are_put_back():
    train, held_out = data()
    model, stream = fresh(SHAKY), torch.get_rng_state()
    train_lightly(model, train, held_out, RECIPES["Adam"], tm.Watch(points=False), 5)
    assert torch.equal(torch.get_rng_state(), stream)


def image_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 64)).astype(np.float32)
    y = np.where(x[:, :20].sum(1) > 0, 1, -1)
    return tm.GroupedData(x, y, np.where(np.arange(160) % 4, "a", "b")).split(0.5)


class Spare(nn.Module):
    """A network with a parameter that no score depends on."""

    def __init__(self):
        super().__init__()
        self.inside, self.unused = small_cnn(1, 1, 32, normalise=True), nn.Linear(32, 64)

    def forward(self, x):
        return self.inside(x.reshape(-1, 1, 8, 8))


def by_layer(parameters):
    first, *rest = list(parameters)
    return torch.optim.AdamW([{"params": [first], "lr": 1e-2}, {"params": rest, "weight_decay": 0.1}], lr=1e-3)


NETWORKS = {
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (1, 8, 8)), small_cnn(1, 1, 32, normalise=True)),
    "attention": lambda: nn.Sequential(nn.Unflatten(1, (8, 8)), transformer(8, 8, None, 1, 64, 1, 8)),
    "a spare part": Spare,
}
STEPS = {
    "AdamW by layer": tm.Recipe(by_layer, steps=12, batch=16, order=1),
    "momentum, weighed, cosine": tm.Recipe(
        partial(torch.optim.SGD, lr=0.02, momentum=0.9, nesterov=True, weight_decay=0.01),
        schedule=tm.schedules.Cosine(0.02, 12),
        steps=12,
        batch=16,
        order=1,
        weights={"b": 3.0},
    ),
    "clipped": tm.Recipe(torch.optim.Adam, steps=12, batch=16, order=1, clip=0.1),
    "no formula": tm.Recipe(torch.optim.RMSprop, steps=12, batch=16, order=1),
}


@pytest.mark.parametrize("recipe", STEPS)
@pytest.mark.parametrize("name", NETWORKS)
def test_steps_by_formula_are_those_of_the_optimiser(name, recipe, monkeypatch):
    def told():
        torch.manual_seed(0)
        watch = tm.Watch(points=False)
        twin = tm.methods.Twin(1 / 4, count=1)
        # In double precision: Adam turns the rounding of gradients that are almost zero into steps.
        return tm.forecast(NETWORKS[name]().double(), *image_data(), STEPS[recipe], method=twin, watch=watch)

    quick = told()
    assert quick.origin.settings["calculation"]["trained"] == "one by one"
    monkeypatch.setattr(forecast_by_twins, "_rates", lambda *_: None)  # by `train`
    slow = told()
    for curve in ("loss", "margin"):
        np.testing.assert_allclose(quick[curve], slow[curve], rtol=1e-6, atol=1e-7)
    assert float(abs(slow["loss"].isel(time=-1) - slow["loss"].isel(time=0)).max()) > 1e-3


def test_formulas_are_used_where_they_are_known():
    taken = []
    real = light_training.StepsByFormula.__call__

    class Seen(light_training.StepsByFormula):
        def __call__(self, places, step):
            real(self, places, step)
            taken.append(self._known)

    for name in NETWORKS:
        torch.manual_seed(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(light_training, "StepsByFormula", Seen)
            watch = tm.Watch(points=False)
            tm.forecast(
                NETWORKS[name](), *image_data(), STEPS["AdamW by layer"], method=tm.methods.Twin(1 / 4, 1), watch=watch
            )
    assert taken == [True] * 24 + [False] * 12


@pytest.mark.parametrize(("size", "together"), [(10, 1024), (1024, 1024), (3 * 224 * 224, 6), (2**21, 1)])
def test_large_points_are_answered_a_few_at_a_time(size, together):
    points = Points(torch.zeros(2, size), torch.zeros(3, size), None)
    assert Shifted(nn.Identity(), points, None).together == together
