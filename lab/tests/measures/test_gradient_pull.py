"""Gradients of a linear regression are known in closed form; random groups are the null of themselves."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.gradient_pull import GradientPull


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
    readings = lab.measure(GradientPull(), model, data)
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
    readings = lab.measure(GradientPull(), model, data)
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
    readings = lab.measure(GradientPull(), model, data)
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
    readings = lab.measure(GradientPull(), model, data)
    assert float(readings["class_gradient_cosine"].sel({"class": 0})) > 0.9
    assert float(readings["class_gradient_cosine"].sel({"class": 1})) < -0.7


def test_three_groups_against_the_gradient_of_every_point():
    rng = np.random.default_rng(2)
    group = rng.choice(["a", "b", "c"], 150, p=[0.5, 0.3, 0.2])
    data = tm.GroupedData(rng.normal(size=(150, 5)), rng.integers(0, 3, 150), group)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    x, y = torch.as_tensor(data.x).double(), torch.as_tensor(data.y.astype(int))
    each = []
    for i in range(150):
        loss = nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
        parts = torch.autograd.grad(loss, list(model.parameters()))
        each.append(torch.cat([part.reshape(-1) for part in parts]).numpy())
    each = np.stack(each)
    whole = each.mean(0)
    own = {name: each[data.of_group(name)].mean(0) for name in data.groups}
    readings = lab.measure(GradientPull(), model, data)
    for name, slope in own.items():
        share = data.sizes[name] / 150
        assert float(readings["gradient_norm"].sel(group=name)) == pytest.approx(np.linalg.norm(slope), rel=1e-6)
        part = share * slope @ whole / (whole @ whole)
        assert float(readings["gradient_pull"].sel(group=name)) == pytest.approx(part, rel=1e-6)
    for a, b in (("a", "b"), ("a", "c"), ("b", "c")):
        cosine = own[a] @ own[b] / np.linalg.norm(own[a]) / np.linalg.norm(own[b])
        assert float(readings["gradient_cosine"].sel(pair=f"{a} vs {b}")) == pytest.approx(cosine, rel=1e-6)
    for label in range(3):
        slope = each[data.y == label].mean(0)
        cosine = slope @ whole / np.linalg.norm(slope) / np.linalg.norm(whole)
        assert float(readings["class_gradient_cosine"].sel({"class": label})) == pytest.approx(cosine, rel=1e-6)


@pytest.mark.parametrize("name", ["gradient-pull", "gradient-noise"])
def test_half_precision_is_read_like_single(name):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 4))
    data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.arange(200) % 2)
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    single = lab.measure(name, model, data)
    half = lab.measure(name, model.bfloat16(), data)
    curve = "gradient_norm" if name == "gradient-pull" else "gradient_noise"
    # bfloat16 keeps 8 bits of every number.
    np.testing.assert_allclose(half[curve], single[curve], rtol=0.05)
