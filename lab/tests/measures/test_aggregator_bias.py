"""Aggregator bias: gradients by hand, the group that clipping drops, and no bias where all gradients are alike."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.aggregator_bias import AggregatorBias, removed


def test_the_definition_by_hand():
    """Three gradients of lengths 1, 1 and 5; the median length is 1, the median of coordinates (1, 0)."""
    each = np.array([[1.0, 0.0], [1.0, 0.0], [3.0, 4.0]])
    mean, clipped = np.array([5 / 3, 4 / 3]), (np.array([2.0, 0.0]) + [0.6, 0.8]) / 3
    own = [np.array([1.0, 0.0]), np.array([3.0, 4.0]) / 5]
    found = removed(each, np.array([0, 0, 1]), 2)
    for row, aggregate in zip(found, (clipped, np.array([1.0, 0.0])), strict=True):
        assert row == pytest.approx([(mean - aggregate) @ unit / np.linalg.norm(mean) for unit in own])


def test_clipping_drops_the_group_of_long_gradients():
    rng = np.random.default_rng(0)
    group = np.repeat(["short", "long"], [160, 40])
    x = rng.normal(size=(200, 2)) + np.where(group == "long", 8.0, 0.0)[:, None] * [0.0, 1.0] + [2.0, 0.0]
    sign = np.tile([1.0, -1.0], 100)  # of point and label: the gradient does not change
    data = tm.GroupedData(sign[:, None] * x, sign, group)
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    found = lab.measure(AggregatorBias(points=200), model, data, tm.Square())
    for name in ("clipped", "median"):
        bias, null = (found[key].sel(aggregator=name) for key in ("aggregator_bias", "aggregator_bias_null"))
        assert float(bias.sel(group="long") - bias.sel(group="short")) > 0.2
        assert abs(float(null.sel(group="long") - null.sel(group="short"))) < 0.1


def test_the_null_value_hardly_depends_on_the_permutations():
    """One permutation gives this rare group a value between 0.07 and 0.55, with a scatter of 0.16."""
    rng = np.random.default_rng(1)
    with pytest.warns(UserWarning, match="fewer than 30 points"):
        data = tm.GroupedData(rng.normal(size=(96, 6)), np.tile([1.0, -1.0], 48), ["rare"] * 12 + ["common"] * 84)
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    nulls = [
        lab.measure(AggregatorBias(seed=seed), model, data, tm.Square())["aggregator_bias_null"].sel(group="rare")
        for seed in range(4)
    ]
    assert float(np.std([null.sel(aggregator="clipped").item() for null in nulls])) < 0.05


def test_nothing_is_removed_where_all_gradients_are_alike():
    data = tm.GroupedData([[1.0, 1.0], [-1.0, -1.0]] * 30, [1, -1] * 30, ["a", "a", "b"] * 20)
    found = lab.measure(AggregatorBias(), nn.Linear(2, 1, bias=False), data, tm.Square())
    assert found["aggregator_bias"].values == pytest.approx(0.0, abs=1e-6)


def test_gradients_are_those_of_autograd_and_bad_input_is_one_sentence():
    x, group = [[1.0], [-3.0], [-1.0], [3.0]] * 15, ["a", "b"] * 30
    model, data = nn.Linear(1, 1, bias=False), tm.GroupedData(x, [1, -1, -1, 1] * 15, group)
    w = model.weight.item()
    each = np.array([[w - 1.0], [3 * (3 * w - 1.0)]] * 30)
    expected = removed(each, np.arange(60) % 2, 2)
    found = lab.measure(AggregatorBias(), model, data, tm.Square())["aggregator_bias"]
    assert found.values == pytest.approx(expected, abs=1e-5)
    assert torch.is_grad_enabled()
    with pytest.raises(ValueError, match="`points` should be at least 2"):
        AggregatorBias(points=1)
