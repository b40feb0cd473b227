"""minimum-norm: by hand, by training, and where it is absent."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter.modules.networks import deep_linear
from tiltmeter_lab.measures.minimum_norm import MinimumNorm


def few_points(seed=0, points=8, d=20):
    rng = np.random.default_rng(seed)
    return tm.GroupedData(rng.normal(size=(points, d)), rng.normal(size=points), ["all"] * points)


def descend(model, data, steps=4000, lr=0.05):
    x, y = torch.as_tensor(data.x, dtype=torch.float64), torch.as_tensor(data.y, dtype=torch.float64)
    for _ in range(steps):
        loss = 0.5 * (model(x).squeeze(-1) - y).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= lr * parameter.grad


def measured(model, data, **settings):
    return {
        name: float(value) for name, value in lab.measure(MinimumNorm(**settings), model, data, tm.Square()).items()
    }


def test_descent_from_zero_ends_at_the_minimum_norm_and_from_elsewhere_keeps_what_no_point_sees():
    data = few_points()
    model = nn.Linear(20, 1, bias=False).double()
    nn.init.zeros_(model.weight)
    descend(model, data)
    found = measured(model, data)
    assert found["minimum_norm_distance"] < 1e-4
    assert found["off_span"] < 1e-12
    assert found["off_span_null"] == pytest.approx(1 - 8 / 20)
    other = nn.Linear(20, 1, bias=False).double()
    start = torch.as_tensor(np.random.default_rng(1).normal(size=(1, 20)))
    other.weight.data = start.clone()
    descend(other, data)
    # By hand: the part of the start in the null space of the points is all that remains.
    x = data.x.astype(float)
    null = np.eye(20) - np.linalg.pinv(x) @ x
    best = np.linalg.pinv(x) @ data.y
    kept = np.linalg.norm(null @ start.numpy()[0]) / np.linalg.norm(best)
    assert measured(other, data)["minimum_norm_distance"] == pytest.approx(kept, rel=1e-3)


def test_with_more_points_than_dimensions_nothing_lies_off_their_span():
    data = few_points(points=60, d=5)
    found = measured(nn.Linear(5, 1, bias=False), data)
    assert found["off_span"] == pytest.approx(0.0, abs=1e-10)
    assert found["off_span_null"] == 0.0


def test_deep_linear_networks_count_as_their_product():
    data = few_points()
    model = deep_linear(20, 10, 2)
    product = nn.Linear(20, 1, bias=False)
    product.weight.data = (model[1].weight @ model[0].weight).detach()
    assert measured(model, data) == pytest.approx(measured(product, data), rel=1e-5)


def test_what_it_cannot_treat_it_refuses():
    data = few_points()
    with pytest.raises(ValueError, match="one output"):
        measured(nn.Linear(20, 3, bias=False), tm.GroupedData(data.x, [0, 1, 2, 0, 1, 2, 0, 1], ["all"] * 8))
    with pytest.raises(ValueError, match="Linear layers without bias"):
        measured(nn.Linear(20, 1), data)
    with pytest.raises(ValueError, match="`fit` should have 20 features"):
        measured(nn.Linear(20, 1, bias=False), data, fit=few_points(d=7))
