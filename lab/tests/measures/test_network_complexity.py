"""network-complexity: exact functions, random networks of every activation, and scale."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from networks import transformer
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.measures.measure import measure
from tiltmeter_lab.measures.network_complexity import NetworkComplexity, grid_frequency, symbols

SQUARE = NetworkComplexity("inputs", extent=1.0)


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(0)
    return tm.GroupedData(rng.normal(size=(60, 2)), rng.normal(size=60), ["a"] * 60)


def random_network(nonlinearity, magnitude, seed, bias=True):
    """Three layers of 64 with weights and biases uniform, `magnitude` times the usual width."""
    torch.manual_seed(seed)
    net = mlp(2, (64, 64, 64), 1, nonlinearity, bias).double()
    with torch.no_grad():
        for layer in net:
            if isinstance(layer, nn.Linear):
                wide = magnitude * (6 / (layer.in_features + layer.out_features)) ** 0.5
                for parameter in layer.parameters():
                    parameter.uniform_(-wide, wide)
    return net


def frequencies(nonlinearity, plane, magnitudes=(0.5, 1.0, 2.0, 5.0, 10.0)):
    return np.array(
        [
            np.mean([measure(SQUARE, random_network(nonlinearity, m, s), plane)["grid_frequency"] for s in range(4)])
            for m in magnitudes
        ]
    )


def test_random_relu_networks_are_simple_at_any_magnitude(plane):
    found = frequencies("relu", plane)
    assert found.max() / found.min() < 1.5
    assert found.max() < 0.1


def test_random_sine_networks_are_not(plane):
    """Negative control: the simplicity is of the activation, not of networks."""
    found = frequencies("sine", plane, (0.5, 5.0, 10.0))
    assert found[0] < 0.05
    assert found[1] > 3 * found[0]
    assert found[2] > 0.4


def test_tanh_lies_between(plane):
    found = frequencies("tanh", plane, (1.0, 10.0))
    assert 3 * found[0] < found[1] < 0.4


def test_sizes_grow_with_frequency(plane):
    calm, wild = (measure(SQUARE, random_network("sine", m, 0), plane) for m in (1.0, 10.0))
    assert wild["lempel_ziv"] > 2 * calm["lempel_ziv"]
    assert calm["lempel_ziv"] < 2 * calm["lempel_ziv_null"]


def test_a_bias_free_relu_network_does_not_know_its_scale(plane):
    small, twice, large = (random_network("relu", m, 1, bias=False) for m in (1.0, 2.0, 7.3))
    side = torch.linspace(-1, 1, 20, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    with torch.no_grad():
        a, b, c = (net(grid)[:, 0] / net(grid).abs().max() for net in (small, twice, large))
    assert torch.equal(a, b)  # a power of two rounds nothing
    assert (a - c).abs().max() < 64 * np.finfo(float).eps  # sums of 64 terms
    first, second = (measure(SQUARE, net, plane) for net in (small, large))
    assert first["grid_frequency"].item() == pytest.approx(second["grid_frequency"].item(), rel=1e-9)
    assert first["lempel_ziv"].item() == second["lempel_ziv"].item()


def test_a_linear_model_is_its_own_null(plane):
    found = measure(SQUARE, nn.Linear(2, 1).double(), plane)
    assert found["grid_frequency"].item() == pytest.approx(found["grid_frequency_null"].item(), abs=1e-4)
    assert 0.01 < found["grid_frequency"].item() < 0.06
    assert found["lempel_ziv"].item() == pytest.approx(found["lempel_ziv_null"].item(), rel=0.05)


def test_noise_and_tones():
    side = np.pi * (np.arange(64) + 0.5) / 64
    assert grid_frequency(np.cos(5 * side)[:, None] + np.zeros(64)) == pytest.approx(5 / (63 * 2**0.5))
    noise = np.random.default_rng(0).normal(size=(64, 64))
    centre = np.hypot(*np.mgrid[:64, :64]).mean() / (63 * 2**0.5)
    assert grid_frequency(noise) == pytest.approx(centre, rel=0.02)


def test_zero_weights_are_flat(plane):
    net = nn.Linear(2, 1)
    nn.init.zeros_(net.weight)
    found = measure(SQUARE, net, plane)
    assert found["grid_frequency"].item() == 0.0
    assert found["lempel_ziv"].item() == 90  # 90 * 91 / 2 <= 4096 < 91 * 92 / 2
    assert all(np.isfinite(values).all() for values in found.values())


def test_levels_are_equal_steps():
    assert symbols(np.linspace(0, 1, 8)[:, None], 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert symbols(np.array([[0.0, 1.0], [3.0, 2.0]]), 2).tolist() == [1, 0]


@pytest.mark.parametrize("chosen", ["components", "points"])
def test_any_network_of_numbers(network, chosen):
    model, shape = network
    rng = np.random.default_rng(0)
    images = tm.GroupedData(rng.normal(size=(40, *shape)), np.arange(40) % 4, ["a"] * 40)
    with tm.Probe(
        model,
        images,
        watch=tm.Watch(when=tm.record.every(1), measures=(NetworkComplexity(chosen, points=12),)),
        budget=None,
    ) as probe:
        probe(0)
    run = probe.trajectory()
    for name in ("grid_frequency", "lempel_ziv", "grid_frequency_null", "lempel_ziv_null"):
        assert run[name].dims == ("time",)
        assert np.isfinite(run[name]).all()


def test_what_it_cannot_read_is_refused(plane):
    three = tm.GroupedData(np.random.default_rng(0).normal(size=(40, 3)), [0, 1] * 20, ["a"] * 40)
    with pytest.raises(ValueError, match="should have two inputs"):
        measure(SQUARE, nn.Linear(3, 2), three)
    line = tm.GroupedData(np.linspace(0, 1, 40)[:, None] * [1.0, 2.0], [0, 1] * 20, ["a"] * 40)
    with pytest.raises(ValueError, match="Inputs should vary in two directions"):
        measure("network-complexity", nn.Linear(2, 2), line)
    tokens = tm.GroupedData(np.zeros((40, 3), dtype=np.int64), [0, 1] * 20, ["a"] * 40)
    with pytest.raises(ValueError, match="Found integer inputs"):
        measure("network-complexity", transformer(3, vocabulary=2, outputs=2), tokens)
    with pytest.raises(ValueError, match="through three points"), pytest.warns(UserWarning, match="fewer"):
        measure(NetworkComplexity("points"), nn.Linear(2, 2), tm.GroupedData(np.eye(2), [0, 1], ["a", "a"]))
    with pytest.raises(ValueError, match="`plane` should be components, points or inputs"):
        NetworkComplexity("axes")
    with pytest.raises(ValueError, match="`levels` should be at least 2"):
        NetworkComplexity(levels=1)
