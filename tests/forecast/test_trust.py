"""The horizon: short where features must move, absent where they hardly do; and bad input in one sentence each."""

import copy
import warnings
from functools import partial
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.displacement import along, pulled
from tiltmeter.forecast.horizon import Horizon, linear_until, sample_until


def network(width, scale=1.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= scale
    return model


def horizon(model, data, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ahead = tm.forecast(model, *data, **{"lr": 0.02, "steps": 400, **settings})
    return ahead.origin.settings["horizon"], [str(w.message) for w in caught if "linearis" in str(w.message)]


def test_a_wide_network_with_a_small_rate_is_not_flagged(two_labels):
    found, said = horizon(network(2000), two_labels, lr=0.002, real_steps=10)
    assert found["linear"] is None
    assert found["kernel"] is None
    assert not said


def test_a_small_initialisation_is_flagged_before_it_goes_wrong(two_labels):
    found, said = horizon(network(200, 0.05), two_labels, lr=0.1, steps=1000)
    assert found["linear"] < 50
    assert "holds up to step" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ahead = tm.forecast(network(200, 0.05), *two_labels, lr=0.1, steps=1000)["loss"]
    sgd = partial(torch.optim.SGD, lr=0.1)
    run = tm.train(network(200, 0.05), *two_labels, sgd, tm.Square(), 200, len(two_labels[0]))["loss"]
    off = abs(ahead.sel(time=run.time) - run).max("group")
    assert off.sel(time=slice(0, found["linear"])).max() < 0.01
    assert off.max() > 0.1  # the forecast is indeed wrong later


def test_a_large_learning_rate_is_flagged(two_labels):
    limit = tm.tangent(network(200), *two_labels).forecast(lr=1e-3, steps=10).origin.settings["stability_limit"]
    found, said = horizon(network(200), two_labels, lr=1.2 * limit, steps=1000, real_steps=20, batch=32)
    assert found["step"] < 100
    assert "stability limit" in said[0]
    # Just below the limit the linearised network is stable, and so not flagged for that.
    _, said = horizon(network(200), two_labels, lr=0.95 * limit, steps=100)
    assert not any("stability" in text for text in said)


def test_a_diverging_forecast_says_when_and_keeps_what_was_before(two_labels):
    with pytest.warns(UserWarning, match="stability limit"):
        ahead = tm.forecast(nn.Linear(6, 1), *two_labels, lr=50.0, steps=4000)
    assert 0 < ahead.diverged.item() <= 4000
    assert np.isfinite(ahead["loss"].values).all()


def test_a_linear_model_has_no_horizon_of_linearity(two_labels):
    found, said = horizon(nn.Linear(6, 1), two_labels, lr=0.3, steps=5000, real_steps=50)
    assert found["linear"] is None
    assert found["kernel"] is None
    assert not said


def test_derivatives_along_a_displacement(two_labels):
    model = network(20).double()
    x = torch.as_tensor(two_labels[0].x[:30])
    dual = np.random.default_rng(0).normal(size=(30, 1))
    step = pulled(model, x, dual, None)
    kernel = tm.tangent(model, *two_labels).kernel  # of all points, in order
    before, slope = along(model, x, step, None)
    np.testing.assert_allclose(slope, kernel[:30, :30] @ dual, rtol=1e-8)
    np.testing.assert_allclose(before[:, 0], model(x)[:, 0].detach().numpy(), rtol=1e-12)


def test_horizon_of_each_test():
    looks = np.array([0, 1, 10, 100, 1000])
    assert linear_until(lambda i: 0.001 * looks[i], looks) == pytest.approx(10 ** (2 + (0.5 - 0.1) / 0.9), rel=1e-6)
    assert linear_until(lambda i: 0.01, looks) is None
    whole = np.array([[0.5, 0.5], [0.4, 0.5], [0.3, 0.5], [0.2, 0.4], [0.1, 0.3]])
    half = whole.copy()
    assert sample_until(whole, half, np.full((5, 2), 1e-3), looks) is None
    half[3, 1] += 0.1
    assert sample_until(whole, half, np.full((5, 2), 1e-3), looks) == 10
    assert sample_until(whole, half, np.full((5, 2), 0.1), looks) is None
    assert str(Horizon(1000, linear=50.0, sample=70.0)) == (
        "Beyond step 50 the forecast is not to be trusted: the network departs from its linearisation."
    )
    assert Horizon(1000).step is None
    assert str(Horizon(1000)).startswith("Nothing speaks against")


def test_the_model_is_untouched_and_a_tangent_outlives_its_training(two_labels):
    model = network(30)
    model.train()
    before, stream = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    kernels = tm.tangent(model, *two_labels)
    first = kernels.forecast(lr=0.02, steps=100, real_steps=4, batch=8)
    assert model.training
    assert torch.equal(torch.get_rng_state(), stream)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.no_grad():
        model[0].weight += 1.0
    assert kernels.forecast(lr=0.02, steps=100, real_steps=4, batch=8) == first


def test_everything_speaks_trajectory(two_labels, tmp_path):
    ahead = tm.forecast(network(30), *two_labels, lr=0.02, steps=300, batch=16)
    run = tm.train(network(30), *two_labels, lambda p: torch.optim.SGD(p, lr=0.02), tm.Square(), 300, 16)
    assert set(run) == set(ahead)
    for name in run:
        assert ahead[name].attrs == run[name].attrs, name
        np.testing.assert_array_equal(ahead[name].time, run[name].time)
    assert tm.agreement(ahead, run)["loss"].how == "same times"
    # At step 0 nothing is forecast yet.
    np.testing.assert_allclose(ahead["loss"].sel(time=0), run["loss"].sel(time=0), rtol=1e-5)
    assert str(tm.phases(ahead))
    tm.crossings(ahead, "error")
    tm.save(ahead, tmp_path / "ahead")
    assert tm.load(tmp_path / "ahead") == ahead
    assert tm.report([ahead, run], tmp_path / "page.html").exists()
    tm.plot.curves(ahead, run).to_dict()


class TestBadInput:
    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"lr": 0.0}, "`lr` should be a positive number or a schedule. Found lr = 0.0."),
            ({"lr": "fast"}, "`lr` should be a positive number"),
            ({"lr": lambda step: -1.0}, "`lr` should not be negative at any step. Found lr = -1.0 at step 0."),
            ({"steps": 0}, "`steps` should be a positive integer. Found steps = 0."),
            ({"momentum": 1.0}, "`momentum` should lie between 0 and 1"),
            ({"weight_decay": -1.0}, "`weight_decay` should not be negative."),
            ({"sample": 1}, "`sample` should be an integer of at least 2. Found sample = 1."),
            ({"weights": {"b": -1.0}}, "`weights` should be finite and not negative."),
            ({"real_steps": 1}, "`real_steps` should be 0 or an integer of at least 2."),
            ({"proportions": {"a": -1.0}}, "`proportions` should be shares"),
        ],
    )
    def test_values(self, two_labels, settings, said):
        with pytest.raises(ValueError, match="should") as caught:
            tm.forecast(nn.Linear(6, 1), *two_labels, **{"lr": 0.1, "steps": 10, **settings})
        assert said in str(caught.value)

    def test_types_and_names(self, two_labels):
        train, look = two_labels
        model = nn.Linear(6, 1)
        with pytest.raises(TypeError, match=r"`model` should be a torch.nn.Module. Found function."):
            tm.forecast(lambda: model, train, look, lr=0.1, steps=10)
        with pytest.raises(TypeError, match=r"`model` should be a function that makes a new model"):
            tm.forecast(model, train, look, lr=0.1, steps=10, seeds=2)
        with pytest.raises(TypeError, match=r"`train` should be GroupedData. Found ndarray."):
            tm.forecast(model, train.x, look, lr=0.1, steps=10)
        with pytest.raises(KeyError, match="'c'"):
            tm.forecast(model, train, look, lr=0.1, steps=10, weights={"c": 2.0})
        with pytest.raises(TypeError, match=r"MSELoss"):
            tm.forecast(model, train, look, lr=0.1, steps=10, loss=nn.MSELoss())
        with pytest.raises(TypeError, match=r"CrossEntropy\(\) does not fit a model with one output"):
            tm.forecast(model, train, look, lr=0.1, steps=10, loss=tm.CrossEntropy())
        with pytest.raises(TypeError, match=r"`tangent` should be the result of `tm.tangent`."):
            tm.best_weights(model, lr=0.1, steps=10)
        with pytest.raises(TypeError, match=r"`criterion` should be one"):
            tm.best_weights(tm.tangent(model, train, look), lr=0.1, steps=10, criterion="gap")

    def test_networks(self, two_labels):
        train, look = two_labels
        broken = nn.Linear(6, 1)
        with torch.no_grad():
            broken.weight[0, 0] = np.nan
        with pytest.raises(ValueError, match="finite"):
            tm.forecast(broken, train, look, lr=0.1, steps=10)
        needy = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 1))
        with pytest.raises(ValueError, match=r"its layer '1' needs a batch in training mode"):
            tm.forecast(needy, train, look, lr=0.1, steps=10)
        frozen = nn.Linear(6, 1).requires_grad_(False)
        with pytest.raises(ValueError, match=r"parameters to train. Found none"):
            tm.forecast(frozen, train, look, lr=0.1, steps=10)

        class Constant(nn.Module):
            def __init__(self):
                super().__init__()
                self.value = nn.Parameter(torch.ones(1))

            def forward(self, x):
                return self.value.expand(len(x))

        with pytest.raises(ValueError, match="one constant output for all"):
            tm.forecast(Constant(), train, look, lr=0.1, steps=10)

    def test_data(self, two_labels):
        train, _ = two_labels
        same = tm.GroupedData(train.x, np.ones(len(train)), train.codes)
        with pytest.raises(ValueError, match=r"`train` should have more than one label to learn. Found y = 1 only."):
            tm.forecast(nn.Linear(6, 1), same, same, lr=0.1, steps=10)
        other = tm.GroupedData(train.x, train.y, np.where(train.codes == 0, "x", "y"))
        with pytest.raises(ValueError, match="same groups"):
            tm.forecast(nn.Linear(6, 1), train, other, lr=0.1, steps=10)

    def test_a_fifth_is_held_out_and_said(self):
        rng = np.random.default_rng(0)
        data = tm.GroupedData(rng.normal(size=(400, 6)), rng.choice([-1, 1], 400), np.arange(400) % 2)
        with pytest.warns(UserWarning, match="a fifth of every group"):
            ahead = tm.forecast(nn.Linear(6, 1), data, lr=0.1, steps=10)
        assert ahead.origin.settings["look"] == "a fifth of every group, held out"
        assert ahead.origin.problem["look"]["points"] == 80

    def test_a_sample_too_large_for_memory(self, two_labels, monkeypatch):
        memory = import_module("tiltmeter.tangent.memory")
        monkeypatch.setattr(memory, "available_memory", lambda: 1000)
        with pytest.raises(ValueError, match=r"`sample` should be at most 0 to fit in memory"):
            tm.forecast(nn.Linear(6, 1), *two_labels, lr=0.1, steps=10)
