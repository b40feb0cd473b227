"""A twin is the same architecture with fewer units, everywhere or nowhere."""

import pytest
import torch
from torch import nn

from networks import plain_cnn, resnet18, small_cnn, transformer
from tiltmeter.forecast.twin.cut import cut
from tiltmeter.forecast.twin.representative import POINTS
from tiltmeter.modules.networks import deep_linear, mlp, two_layer


class Recurrent(nn.Module):
    def __init__(self, kind, **given):
        super().__init__()
        self.inner = kind(5, 32, batch_first=True, **given)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.inner(x)[0][:, -1])


class Reshaping(nn.Module):
    """A fixed reshape in the middle: its dimension cannot be cut, the next one can."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = nn.Linear(5, 32), nn.Linear(8, 32), nn.Linear(32, 1)

    def forward(self, x):
        parts = torch.relu(self.one(x)).reshape(-1, 4, 8)
        return self.three(torch.relu(self.two(parts)).mean(1))


def normalised():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.GroupNorm(4, 32),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, groups=32),
        nn.Conv2d(32, 64, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


NETWORKS = {
    "mlp": (lambda: mlp(20, (32, 64), 3), (2, 20), {"1": (8, 32), "3": (16, 64)}),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(5, 64), nn.LayerNorm(64), nn.PReLU(64), nn.Linear(64, 1)),
        (2, 5),
        {"0": (16, 64)},
    ),
    "deep linear": (lambda: deep_linear(8, 64, 3), (2, 8), {"0": (16, 64), "1": (16, 64)}),
    "plain cnn": (lambda: plain_cnn((1, 8, 8), 1, 32), (2, 64), {"1": (8, 32), "3": (16, 64)}),
    "small cnn": (lambda: small_cnn(3, 2, 32, True), (2, 3, 8, 8), {"0": (8, 32), "3": (16, 64), "6": (32, 128)}),
    "group norm, depthwise": (normalised, (2, 3, 9, 9), {"3": (8, 32), "4": (16, 64)}),
    "resnet": (lambda: resnet18(3, 2, 16), (2, 3, 8, 8), {"0": (8, 16), "10.main.0": (32, 128)}),
    "transformer": (
        lambda: transformer(6, features=4, width=64, heads=8, layers=1),
        (2, 6, 4),
        {"encoder.layers.0.linear1": (64, 256), "encoder.layers.0.linear2": (16, 64)},
    ),
    "lstm": (lambda: Recurrent(nn.LSTM), (2, 7, 5), {"inner": (8, 32)}),
    "gru": (lambda: Recurrent(nn.GRU, num_layers=2), (2, 7, 5), {"inner": (8, 32)}),
}


@pytest.mark.parametrize("points", [2, POINTS], ids=["units by chance", "representative units"])
@pytest.mark.parametrize("name", NETWORKS)
def test_units_are_cut_from_layer_to_layer(name, points):
    make, (_, *shape), expected = NETWORKS[name]
    model, x = make().eval(), torch.randn(points, *shape)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    found = cut(model, x, 0.25, seed=0)
    assert expected.items() <= found.cut.items()
    assert not found.whole
    assert found.model(x).shape == model(x).shape
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    # What was cut of a parameter is what its shape says.
    for key, parameter in found.model.named_parameters():
        share = found.shares.get(key, (1.0, 1.0))
        assert parameter.numel() == pytest.approx(model.get_parameter(key).numel() * share[0] * share[1])


def test_tokens_positions_and_whole_heads_are_cut():
    model = transformer(6, vocabulary=5, width=64, heads=8)
    found = cut(model, torch.randint(5, (POINTS, 6)), 0.25, seed=0)
    assert found.model.embed.weight.shape == (5, 16)
    assert found.model.positions.shape == (6, 16)
    assert found.model.encoder.layers[0].self_attn.num_heads == 2
    assert found.shares["embed.weight"] == (0.25, 1.0)


def test_two_heads_stay_even_of_a_small_share():
    found = cut(transformer(6, features=4, width=32, heads=4), torch.zeros(2, 6, 4), 1 / 16, seed=0)
    assert found.model.encoder.layers[0].self_attn.num_heads == 2


def test_a_dimension_that_cannot_be_cut_stays_whole():
    found = cut(Reshaping(), torch.randn(2, 5), 0.25, seed=0)
    assert found.model.one.out_features == 32
    assert found.model.three.in_features == 8


def test_other_seeds_choose_other_units():
    model = mlp(5, (64,), 1)
    one, other = (cut(model, torch.zeros(2, 5), 0.25, seed).model for seed in (0, 1))
    assert not torch.equal(one[1].weight, other[1].weight)


def test_weights_outside_layers_and_tied_weights_are_left_alone():
    assert not cut(two_layer(5, 40, dtype=torch.float32), torch.randn(2, 5), 0.25, seed=0).cut
    tied = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    tied[2].weight = tied[0].weight
    assert not cut(tied, torch.randn(2, 32), 0.25, seed=0).cut
