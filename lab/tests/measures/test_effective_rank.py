"""Effective rank: identities, depth, the orthogonal control, conventions, architectures."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import resnet18, small_cnn, transformer
from tiltmeter.modules.networks import deep_linear, mlp
from tiltmeter_lab.measures.effective_rank import (
    EffectiveRank,
    Features,
    Gram,
    LinearMap,
    gaussian_entropy,
    prepared,
    singular_values,
    spectral_entropy,
)


def rank(matrix):
    return math.exp(spectral_entropy(singular_values(matrix)))


def product(factors):
    found = factors[0]
    for factor in factors[1:]:
        found = factor @ found
    return found


def test_identities():
    torch.manual_seed(0)
    assert rank(torch.eye(10)) == pytest.approx(10, abs=1e-6)
    assert rank(torch.outer(torch.randn(9), torch.randn(7))) == pytest.approx(1, abs=1e-6)
    assert rank(torch.outer(torch.randn(900), torch.randn(7))) == pytest.approx(1, abs=1e-6)
    orthogonal = [torch.linalg.qr(torch.randn(64, 64, dtype=torch.float64))[0] for _ in range(16)]
    assert rank(product(orthogonal)) == pytest.approx(64, abs=1e-6)


@pytest.mark.parametrize("shape", [(300, 20), (20, 300), (40, 30), (1, 8), (8, 1)])
def test_the_smaller_side_gives_the_same_values(shape):
    matrix = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(singular_values(matrix), torch.linalg.svdvals(matrix), rtol=1e-9)


def test_depth_lowers_the_rank_of_gaussian_products_and_not_of_orthogonal_ones():
    """Reference: 51.4, 42.8, 31.6, 21.0, 12.1 for depths 1 to 16 at width 64, 10 draws."""
    torch.manual_seed(0)
    expected = {1: 51.4, 2: 42.8, 4: 31.6, 8: 21.0, 16: 12.1}
    means = []
    for depth, reference in expected.items():
        ranks = [rank(product([torch.randn(64, 64).double() / 8 for _ in range(depth)])) for _ in range(10)]
        # The reference is a mean of ten draws too: both errors count, and its last digit.
        assert abs(np.mean(ranks) - reference) < 4 * np.std(ranks, ddof=1) * math.sqrt(2 / 10) + 0.05
        means.append(np.mean(ranks))
        control = product([torch.linalg.qr(torch.randn(64, 64).double())[0] for _ in range(depth)])
        assert rank(control) == pytest.approx(64, abs=1e-6)
    assert (np.diff(means) < -5).all()
    assert math.exp(gaussian_entropy(64, 64)) == pytest.approx(51.4, abs=1.5)


def test_depth_and_not_width_sets_the_share_of_the_width():
    """Reference: .321, .324, .327 of the width at depth 8 for widths 16, 64, 256."""
    torch.manual_seed(0)
    for width, reference, draws in ((16, 0.321, 40), (64, 0.324, 10), (128, 0.326, 4)):
        shares = [
            rank(product([torch.randn(width, width).double() / width**0.5 for _ in range(8)])) / width
            for _ in range(draws)
        ]
        # Ten draws stand behind the reference.
        error = np.std(shares, ddof=1) * math.sqrt(1 / draws + 1 / 10)
        assert abs(np.mean(shares) - reference) < 4 * error + 0.0005


def test_both_conventions_and_the_null_are_read():
    data = tm.GroupedData(np.random.default_rng(0).normal(size=(60, 8)), [0, 1] * 30, [0] * 60)
    found = lab.measure(EffectiveRank(LinearMap()), deep_linear(8, 8, 3, 2), data)
    assert found["effective_rank"].item() == pytest.approx(math.exp(found["spectral_entropy"].item()))
    assert found["effective_rank_null"].item() == pytest.approx(math.exp(found["spectral_entropy_null"].item()))
    assert 1 <= found["effective_rank"] <= 2


def test_features_gram_and_centring():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 16)).astype(np.float32)
    data = tm.GroupedData(x, rng.integers(0, 2, 500), [0] * 500)
    torch.manual_seed(0)
    model = mlp(16, (64,), 2)

    def read(of):
        return lab.measure(EffectiveRank(of), model, data)["effective_rank"].item()

    hidden = torch.relu(model[1](torch.as_tensor(x))).detach().double()
    assert read(Features()) == pytest.approx(rank(hidden))
    assert read(Features("2")) == pytest.approx(read(Features()))
    assert read(Gram(cosine=False)) == pytest.approx(
        math.exp(spectral_entropy(torch.linalg.svdvals(hidden @ hidden.T))), rel=1e-6
    )
    unit = torch.nn.functional.normalize(hidden, dim=1)
    assert read(Gram()) == pytest.approx(math.exp(spectral_entropy(torch.linalg.svdvals(unit @ unit.T))), rel=1e-6)
    # The positive mean of ReLU features is part of a low rank: without it the rank is higher.
    assert read(Gram(centred=True)) > 1.5 * read(Gram())
    assert read(Gram()) < read(Features(cosine=True))
    assert prepared(hidden, True, False).mean(0).abs().max() < 1e-12


def test_architectures_and_no_trace_of_hooks():
    rng = np.random.default_rng(0)
    pictures = tm.GroupedData(rng.normal(size=(60, 1, 8, 8)).astype(np.float32), [0, 1] * 30, [0] * 60)
    series = tm.GroupedData(rng.integers(0, 3, (60, 6)), [0, 1] * 30, [0] * 60)
    models = (
        (small_cnn(1, 2), pictures, 64),
        (resnet18(1, 2, 4), pictures, 32),
        (transformer(6, vocabulary=3), series, 32),
    )
    for model, data, width in models:
        found = lab.measure("effective-rank", model, data)
        assert 1 <= found["effective_rank"] <= width
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with pytest.raises(ValueError, match="A compact weight needs Linear layers"):
        lab.measure(EffectiveRank(LinearMap()), small_cnn(1, 2), pictures)
    with pytest.raises(KeyError, match=r"No module 'body'. There are: 0, 1, 2"):
        lab.measure(EffectiveRank(Features("body")), small_cnn(1, 2), pictures)
    bare = nn.Sequential(nn.Conv2d(1, 2, 8), nn.Flatten())
    with pytest.raises(ValueError, match="The model calls no Linear layer: name the layer"):
        lab.measure(EffectiveRank(), bare, pictures)
    assert lab.measure(EffectiveRank(Features("0")), bare, pictures)["effective_rank"] <= 2


class HeadFirst(nn.Module):
    """Registers its head before its body, and has an attention module that returns more than features."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.mean(x))

    def mean(self, x):
        return torch.relu(self.body(self.attention(x, x, x)[0])).mean(1)


def test_the_last_layer_is_the_one_called_last():
    rng = np.random.default_rng(0)
    data = tm.GroupedData(rng.normal(size=(60, 5, 4)).astype(np.float32), [0, 1] * 30, [0] * 60)
    torch.manual_seed(0)
    model = HeadFirst().eval()
    x = torch.as_tensor(data.x)
    with torch.no_grad():
        expected = rank(model.mean(x))
        attended = rank(model.attention(x, x, x)[0].flatten(1))
    assert lab.measure("effective-rank", model, data)["effective_rank"].item() == pytest.approx(expected, rel=1e-5)
    named = lab.measure(EffectiveRank(Features("attention")), model, data)
    assert named["effective_rank"].item() == pytest.approx(attended, rel=1e-5)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_degenerate_features_are_finite():
    data = tm.GroupedData(np.ones((60, 4)), [0, 1] * 30, [0] * 60)
    model = mlp(4, (5,), 2)
    for of in (Features(), Features(centred=True), Gram(), Gram(centred=True)):
        for points in (data, data.take([0])):
            found = lab.measure(EffectiveRank(of), model, points)
            assert found["effective_rank"] == pytest.approx(1)
            assert all(np.isfinite(curve).all() for curve in found.values())
    for parameter in model.parameters():
        parameter.data.zero_()
    assert lab.measure(EffectiveRank(Gram()), model, data)["effective_rank"] == 1
    model[1].weight.data.fill_(float("nan"))
    with pytest.raises(ValueError, match="A spectrum needs finite numbers"):
        lab.measure(EffectiveRank(), model, data)
