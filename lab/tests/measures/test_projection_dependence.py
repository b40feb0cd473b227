"""Dependence on few directions: functions of one and two directions, both searches, all architectures."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import small_cnn, transformer
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.slabs import linear_and_slabs, random_basis, slabs
from tiltmeter_lab.measures.projection_dependence import Learned, ProjectionDependence


def one_direction(basis, hidden=20):
    """A ReLU network whose score is the first coordinate of a basis: weights +-row 0 in pairs."""
    model = mlp(len(basis), (hidden,), 1, bias=False)
    signs = torch.where(torch.arange(hidden) % 2 == 0, 1.0, -1.0)
    model[1].weight.data[:] = signs[:, None] * torch.as_tensor(basis[0], dtype=torch.float32)
    model[3].weight.data[:] = signs / hidden
    return model


@pytest.mark.parametrize("search", [None, Learned(steps=40)], ids=["first layer", "learned"])
def test_a_function_of_one_direction_has_rank_one(search):
    d = 10
    basis = random_basis(d, seed=2)
    data = slabs(linear_and_slabs(d), 2000, basis=basis)
    measure = ProjectionDependence() if search is None else ProjectionDependence(ranks=(1, 2), search=search)
    found = lab.measure(measure, one_direction(basis), data)
    assert found["dependence_rank"] == 1
    assert found["dependence_rank_share"] == 0.1
    assert found["dependence_rank_null"] > 1
    accuracy = found["projection_accuracy"].sel(rank=1)
    assert accuracy.sel(part="none") == 1
    assert accuracy.sel(part="rest") > 0.95
    # 1000 points judge, of which exchanging leaves half right: 4 standard errors.
    assert abs(accuracy.sel(part="set") - 0.5) < 4 * 0.5 / np.sqrt(1000)
    assert np.allclose(found["projection_accuracy_null"], 0.5, atol=0.05)
    assert found["projection_accuracy_random"].sel(rank=1, part="rest") < 0.8


def test_a_function_of_two_directions_needs_both():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 8)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)

    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 2, bias=False)
            self.first.weight.data[:] = torch.eye(8)[:2]

        def forward(self, points):
            return self.first(points).prod(1, keepdim=True)

    found = lab.measure(ProjectionDependence(ranks=(1, 2, 4)), Product(), tm.GroupedData(x, y, y))
    assert found["dependence_rank"] == 2
    assert found["projection_accuracy"].sel(rank=2, part="rest") == 1


def test_architectures_and_their_sentences():
    rng = np.random.default_rng(0)
    pictures = tm.GroupedData(rng.normal(size=(60, 1, 8, 8)).astype(np.float32), [0, 1, 2] * 20, [0] * 60)
    words = r"The first weights should act on all 64 numbers of a point, .*: for others search with Learned\(\)."
    with pytest.raises(ValueError, match=words):
        lab.measure("low-dimensional-dependence", small_cnn(1, 3), pictures)
    learned = ProjectionDependence(ranks=(1, 4), search=Learned(steps=3))
    assert np.isfinite(lab.measure(learned, small_cnn(1, 3), pictures)["projection_accuracy"]).all()
    series = tm.GroupedData(rng.normal(size=(60, 6, 2)).astype(np.float32), [0, 1] * 30, [0] * 60)
    assert np.isfinite(lab.measure(learned, transformer(6, 2), series)["projection_accuracy"]).all()
    tokens = tm.GroupedData(rng.integers(0, 2, (60, 6)), [0, 1] * 30, [0] * 60)
    with pytest.raises(TypeError, match="Tokens have no directions to search for"):
        lab.measure(learned, transformer(6, vocabulary=2), tokens)


def test_learning_a_subspace_leaves_the_model_alone():
    data = slabs(linear_and_slabs(6), 100)
    model = mlp(6, (8,), 1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    lab.measure(ProjectionDependence(search=Learned(steps=3)), model, data)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


class HeadFirst(nn.Module):
    """Registers its head before its body, both of as many inputs."""

    def __init__(self, d):
        super().__init__()
        self.head, self.body = nn.Linear(d, 1, bias=False), nn.Linear(d, d, bias=False)

    def forward(self, x):
        return self.head(self.body(x))


def test_the_first_layer_is_the_one_called_first():
    data = slabs(linear_and_slabs(6), 600)
    model = HeadFirst(6)
    with torch.no_grad():
        model.body.weight.zero_()
        model.body.weight[:, 0] = torch.arange(1.0, 7.0)  # the linear coordinate alone
        model.head.weight[:] = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # of the body's outputs, the last alone
    found = lab.measure(ProjectionDependence((1, 2)), model, data)
    assert found["dependence_rank"] == 1
    assert found["projection_accuracy"].sel(rank=1, part="rest") == 1.0
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_degenerate_input():
    data = slabs(linear_and_slabs(6), 60)
    with pytest.raises(
        ValueError, match=r"The search needs one half of the points, the evaluation the other: at least 4. Found 2."
    ):
        lab.measure(ProjectionDependence(), mlp(6, (8,), 1), data.take([0, 1]))
    zero = mlp(6, (8,), 1, bias=False)
    for parameter in zero.parameters():
        parameter.data.zero_()
    found = lab.measure(ProjectionDependence(), zero, data)
    assert found["dependence_rank"] == 6  # a model that knows nothing depends on nothing: no rank keeps anything
    assert all(np.isfinite(curve).all() for curve in found.values())
    with pytest.raises(ValueError, match=r"`ranks` should be ascending numbers from 1. Found ranks = \(2, 1\)."):
        ProjectionDependence(ranks=(2, 1))
    with pytest.raises(TypeError, match=r"`search` should be FirstLayer\(\) or Learned\(\). Found str."):
        ProjectionDependence(search="learned")
    with pytest.raises(ValueError, match=r"`keep` should be a share above 0. Found keep = 0."):
        ProjectionDependence(keep=0)
    with pytest.raises(ValueError, match="`steps`, `batch` and `lr` should be positive"):
        Learned(steps=0)
