"""component-error: the exact law of one layer, the lazy intervention of deep ones, and where it fails."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.data.principal_components import principal_components
from tiltmeter.modules.networks import compact_weight, deep_linear, mlp
from tiltmeter_lab.measures.component_error import ComponentError, component_spread, least_squares
from tiltmeter_lab.measures.measure import measure

VARIANCES = np.geomspace(1.0, 0.01, 8)


@pytest.fixture(autouse=True)
def no_denormals():
    """Errors that fall to nothing are slow once their numbers are denormal."""
    torch.set_flush_denormal(True)
    yield
    torch.set_flush_denormal(False)


def problem(scale, seed=0, points=32):
    """Centred inputs with just these variances along the axes, and a linear target of this length."""
    rng = np.random.default_rng(seed)
    columns = np.linalg.qr(np.concatenate([np.ones((points, 1)), rng.normal(size=(points, 8))], 1))[0][:, 1:]
    x = np.sqrt(points) * columns * np.sqrt(VARIANCES)
    target = rng.normal(size=8)
    target *= scale / np.linalg.norm(target)
    return tm.GroupedData(x, x @ target, ["all"] * points), target


def wide(depth, width, seed):
    """All layers N(0, 1 / width)."""
    torch.manual_seed(seed)
    net = deep_linear(8, width, depth).double()
    with torch.no_grad():
        net[0].weight.mul_((8 / width) ** 0.5)
    return net


def trained(net, data, lr, steps, held_out, seed=0):
    sgd = partial(torch.optim.SGD, lr=lr)
    return tm.train(
        net,
        data,
        data,
        tm.Recipe(sgd, steps=steps, batch=len(data)),
        watch=tm.Watch(when=held_out, measures=(ComponentError(),)),
        seed=seed,
    )


def rates(errors):
    """Slope of the log of the error, root mean square over seeds, until less than a third is left."""
    size = np.sqrt((errors**2).mean("seed")) if "seed" in errors.dims else errors
    found = []
    for i in range(size.sizes["component"]):
        values = size.isel(component=i).values
        stop = max(3, int(np.argmax(values < 0.3 * values[0])) or len(values))
        found.append(-np.polyfit(size.time.values[:stop], np.log(values[:stop]), 1)[0])
    return np.array(found)


def test_the_optimum_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4)) * [4, 3, 2, 1] + 5.0
    y = x @ [1.0, -1.0, 2.0, 0.0] + rng.normal(size=50) + 3.0
    found = principal_components(x)
    direct = np.linalg.lstsq(x - x.mean(0), y - y.mean(), rcond=None)[0]
    optimum = least_squares(tm.GroupedData(x, y, ["a"] * 50), found, 1)
    assert optimum[0] == pytest.approx(found.directions @ direct)
    labels = rng.integers(0, 3, 50)
    many = least_squares(tm.GroupedData(x, labels, ["a"] * 50), found, 3)
    hot = np.eye(3)[labels]
    direct = np.linalg.lstsq(x - x.mean(0), hot - hot.mean(0), rcond=None)[0]
    assert many == pytest.approx((found.directions @ direct).T)


def test_one_layer_follows_the_exact_law():
    data, _ = problem(1.0)
    torch.manual_seed(0)
    run = trained(deep_linear(8, 1, 1).double(), data, 0.5, 40, tm.record.every(1))
    errors = run["component_error"]
    assert run["component_variance"].values[0] == pytest.approx(VARIANCES)
    left = (1.0 - 0.5 * VARIANCES) ** errors.time.values[:, None]
    ratio = errors.values / errors.values[0] / left
    # Where less than 1e-6 is left, rounding of the weights (1e-16) exceeds what is asked.
    assert np.abs(ratio[left > 1e-6] - 1.0).max() < 1.6e-8


def test_half_times_of_one_layer():
    data, _ = problem(1.0)
    torch.manual_seed(0)
    errors = trained(deep_linear(8, 1, 1).double(), data, 0.5, 145, tm.record.every(1))["component_error"]
    half = (errors < 0.5 * errors.isel(time=0) * (1 + 1e-9)).values.argmax(0)
    assert half.tolist() == np.ceil([1.0, 2.3, 4.8, 9.6, 18.9, 36.8, 71.5, 138.3]).astype(int).tolist()


def test_zero_weights_are_the_null():
    data, target = problem(0.7)
    net = deep_linear(8, 5, 2).double()
    for layer in net:
        nn.init.zeros_(layer.weight)
    found = measure(ComponentError(), net, data)
    assert found["component_error"].values == pytest.approx(found["component_error_null"].values)
    assert found["component_error_null"].values == pytest.approx(np.abs(target))
    assert not found["component_weight"].values.any()


def deep_runs(depth, width, scale, lr, steps, seeds=4):
    return tm.stack(
        [trained(wide(depth, width, s), problem(scale, s)[0], lr, steps, tm.record.every(4), s) for s in range(seeds)]
    )


def test_wide_deep_networks_learn_at_depth_times_the_rate():
    errors = deep_runs(2, 500, 0.1, 0.05, 200)["component_error"]
    ratio = rates(errors) / -np.log(1.0 - 2 * 0.05 * VARIANCES)
    assert (np.abs(ratio - 1.0) < 0.25).all(), ratio


@pytest.mark.slow
def test_three_layers_learn_at_three_times_the_rate_unless_the_target_is_large():
    small, large = (rates(deep_runs(3, 500, s, 0.03, 200)["component_error"]) for s in (0.1, 3.0))
    expected = -np.log(1.0 - 3 * 0.03 * VARIANCES)
    assert (np.abs(small / expected - 1.0) < 0.25).all(), small / expected
    # Negative control: the intervention is one of small changes. Targets of unit weights break it by up to 2.7.
    assert (large / expected).max() > 1.5
    assert np.corrcoef(np.log(large), np.log(VARIANCES))[0, 1] > 0.9


def test_spread_over_seeds_falls_in_the_order_of_the_components():
    data, _ = problem(0.1)
    x, y = data.tensors(torch.float64)
    nets = [wide(2, 500, seed) for seed in range(6)]
    found, spread = principal_components(data.x), []
    for _ in range(140):
        spread.append(component_spread(np.stack([compact_weight(net).detach().numpy() for net in nets]), found))
        for net in nets:
            parameters = list(net.parameters())
            gradients = torch.autograd.grad(0.5 * (net(x)[:, 0] - y).square().mean(), parameters)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter -= 0.07 * gradient
    half = [int(np.argmax(np.array(spread)[:, i] < 0.5 * spread[0][i])) for i in range(6)]
    assert half[0] > 0
    assert (np.diff(half) > 0).all(), half


def test_spread_is_the_standard_deviation_of_the_recorded_weights():
    data, _ = problem(0.1)
    runs = tm.stack([trained(wide(2, 20, s), data, 0.07, 3, tm.record.every(1), s) for s in range(3)])
    along = runs["component_weight"].isel(time=-1, output=0)
    found = principal_components(data.x)
    weights = along.transpose("seed", "component").values @ found.directions
    assert component_spread(weights[:, None], found) == pytest.approx(along.std("seed", ddof=1).values)


def test_directions_that_never_vary_are_left_out():
    data, _ = problem(1.0)
    x = data.x.copy()
    x[:, 3] = 0.0
    found = measure(ComponentError(), deep_linear(8, 5, 2), tm.GroupedData(x, data.y, ["a"] * 32))
    assert found["component_error"].sizes["component"] == 7
    assert measure(ComponentError(3), deep_linear(8, 5, 2), data)["component_error"].sizes["component"] == 3


def test_what_it_cannot_read_is_refused():
    data, _ = problem(1.0)
    with pytest.raises(ValueError, match="Linear layers only"):
        measure("component-error", mlp(8, (4,), 1, bias=False), data)
    with pytest.raises(ValueError, match="Inputs should vary"):
        measure("component-error", deep_linear(2, 3, 2), tm.GroupedData(np.ones((40, 2)), np.arange(40.0), ["a"] * 40))
    with pytest.raises(ValueError, match="`components` should be at least 1"):
        ComponentError(0)
    with pytest.raises(ValueError, match="seeds at least 2"):
        component_spread(np.zeros((1, 1, 8)), principal_components(data.x))
