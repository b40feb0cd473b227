"""guessing-bias: by hand, and the known difference between activations."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.measures.guessing_bias import GuessingBias


def test_shares_by_hand():
    model = nn.Identity()
    scores = 5 * np.eye(3)[[0, 0, 0, 1, 1, 2] * 10] - 1
    data = tm.GroupedData(scores, [0, 1, 2, 0, 1, 2] * 10, ["all"] * 60)
    found = lab.measure(GuessingBias(), model, data)
    assert found["predicted_share"].values == pytest.approx([3 / 6, 2 / 6, 1 / 6])
    assert found["predicted_share_null"].values == pytest.approx([1 / 3] * 3)
    assert float(found["guessing_bias"]) == pytest.approx((1 / 2 - 1 / 3) / (2 / 3))


def mean_bias(activation, depth, seeds=30):
    """Over initial weights, without biases, on symmetric inputs."""
    x = np.random.default_rng(0).normal(size=(400, 30))
    data = tm.GroupedData(x, [0, 1] * 200, ["all"] * 400)
    found = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = mlp(30, (60,) * depth, 2, activation, bias=False)
        found.append(float(lab.measure(GuessingBias(), model, data)["guessing_bias"]))
    return np.mean(found), np.std(found) / np.sqrt(seeds)


def test_untrained_relu_networks_prefer_a_class_and_tanh_networks_do_not():
    """An odd network on symmetric points is balanced up to the draw of the points: about 1/sqrt(400)."""
    relu, error = mean_bias("relu", 3)
    tanh, _ = mean_bias("tanh", 3)
    assert tanh < 0.1
    assert relu - 3 * error > 3 * tanh


def test_regression_is_refused():
    data = tm.GroupedData(np.zeros((40, 2)), np.linspace(0, 1, 40), ["all"] * 40)
    with pytest.raises(ValueError, match="GuessingBias needs"):
        lab.measure(GuessingBias(), nn.Linear(2, 1), data, tm.Square())
