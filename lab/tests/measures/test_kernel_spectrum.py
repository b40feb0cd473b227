"""kernel-spectrum: a linear model by hand, wide networks on the circle by theory, and any network."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from networks import small_cnn
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.sines import Sines, sines
from tiltmeter_lab.measures.circle import circle_eigenvalues
from tiltmeter_lab.measures.kernel_spectrum import KernelSpectrum
from tiltmeter_lab.measures.measure import measure


class FirstLayer(nn.Module):
    """Two layers of ReLU units, the first trained; signs of the second alternate, biases start at zero."""

    def __init__(self, units, bias, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.first = nn.Linear(2, units, bias=bias, dtype=torch.float64)
        with torch.no_grad():
            self.first.weight.normal_()
            if bias:
                self.first.bias.zero_()
        self.signs = torch.where(torch.arange(units) % 2 == 0, 1.0, -1.0).double() / units**0.5

    def forward(self, x):
        return torch.relu(self.first(x)) @ self.signs


FREQUENCIES = tuple(range(1, 9))


@pytest.fixture(scope="module")
def circle():
    return sines(Sines((1, 2)), 128, circle=True)


def along(bias, circle):
    """Every unit sees the whole circle, so that the mean over cos and sin hardly depends on the weights drawn."""
    chosen = KernelSpectrum(frequencies=FREQUENCIES)
    return measure(chosen, FirstLayer(2000, bias, 0), circle)["frequency_eigenvalue"].values


def test_wide_networks_with_bias_follow_the_theory(circle):
    """The kernel of this network is (cos a + 1)(pi - a) / 2 pi: twice the one of the theory."""
    found = along(True, circle)
    assert found == pytest.approx(2 * circle_eigenvalues(8, points=128)[1:], rel=1e-3)
    assert (np.diff(found) < 0).all()
    odd = np.array([3, 5, 7])
    # On 128 points, high frequencies fold onto these: 1 % at k = 7.
    assert found[odd - 1] * odd**2 == pytest.approx(1 / np.pi**2, rel=0.02)


def test_wide_networks_without_bias_miss_odd_frequencies(circle):
    """Negative control: these are never learned, and the order of frequencies is broken."""
    found = along(False, circle)
    even, odd = found[[1, 3, 5]], found[[2, 4, 6]]
    assert (odd < 0.05 * even).all()


def test_a_linear_model_by_hand():
    """K = x x^T + 1 of a linear model with bias; eigenvalues are those of the second moments."""
    x = np.random.default_rng(0).normal(size=(60, 3)) * [3, 2, 1]
    data = tm.GroupedData(x, x @ [1.0, 0.0, 0.0], ["a"] * 60)
    found = measure(KernelSpectrum(modes=6), nn.Linear(3, 1).double(), data)
    ones = np.concatenate([x, np.ones((60, 1))], 1).astype(np.float32).astype(float)
    moments = np.sort(np.linalg.eigvalsh(ones.T @ ones / 60))[::-1]
    assert found["kernel_eigenvalue"].values[:4] == pytest.approx(moments, rel=1e-5)
    assert found["kernel_eigenvalue"].values[4:] == pytest.approx(0.0, abs=1e-6)
    # Labels are linear: all of them lie in the four modes.
    assert found["kernel_alignment"].sel(mode=4).item() == pytest.approx(1.0, abs=1e-6)
    assert found["kernel_eigenvalue_null"].values == pytest.approx((ones**2).sum() / 60 / 60)


def test_random_labels_lie_nowhere_in_particular():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 4))
    shares = [
        measure(KernelSpectrum(modes=20), nn.Linear(4, 1), tm.GroupedData(x, rng.normal(size=100), ["a"] * 100))
        for _ in range(6)
    ]
    mean = np.mean([found["kernel_alignment"].values for found in shares], 0)
    null = shares[0]["kernel_alignment_null"].values
    # Share of m of n directions: standard deviation sqrt(2 m / n^2), over 6 draws; five standard errors.
    assert (np.abs(mean - null) < 5 * np.sqrt(2 * np.arange(1, 21)) / 100 / np.sqrt(6)).all()


def test_the_null_of_the_alignment_is_what_shuffled_labels_have():
    """The leading mode of points far from the origin is nearly constant, and centred labels have nothing there."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 3)) + 3.0
    y = rng.integers(0, 2, 40)
    net = nn.Linear(3, 1, bias=False)
    found = [
        measure(KernelSpectrum(modes=3), net, tm.GroupedData(x, rng.permutation(y), ["a"] * 40)) for _ in range(200)
    ]
    shares = np.array([one["kernel_alignment"].values for one in found])
    null = found[0]["kernel_alignment_null"].values
    assert null[0] < 0.2 / 40
    assert (np.abs(shares.mean(0) - null) < 4 * shares.std(0) / np.sqrt(200)).all()


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: mlp(64, (16,), 4), (64,)),
        (lambda: small_cnn(1, 4, 4), (1, 8, 8)),
    ],
    ids=["mlp", "cnn"],
)
def test_any_network(make, shape):
    rng = np.random.default_rng(0)
    images = tm.GroupedData(rng.normal(size=(40, *shape)), np.arange(40) % 4, ["a"] * 40)
    with tm.Probe(
        make(), images, watch=tm.Watch(when=tm.record.every(1), measures=(KernelSpectrum(points=20),)), budget=None
    ) as probe:
        probe(0)
    run = probe.trajectory()
    assert run["kernel_eigenvalue"].dims == ("time", "mode")
    assert (run["kernel_eigenvalue"].diff("mode") <= 0).all()
    assert run["kernel_alignment"].max() <= 1 + 1e-9


def test_what_it_cannot_read_is_refused(circle):
    with pytest.raises(ValueError, match="`modes` should be at least 1"):
        KernelSpectrum(modes=0)
    with pytest.raises(ValueError, match="between 1 and half of points"):
        KernelSpectrum(points=16, frequencies=(8,))
    with pytest.raises(ValueError, match="should lie below half of 64 points"):
        measure(KernelSpectrum(points=100, frequencies=(40,)), nn.Linear(2, 1), circle)
    with pytest.raises(ValueError, match="should leave an even grid"):
        measure(KernelSpectrum(points=50, frequencies=(4,)), nn.Linear(2, 1), circle)
    dead = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    for parameter in dead.parameters():
        nn.init.zeros_(parameter)
    assert all(np.isfinite(v).all() for v in measure(KernelSpectrum(), dead, circle).values())
