"""loss-slice: against the exact quadratic of a linear model, and where groups compete."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.loss_slice import Descent, LossSlice, Random

OFFSETS = (-0.5, -0.1, 0.0, 0.2, 0.7)


def linear(seed=0):
    rng = np.random.default_rng(seed)
    x, group = rng.normal(size=(120, 4)), np.repeat(["a", "b"], [80, 40])
    y = np.where(group == "a", x[:, 0], 2 * x[:, 1])
    torch.manual_seed(seed)
    return torch.nn.Linear(4, 1, bias=False).double(), tm.GroupedData(x, y, group)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_model_gives_the_exact_quadratic(weighted):
    model, data = linear()
    mass = np.random.default_rng(1).uniform(0.5, 2.0, len(data)) if weighted else np.ones(len(data))
    if weighted:
        data = tm.GroupedData(data.x, data.y, data.group_labels[data.codes], weights=mass)
    found = lab.measure(LossSlice(OFFSETS), model, data, tm.Square())
    x, y, w = np.asarray(data.x), np.asarray(data.y), model.weight.detach().numpy()[0]
    slope = ((mass * (x @ w - y)) @ x) / mass.sum()
    way = -slope / np.linalg.norm(slope) * np.linalg.norm(w)
    assert float(found["slice_length"]) == pytest.approx(np.linalg.norm(w))
    for code, group in enumerate(data.groups):
        own = data.codes == code
        residual, along = x[own] @ w - y[own], x[own] @ way
        mean = mass[own] / mass[own].sum()
        exact = [
            0.5 * mean @ residual**2 + a * mean @ (residual * along) + 0.5 * a**2 * mean @ along**2 for a in OFFSETS
        ]
        np.testing.assert_allclose(found["loss_slice"].sel(group=group), exact, rtol=1e-7)


def test_the_mean_falls_along_descent_while_a_group_may_rise_and_alike_groups_do_not_differ():
    model, data = linear()
    found = lab.measure(LossSlice((0.0, 0.05)), model, data, tm.Square())["loss_slice"]
    shares = np.bincount(data.codes) / len(data)
    mean = shares @ found.transpose("group", "offset").values
    assert mean[1] < mean[0]
    x = np.asarray(data.x)
    twice = tm.GroupedData(np.concatenate([x, x]), np.concatenate([data.y, data.y]), np.repeat(["a", "b"], len(x)))
    same = lab.measure(LossSlice(OFFSETS), model, twice, tm.Square())["loss_slice"]
    np.testing.assert_allclose(same.sel(group="a"), same.sel(group="b"), rtol=1e-12)


def test_a_random_direction_is_the_same_at_every_look_and_as_long_as_each_tensor():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    _, data = linear()
    one, two = (lab.measure(LossSlice(OFFSETS, Random(3)), model, data, tm.Square())["loss_slice"] for _ in range(2))
    assert one.identical(two)
    assert not np.allclose(one, lab.measure(LossSlice(OFFSETS, Random(4)), model, data, tm.Square())["loss_slice"])


def test_at_a_minimum_the_slice_is_flat():
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data = torch.ones(1, 1)
    data = tm.GroupedData([[1.0], [2.0]] * 30, [1.0, 2.0] * 30, ["a", "b"] * 30)
    assert (lab.measure(LossSlice(), model, data, tm.Square())["loss_slice"] == 0).all()


@dataclass(frozen=True)
class Short:
    def __call__(self, snapshot):  # noqa: ARG002
        return torch.ones(2)

    def passes(self):
        return 0.0


def test_bad_offsets_and_directions_are_refused():
    with pytest.raises(
        ValueError, match=r"`offsets` should be at least two ascending numbers. Found offsets = \(0.0,\)"
    ):
        LossSlice((0.0,))
    with pytest.raises(TypeError, match=r"`direction` should be Descent\(\) or Random\(\). Found str."):
        LossSlice(direction="down")
    model, data = linear()
    with pytest.raises(ValueError, match=r"should give 4 numbers, one for each trained weight. Found shape"):
        lab.measure(LossSlice(direction=Short()), model, data, tm.Square())
    assert Descent().passes() > Random().passes()
