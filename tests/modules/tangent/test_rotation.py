"""Rotation: known angles, what is no rotation, and a network whose features move."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from tiltmeter.modules.networks import mlp
from tiltmeter.modules.tangent.kernel import tangent_kernel
from tiltmeter.modules.tangent.rotation import rotation


@pytest.mark.parametrize("angle", [1e-6, 0.1, math.pi / 2, 2.0])
def test_angles_are_exact_even_where_the_cosine_is_one(angle):
    one, other = np.diag([1.0, 0.0]), np.diag([math.cos(angle), math.sin(angle)])
    assert rotation(one, 3 * other).angle == pytest.approx(angle, rel=1e-9)
    assert rotation(one, 3 * other).growth == pytest.approx(3.0)


def test_growth_is_no_rotation():
    kernel = np.array([[2.0, 1.0], [1.0, 3.0]])
    found = rotation(kernel, 5 * kernel)
    assert found.angle == pytest.approx(0.0, abs=1e-12)
    assert found.cosine == found.alignment == pytest.approx(1.0)


def test_alignment_forgets_what_all_points_share():
    rng = np.random.default_rng(0)
    one, other = np.eye(5), np.diag(rng.uniform(1, 2, 5))
    shared = 1000 * np.ones((5, 5))
    apart, together = rotation(one, other), rotation(one + shared, other + shared)
    assert together.angle < 0.01 * apart.angle
    assert together.alignment == pytest.approx(apart.alignment)


def test_cosine_and_alignment_by_their_definitions():
    rng = np.random.default_rng(1)
    one, other = (a @ a.T for a in rng.normal(size=(2, 6, 4)))
    centre = np.eye(6) - 1 / 6
    found = rotation(one, other)
    assert found.cosine == pytest.approx(np.sum(one * other) / np.linalg.norm(one) / np.linalg.norm(other))
    one, other = centre @ one @ centre, centre @ other @ centre
    assert found.alignment == pytest.approx(np.sum(one * other) / np.linalg.norm(one) / np.linalg.norm(other))


def _turned(model, steps=20, lr=0.5):
    x = torch.randn(16, 4, dtype=torch.float64)
    y = torch.sin(3 * x[:, :1])
    before = tangent_kernel(model, x)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * (model(x) - y) ** 2).mean().backward()
        optimizer.step()
    return rotation(before, tangent_kernel(model, x)).angle


def test_features_turn_the_kernel_and_a_linear_model_never_does():
    assert _turned(nn.Linear(4, 1).double()) == 0.0
    assert _turned(mlp(4, (16,), 1, "tanh").double()) > 0.01


@pytest.mark.parametrize(
    ("one", "other", "sentence"),
    [
        (np.eye(2), np.eye(3), r"Found shapes \(2, 2\) and \(3, 3\)\.$"),
        (np.eye(2), np.zeros((2, 2)), r"^A kernel should be finite and not zero. Found norms 1.41 and 0\.$"),
        (np.eye(2), np.full((2, 2), np.nan), r"Found norms 1.41 and nan\.$"),
        (np.eye(2), np.ones((2, 2)), r"^A centred kernel should be finite and not zero."),
    ],
)
def test_bad_input_is_one_sentence(one, other, sentence):
    with pytest.raises(ValueError, match=sentence):
        rotation(one, other)
