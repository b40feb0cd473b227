"""The horizon: short where features must move, absent where they hardly do."""

import copy
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.horizon import Horizon, linear_until, noted_horizon, sample_until
from tiltmeter.forecast.kernel.displacement import along, pulled


def network(width, scale=1.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= scale
    return model


def horizon(model, data, sample=2500, real_steps=0, **settings):
    recipe = tm.Recipe(**{"lr": 0.02, "steps": 400, "batch": None, "loss": tm.Square(), **settings})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ahead = tm.forecast(model, *data, recipe, route=tm.routes.Kernel(sample=sample, real_steps=real_steps))
    return ahead.origin.settings["horizon"], [str(w.message) for w in caught if "linearis" in str(w.message)]


def test_a_wide_network_with_a_small_rate_is_not_flagged(two_labels):
    found, said = horizon(network(2000), two_labels, lr=0.002, real_steps=10)
    assert found["linear"] is None
    assert found["kernel"] is None
    assert not said


def test_a_small_initialisation_is_flagged_before_it_goes_wrong(two_labels):
    found, said = horizon(network(200, 0.05), two_labels, lr=0.1, steps=1000)
    assert found["linear"] < 50
    assert "holds only up to step" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ahead = tm.forecast(
            network(200, 0.05), *two_labels, tm.Recipe(lr=0.1, steps=1000, batch=None, loss=tm.Square())
        )["loss"]
    sgd = partial(torch.optim.SGD, lr=0.1)
    run = tm.train(
        network(200, 0.05), *two_labels, tm.Recipe(sgd, steps=200, batch=len(two_labels[0]), loss=tm.Square())
    )["loss"]
    off = abs(ahead.sel(time=run.time) - run).max("group")
    assert off.sel(time=slice(0, found["linear"])).max() < 0.01
    assert off.max() > 0.1  # the forecast is indeed wrong later


def test_a_large_learning_rate_is_flagged(two_labels):
    limit = (
        tm.tangent(network(200), *two_labels)
        .forecast(tm.Recipe(lr=1e-3, steps=10, batch=None, loss=tm.Square()))
        .origin.settings["stability_limit"]
    )
    found, said = horizon(network(200), two_labels, lr=1.2 * limit, steps=1000, real_steps=20, batch=32)
    assert found["step"] < 100
    assert "stability limit" in said[0]
    # Just below the limit the linearised network is stable, and so not flagged for that.
    _, said = horizon(network(200), two_labels, lr=0.95 * limit, steps=100)
    assert not any("stability" in text for text in said)


def test_a_diverging_forecast_says_when_and_keeps_what_was_before(two_labels):
    with pytest.warns(UserWarning, match="stability limit"):
        ahead = tm.forecast(nn.Linear(6, 1), *two_labels, tm.Recipe(lr=50.0, steps=4000, batch=None, loss=tm.Square()))
    assert 0 < ahead.diverged.item() <= 4000
    assert np.isfinite(ahead["loss"].values).all()
    # What comes after, as the distance to another run, squares the losses.
    assert np.isfinite(ahead["loss"].values ** 2).all()


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
        "Do not trust the forecast beyond step 50: the network departs from its linearisation."
    )
    assert Horizon(1000).step is None
    assert str(Horizon(1000)).startswith("The tests of the forecast find no problem")
    assert "beyond step 12300: " in str(Horizon(20000, sample=12345.6))


@pytest.mark.parametrize("sample", [2, 4])
def test_a_sample_of_next_to_nothing_is_flagged(two_labels, sample):
    """Every group has two points at least, so that halving the sample changes something."""
    found, _ = horizon(network(200), two_labels, lr=0.05, sample=sample)
    assert found["sample"] < 40


def test_warnings_point_to_the_line_that_asked(two_labels):
    model = network(200, 0.05)
    with pytest.warns(UserWarning, match="holds only up to step") as direct:
        tm.forecast(model, *two_labels, tm.Recipe(lr=0.1, steps=1000, batch=None, loss=tm.Square()))
    kernels = tm.tangent(model, *two_labels)
    with pytest.warns(UserWarning, match="holds only up to step") as kept:
        kernels.forecast(tm.Recipe(lr=0.1, steps=1000, batch=None, loss=tm.Square()))
    assert {warning.filename for warning in (*direct, *kept)} == {__file__}


def test_the_model_is_untouched_and_a_tangent_outlives_its_training(two_labels):
    model = network(30)
    model.train()
    before, stream = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    kernels = tm.tangent(model, *two_labels)
    first = kernels.forecast(tm.Recipe(lr=0.02, steps=100, batch=8, loss=tm.Square()), real_steps=4)
    assert model.training
    assert torch.equal(torch.get_rng_state(), stream)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.no_grad():
        model[0].weight += 1.0
    assert kernels.forecast(tm.Recipe(lr=0.02, steps=100, batch=8, loss=tm.Square()), real_steps=4) == first


def test_everything_speaks_trajectory(two_labels, tmp_path):
    ahead = tm.forecast(network(30), *two_labels, tm.Recipe(lr=0.02, steps=300, batch=16, loss=tm.Square()))
    run = tm.train(
        network(30),
        *two_labels,
        tm.Recipe(lambda p: torch.optim.SGD(p, lr=0.02), steps=300, batch=16, loss=tm.Square()),
    )
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
    assert noted_horizon(tm.load(tmp_path / "ahead")).to_json() == ahead.origin.settings["horizon"]
    assert noted_horizon(run) is None
    assert tm.report([ahead, run], tmp_path / "page.html").exists()
    tm.plot.curves(ahead, run).to_dict()
