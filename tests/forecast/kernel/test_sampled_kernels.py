"""Kernels from a sample of the weights: all weights are the exact kernel, a part of them comes near."""

import numpy as np
import pytest
import torch

import tiltmeter as tm
from networks import resnet18, small_cnn
from tiltmeter.forecast.kernel import sampled_kernels as sampling
from tiltmeter.forecast.kernel.sampled_kernels import sampled_kernels, strata
from tiltmeter.modules.tangent.kernel import kernels

pytestmark = [
    pytest.mark.filterwarnings("ignore:`model` has batch normalisation"),
    pytest.mark.filterwarnings("ignore:Groups with fewer"),
    pytest.mark.filterwarnings("ignore:The linearisation of the network"),
]


def pictures(points=80, size=8, classes=3):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(points, 3, size, size)).astype(np.float32)
    return tm.GroupedData(x, rng.integers(0, classes, points), np.where(np.arange(points) % 2 == 0, "a", "b"))


def network():
    torch.manual_seed(0)
    return small_cnn(3, 3, 16, normalise=True).eval()


@pytest.mark.parametrize("outputs", ["full", "trace"])
def test_all_weights_are_the_exact_kernel_and_a_part_comes_near(outputs):
    model = network()
    x, seen = torch.randn(12, 3, 8, 8), torch.randn(5, 3, 8, 8)
    exact = kernels(model, x, seen, outputs=outputs)
    for count, far in ((10**6, 1e-5), (4000, 0.1)):
        found = sampled_kernels(model, x, seen, strata(model, count, 0), outputs, None)
        for mine, true in zip(found, exact, strict=True):
            assert mine.shape == true.shape
            assert np.linalg.norm(mine - true) < far * np.linalg.norm(true)


def test_large_networks_are_forecast_from_a_sample_and_say_so(monkeypatch):
    train, held_out = pictures().split(0.4)
    recipe = tm.Recipe(lr=0.01, steps=30, batch=None)
    exact = tm.tangent(network(), train, held_out, progress=False)
    monkeypatch.setattr(sampling, "OFTEN", 0)  # as if memory were too small for any gradients
    monkeypatch.setattr(sampling, "WEIGHTS", 10**6)
    with pytest.warns(UserWarning, match="too large for exact kernels: these are estimated from"):
        found = tm.tangent(network(), train, held_out, progress=False)
    assert found.settings["weights"] == sum(p.numel() for p in network().parameters())
    one, other = (given.forecast(recipe) for given in (exact, found))
    assert float(abs(one["loss"] - other["loss"]).max()) < 1e-4
    assert {"class_accuracy"} <= set(other)


@pytest.mark.slow
def test_a_residual_network_of_ten_outputs():
    """Its exact kernel takes hours: every layer has a gradient for every output of every point."""
    train, held_out = pictures(60, 32, 10).split(0.5)
    torch.manual_seed(0)
    model = resnet18(3, 10)
    with pytest.warns(UserWarning, match=r"estimated from 2\d,\d\d\d of its weights"):
        found = tm.tangent(model, train, held_out, sample=30, progress=False)
    assert found.kernel.shape == (300, 300)
    told = found.forecast(tm.Recipe(lr=0.0005, steps=20, batch=None))
    assert np.isfinite(told["loss"].values).all()
