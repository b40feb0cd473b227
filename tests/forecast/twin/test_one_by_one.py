"""Twins trained one by one: looks that are read at the end give what `train` gives."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.twin import one_by_one
from tiltmeter.forecast.twin.one_by_one import train_lightly
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
    train, look = data()
    watch = tm.Watch(when=every(3), points=False, measures=(score_spread,))
    slow = tm.train(fresh(SHAKY), train, look, RECIPES[name], watch=watch, seed=5)
    weights = [p.detach().clone() for p in SHAKY.parameters()]
    same(train_lightly(fresh(SHAKY), train, look, RECIPES[name], watch, 5), slow)
    assert name == "diverges" or all(torch.equal(a, b) for a, b in zip(SHAKY.parameters(), weights, strict=True))
    assert all(layer.training for layer in SHAKY.modules())


def test_scores_that_do_not_fit_in_memory_are_read_look_by_look(monkeypatch):
    train, look = data()
    watch = tm.Watch(when=every(3), points=False)
    kept = train_lightly(fresh(SHAKY), train, look, RECIPES["Adam"], watch, 5)
    monkeypatch.setattr(one_by_one, "KEPT", 0)
    found = train_lightly(fresh(SHAKY), train, look, RECIPES["Adam"], watch, 5)
    assert found.origin.source == "training"
    same(kept, found)


def test_random_streams_are_put_back():
    train, look = data()
    model, stream = fresh(SHAKY), torch.get_rng_state()
    train_lightly(model, train, look, RECIPES["Adam"], tm.Watch(points=False), 5)
    assert torch.equal(torch.get_rng_state(), stream)
