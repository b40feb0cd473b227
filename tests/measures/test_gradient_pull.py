"""Gradients of a linear regression are known in closed form; random groups are the null of themselves."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.measures.gradient_pull import GradientPull


def opposed(points=400, share=0.8):
    """Two groups whose teachers are opposite, seen by a student at zero."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(points, 3))
    group = np.where(np.arange(points) < share * points, "many", "few")
    y = np.where(group == "many", 1.0, -2.0) * x[:, 0]
    model = nn.Linear(3, 1, bias=False)
    nn.init.zeros_(model.weight)
    return model, tm.GroupedData(x, y, group)


def test_gradients_of_a_linear_student():
    model, data = opposed()
    readings = tm.measure(GradientPull(), model, data)
    slopes = {g: -(data.y[:, None] * data.x)[data.of_group(g)].mean(0) for g in data.groups}
    for group, slope in slopes.items():
        assert float(readings["gradient_norm"].sel(group=group)) == pytest.approx(np.linalg.norm(slope), rel=1e-5)
    whole = 0.2 * slopes["few"] + 0.8 * slopes["many"]
    part = 0.2 * slopes["few"] @ whole / (whole @ whole)
    assert float(readings["gradient_pull"].sel(group="few")) == pytest.approx(part, rel=1e-4)
    assert float(readings["gradient_pull"].sum()) == pytest.approx(1.0)
    assert float(readings["gradient_cosine"].sel(pair="few vs many")) < -0.95
    assert "class_gradient_norm" not in readings


def test_a_negative_part_means_that_the_common_step_hurts():
    model, data = opposed()
    readings = tm.measure(GradientPull(), model, data)
    assert float(readings["gradient_pull"].sel(group="few")) < 0
    x, y = data.tensors()
    before = 0.5 * (model(x)[:, 0] - y).square()
    (slope,) = torch.autograd.grad(before.mean(), [model.weight])
    with torch.no_grad():
        model.weight -= 0.01 * slope
    after = 0.5 * (model(x)[:, 0] - y).square()
    few = data.of_group("few")
    assert after[few].mean() > before[few].mean()
    assert after.mean() < before.mean()


def test_groups_of_one_distribution_pull_as_random_groups_do():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 3))
    data = tm.GroupedData(x, x[:, 0], np.arange(4000) % 2)
    model = nn.Linear(3, 1, bias=False)
    nn.init.zeros_(model.weight)
    readings = tm.measure(GradientPull(), model, data)
    for name in ("gradient_norm", "gradient_pull", "gradient_cosine"):
        # Lengths near 1 have a standard error of sqrt(2 / 2000) = 0.03.
        assert readings[name].values == pytest.approx(readings[f"{name}_null"].values, abs=0.13), name


def test_an_imbalanced_class_at_the_start_pulls_against_the_rest():
    """The mechanism of the minority drop: the common gradient is the majority's."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [500, 25])
    with_small = pytest.warns(UserWarning, match="fewer than 30")
    with with_small:
        data = tm.GroupedData(np.c_[rng.normal(size=(525, 4)), np.ones(525)], y, "label")
    model = nn.Linear(5, 2, bias=False)
    nn.init.zeros_(model.weight)
    readings = tm.measure(GradientPull(), model, data)
    assert float(readings["class_gradient_cosine"].sel({"class": 0})) > 0.9
    assert float(readings["class_gradient_cosine"].sel({"class": 1})) < -0.7
