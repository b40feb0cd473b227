"""The networks of the experiments: shapes, initial scales, and what they amount to."""

import pytest
import torch

from networks import resnet18, small_cnn, transformer
from tiltmeter.modules.networks import activation, compact_weight, deep_linear, mlp, two_layer


def test_compact_weight_acts_as_the_network():
    net = deep_linear(8, 30, 3, 2)
    x = torch.randn(5, 8)
    assert torch.allclose(net(x), x @ compact_weight(net).T, atol=1e-6)


def test_compact_weight_refuses_what_is_not_linear():
    with pytest.raises(ValueError, match="with a bias"):
        compact_weight(torch.nn.Linear(2, 1))
    with pytest.raises(ValueError, match="Found ReLU"):
        compact_weight(mlp(2, (3,), 1, bias=False))
    with pytest.raises(ValueError, match="Found none"):
        compact_weight(torch.nn.Sequential())


class Own(torch.nn.Module):
    """Two Linear layers with something between that only the forward knows of."""

    def __init__(self, between):
        super().__init__()
        self.first = torch.nn.Linear(6, 5, bias=False)
        self.second = torch.nn.Linear(5, 2, bias=False)
        self.between = between

    def forward(self, x):
        return self.second(self.between(self.first(x)))


def test_compact_weight_tries_a_forward_that_it_does_not_know():
    linear = Own(lambda hidden: hidden)
    assert torch.allclose(compact_weight(linear), linear.second.weight @ linear.first.weight)
    assert compact_weight(Own(lambda hidden: hidden).bfloat16()).shape == (2, 6)
    for between in (torch.relu, torch.tanh, lambda hidden: hidden + 1.0, lambda hidden: hidden.reshape(-1)):
        with pytest.raises(ValueError, match=r"Linear layers only, one after the other. Found that Own computes"):
            compact_weight(Own(between))


def test_deep_linear_has_unit_gain_per_layer():
    torch.manual_seed(0)
    weight = deep_linear(100, 1000, 2)[0].weight
    assert weight.var().item() == pytest.approx(1 / 100, rel=0.05)


def test_two_layer_is_balanced_and_of_the_scale_asked_for():
    torch.manual_seed(0)
    net = two_layer(10, 4000, scale=1e-3)
    assert torch.allclose(net.u.abs(), net.v.norm(dim=1))
    assert net.v.pow(2).sum(1).mean().sqrt().item() == pytest.approx(1e-3, rel=0.02)
    assert net(torch.randn(3, 10, dtype=torch.float64)).shape == (3,)


@pytest.mark.parametrize("size", [32, 48, 64])
def test_resnet_takes_any_image(size):
    assert resnet18(3, 2, width=4)(torch.zeros(2, 3, size, size // 2)).shape == (2, 2)


def test_resnet_halves_the_image_three_times_only():
    """A stem of 3 x 3 without pooling: 32 pixels become 4, where the stem for large photographs leaves 1."""
    net = resnet18(3, 10, width=4)
    assert net[0].kernel_size == (3, 3)
    assert net[:-3](torch.zeros(1, 3, 32, 32)).shape == (1, 32, 4, 4)


def test_balance_survives_training():
    """Gradient flow keeps u_j^2 - |v_j|^2; small steps move it by their square only, while the weights grow tenfold."""
    torch.manual_seed(0)
    net, x = two_layer(5, 8, scale=0.1), torch.randn(64, 5, dtype=torch.float64)
    before = net.u.norm().item()
    for _ in range(2000):
        loss = (net(x) - x[:, 0].abs()).square().mean() / 2
        grads = torch.autograd.grad(loss, [net.u, net.v])
        with torch.no_grad():
            for parameter, grad in zip([net.u, net.v], grads, strict=True):
                parameter -= 0.01 * grad
    assert net.u.norm().item() > 3 * before
    assert (net.u**2 - net.v.pow(2).sum(1)).abs().max().item() < 0.01 * net.u.pow(2).max().item()


def test_small_cnn_and_transformer_shapes():
    assert small_cnn(3, 2, 4, normalise=True)(torch.zeros(2, 3, 32, 32)).shape == (2, 2)
    assert transformer(4, features=5)(torch.zeros(3, 4, 5)).shape == (3, 1)


def test_impossible_networks_are_refused():
    with pytest.raises(ValueError, match="`depth` should be at least 1"):
        deep_linear(2, 2, 0)
    with pytest.raises(ValueError, match="`scale` should be positive"):
        two_layer(2, 2, 0.0)
    with pytest.raises(ValueError, match=r"`width` should be a multiple of `heads`. Found width = 30, heads = 4."):
        transformer(4, width=30)
    with pytest.raises(KeyError, match="There are: relu, tanh"):
        activation("step")
