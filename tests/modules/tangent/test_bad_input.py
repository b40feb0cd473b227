"""Every refusal of a kernel is one sentence that says what is wrong."""

import numpy as np
import pytest
import torch
from torch import nn

from tiltmeter.modules.networks import mlp
from tiltmeter.modules.tangent import memory
from tiltmeter.modules.tangent.kernel import check_memory, initial_scores, tangent_kernel


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.function(x, self.weight)


def x(points=6):
    return torch.linspace(-1.0, 1.0, 3 * points).reshape(points, 3)


def bad(point):
    found = x()
    found[point] = torch.nan
    return found


@pytest.mark.parametrize("point", [0, 1, 5])
def test_the_first_point_without_a_finite_score_is_named(point):
    with pytest.raises(ValueError, match=rf"^Scores should be finite. Found \[nan\] at point {point}\.$"):
        tangent_kernel(nn.Linear(3, 1), bad(point), chunk=2)
    with pytest.raises(ValueError, match=rf"^Scores should be finite. Found \[nan\] at point {point}\.$"):
        initial_scores(nn.Linear(3, 1), bad(point), chunk=2)


def test_a_gradient_that_is_not_finite_names_its_parameter():
    root = Lambda(lambda x, w: (0 * x @ w).abs().sqrt())
    with pytest.raises(
        ValueError, match=r"^Gradients should be finite. Found one that is not for parameter 'weight'\.$"
    ):
        tangent_kernel(root, x())


def test_a_kernel_that_is_not_finite_names_the_layer_and_the_point():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    nn.init.constant_(model[0].weight, 1e-30)
    points = x(8)
    points[5] = 1e30
    with pytest.raises(ValueError, match=r"^The kernel should be finite. Found that it is not at point 5 in '0'\.$"):
        tangent_kernel(model, points, chunk=2)


def test_a_constant_output_has_no_kernel():
    with pytest.raises(
        ValueError, match=r"^The scores should change with the trained parameters. Found a constant output"
    ):
        tangent_kernel(Lambda(lambda x, w: x[:, 0] + 0 * w.sum()), x())
    dead = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1, bias=False))
    nn.init.constant_(dead[0].bias, -100.0)
    with pytest.raises(ValueError, match="Found a constant output: every gradient is zero"):
        tangent_kernel(dead, x())


def test_scores_that_no_parameter_reaches():
    with pytest.raises(ValueError, match=r"Found that none matters\.$"):
        tangent_kernel(Lambda(lambda x, w: x[:, 0]), x())
    with pytest.raises(ValueError, match=r"requires_grad=True. Found none in the model\.$"):
        tangent_kernel(nn.Linear(3, 1).requires_grad_(False), x())
    with pytest.raises(ValueError, match="Found none in the model"):
        tangent_kernel(nn.Flatten(), x())


def test_a_model_that_needs_a_batch():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 1))
    with pytest.raises(
        ValueError, match=r"Found that 1 \(BatchNorm1d\) needs a batch even there: give it track_running"
    ):
        tangent_kernel(model, x())
    mixing = Lambda(lambda x, w: (x - x.mean(0)) @ w)
    with pytest.raises(ValueError, match=r"Found that scores change by [\d.e-]+ with the other points of the batch\.$"):
        tangent_kernel(mixing, x() ** 2)


def test_too_many_points_for_the_memory(monkeypatch):
    # Nine tenths of 0.9 GiB, less a chunk of 0.25 GiB, is 16 bytes for each of 6131^2 pairs of points.
    expected = (
        r"^`sample` should be at most 6100 to fit in memory. Found 20000 points with 1 output, whose kernel needs 6.2 GiB "
        r"of the 0.9 GiB that are free\.$"
    )
    monkeypatch.setattr(memory, "available_memory", lambda: int(0.9 * 2**30) + 1000)
    with pytest.raises(ValueError, match=expected):
        tangent_kernel(nn.Linear(3, 1), torch.zeros(20_000, 3))
    with pytest.raises(ValueError, match=r'GiB that are free; outputs="trace" needs 100 times less\.$'):
        check_memory(20_000, outputs_count=10, available=2**34)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    check_memory(10**9)


def test_where_the_system_does_not_say_there_is_no_limit():
    assert memory.available_memory() is None or memory.available_memory() > 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"outputs": "mean"}, r'^`outputs` should be "full" or "trace". Found outputs = \'mean\'\.$'),
        ({"chunk": 0}, r"^`chunk` should be at least 1. Found chunk = 0\.$"),
        ({"dtype": np.float16}, r"^`dtype` should be float32 or float64. Found dtype = float16\.$"),
    ],
)
def test_settings_are_checked(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        tangent_kernel(mlp(3, (2,), 1), x(), **settings)


def test_points_are_checked():
    with pytest.raises(TypeError, match=r"^`x` should be a tensor of points. Found ndarray\.$"):
        tangent_kernel(nn.Linear(3, 1), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"^`other` should hold at least one point. Found shape \(0, 3\)\.$"):
        tangent_kernel(nn.Linear(3, 1), x(), torch.zeros(0, 3))
    with pytest.raises(ValueError, match="pass read= to choose among the outputs"):
        tangent_kernel(nn.Linear(3, 1), torch.zeros(2, 4, 3))


class Opposite(nn.Module):
    """Pairs of equal units with opposite signs: it answers zero but for rounding, and has gradients."""

    def __init__(self, units, dtype, mixed=0.0):
        super().__init__()
        half = torch.randn(units, 3, dtype=dtype, generator=torch.Generator().manual_seed(0))
        self.weight = nn.Parameter(torch.cat([half, half]))
        self.signs, self.mixed = torch.cat([torch.ones(units), -torch.ones(units)]).to(dtype), mixed

    def forward(self, x):
        hidden = torch.relu(x @ self.weight.T)
        return hidden @ self.signs + self.mixed * hidden.mean()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_that_cancel_are_not_taken_for_a_mixing_of_points(dtype):
    points = torch.randn(40, 3, dtype=dtype, generator=torch.Generator().manual_seed(1))
    kernel = tangent_kernel(Opposite(1000, dtype), points)
    assert np.linalg.eigvalsh(kernel)[-1] > 0
    with pytest.raises(ValueError, match="Each point should have a score of its own"):
        tangent_kernel(Opposite(1000, dtype, mixed=0.1), points)
