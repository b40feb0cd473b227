"""What a twin adds to its scores: exact where it is looked at, and told by a straight line where many points teach
it."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.twin import untrained
from tiltmeter.forecast.twin.twins import scaled_twin
from tiltmeter.forecast.twin.untrained import StraightFit, Untrained
from tiltmeter.modules.networks import mlp


def points(count=1500, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 10)).astype("float32")
    y = (x[:, 0] + 0.5 * rng.normal(size=count) > 0).astype(int)
    return tm.GroupedData(x, y, np.where(rng.random(count) < 0.3, "b", "a"))


@pytest.fixture
def few_asked(monkeypatch):
    """As if the training set were large; a line through so few points may be further off."""
    monkeypatch.setattr(untrained, "MANY", 400)
    monkeypatch.setattr(untrained, "ASKED", 200)
    monkeypatch.setattr(untrained, "NEAR", 0.6)


def parts(network=None):
    train, held_out = points(), points(300, seed=1)
    torch.manual_seed(0)
    model = network or mlp(10, (64,))
    x = tuple(torch.as_tensor(data.x) for data in (train, held_out))
    return train, held_out, model, x, scaled_twin(model, x[0][:2], 1 / 8, 0, 1, None).network


def test_looks_are_exact_and_the_rest_is_near(few_asked):
    train, _, model, x, twin = parts()
    exact = Untrained(model, train, x, None).beyond(twin)
    rough = Untrained(model, train, x, None, rough=True).beyond(twin)
    torch.testing.assert_close(exact[len(train) :], rough[len(train) :], rtol=0, atol=0)
    assert torch.equal(exact[:8], rough[:8])  # losses are tried on them
    off = (exact - rough)[: len(train)]
    assert 0 < off.square().mean().sqrt() < untrained.NEAR
    assert off.square().mean() < 0.5 * exact[: len(train)].var()
    assert (off.abs() < 1e-6).sum() == 200


def test_a_line_that_is_not_near_is_not_used(few_asked, monkeypatch):
    train, _, model, x, twin = parts()
    monkeypatch.setattr(untrained, "NEAR", 1e-3)
    exact = Untrained(model, train, x, None).beyond(twin)
    assert torch.equal(Untrained(model, train, x, None, rough=True).beyond(twin), exact)


def test_only_what_is_seen_is_told(few_asked):
    train, _, model, x, twin = parts()
    seen = np.arange(0, 1500, 2)
    found = Untrained(model, train, x, None, seen, rough=True).beyond(twin)
    assert torch.isfinite(found[seen]).all()
    assert torch.isfinite(found[1500:]).all()
    assert torch.isnan(found[1:1500:2]).all()


def test_few_points_are_all_asked():
    train, _, model, x, twin = parts()
    exact, rough = (Untrained(model, train, x, None, rough=one).beyond(twin) for one in (False, True))
    assert torch.equal(exact, rough)


def test_the_forecast_hardly_changes(few_asked, monkeypatch):
    train, held_out, model, *_ = parts(mlp(10, (256,)))
    recipe = tm.Recipe(partial(torch.optim.AdamW, lr=3e-3), steps=150, batch=32, order=0, loss=tm.Logistic())
    asked = []
    original = Untrained.beyond
    monkeypatch.setattr(Untrained, "beyond", lambda self, twin: asked.append(self._line) or original(self, twin))
    rough = tm.forecast(model, train, held_out, recipe, method=tm.methods.Twin(count=2))
    monkeypatch.setattr(untrained, "MANY", 4096)
    exact = tm.forecast(model, train, held_out, recipe, method=tm.methods.Twin(count=2))
    assert [line is not None for line in asked] == [True, True, False, False]
    np.testing.assert_allclose(rough["loss"], exact["loss"], atol=0.02)
    assert not np.array_equal(rough["loss"], exact["loss"])


def test_statistics_that_are_still_gathered_are_known_at_looks(few_asked):
    network = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))
    train, _, model, x, twin = parts(network)
    exact, rough = (Untrained(model, train, x, None, rough=one).early_beyond(twin) for one in (False, True))
    assert torch.equal(exact[len(train) :], rough[len(train) :])
    assert torch.equal(exact[:8], rough[:8])
    assert torch.isnan(rough[8 : len(train)]).all()


def test_a_straight_line_leaves_constant_inputs_alone():
    x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    x[:, 2] = 7.0
    values = 3.0 * x[:, :1] + 1.0
    torch.testing.assert_close(StraightFit(x).to(values)(x), values, atol=0.02, rtol=0)
    torch.testing.assert_close(
        StraightFit(torch.ones(100, 4)).to(torch.full((100, 1), 2.0))(x), torch.full((100, 1), 2.0)
    )
