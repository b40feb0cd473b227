"""Against the dense Hessian, of all points and of each group; warm starts; no curvature where there is none."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import dense_hessian
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.tangent.gradient import trained
from tiltmeter_lab.measures.sharpness import Sharpness


def problem(seed=0, points=80):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(points, 6))
    x[::4] *= 2.0
    torch.manual_seed(seed)
    return mlp(6, (8,), 3, "tanh"), tm.GroupedData(
        x, rng.integers(0, 3, points), np.where(np.arange(points) % 4 == 0, "b", "a")
    )


def dense(model, data, places):
    x, y = data.tensors()

    def losses(where):
        return nn.functional.cross_entropy(model(x[where]), y[where], reduction="none")

    return dense_hessian(losses, trained(model), torch.as_tensor(places)).double()


def test_eigenvalues_and_traces_are_those_of_the_dense_hessian():
    model, data = problem()
    readings = lab.measure(Sharpness(iterations=30, probes=64, smallest=True), model, data)
    whole = dense(model, data, np.arange(80))
    exact = torch.linalg.eigvalsh(whole).flip(0)[:3]
    assert readings["hessian_top"].values == pytest.approx(exact.numpy(), rel=1e-3)
    assert "group_hessian_bottom" not in lab.measure(Sharpness(), model, data)
    assert np.all(np.abs(readings["hessian_top"] - exact.numpy()) <= readings["hessian_top_error"] + 1e-4)
    trace, error = float(readings["hessian_trace"]), float(readings["hessian_trace_se"])
    assert abs(trace - float(whole.trace())) < 3.5 * error
    for group in data.groups:
        own = dense(model, data, data.of_group(group))
        top = float(torch.linalg.eigvalsh(own)[-1])
        assert float(readings["group_hessian_top"].sel(group=group)) == pytest.approx(top, rel=1e-3)
        bottom = float(torch.linalg.eigvalsh(own)[0])
        assert bottom < 0
        assert float(readings["group_hessian_bottom"].sel(group=group)) == pytest.approx(bottom, rel=1e-2)
        trace, error = (float(readings[f"group_hessian_trace{end}"].sel(group=group)) for end in ("", "_se"))
        assert abs(trace - float(own.trace())) < 3.5 * error


def test_a_warm_start_does_better_in_as_many_iterations():
    model, data = problem(1)
    exact = float(torch.linalg.eigvalsh(dense(model, data, np.arange(80)))[-1])
    measure = Sharpness(iterations=6)
    cold, warm = (float(lab.measure(measure, model, data)["hessian_top"][0]) for _ in range(2))
    assert abs(warm - exact) < 0.5 * abs(cold - exact)


def test_least_squares_in_one_direction_has_one_eigenvalue():
    """Half squared error of w . x with x along one direction: E x^2, and a trace of the same."""
    x = np.zeros((60, 5))
    x[:, 2] = np.linspace(-1, 2, 60)
    data = tm.GroupedData(x, np.linspace(0, 1, 60), np.arange(60) % 3)
    readings = lab.measure(Sharpness(), nn.Linear(5, 1, bias=False), data, tm.Square())
    mean = float((x[:, 2] ** 2).mean())
    assert readings["hessian_top"].values == pytest.approx([mean, 0.0, 0.0], abs=1e-6)
    assert float(readings["hessian_trace"]) == pytest.approx(mean, rel=1e-5)


def test_bad_choices_are_refused():
    for name, value in (("count", 0), ("iterations", 1), ("probes", 1)):
        with pytest.raises(ValueError, match=f"`{name}` should be at least"):
            Sharpness(**{name: value})


def test_three_groups_of_images_in_double_precision():
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b", "c"], 60, p=[0.5, 0.3, 0.2])
    data = tm.GroupedData(rng.normal(size=(60, 1, 5, 5)), rng.integers(0, 3, 60), group)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(18, 3)).double()
    x, y = (torch.as_tensor(part) for part in (np.asarray(data.x, dtype=float), data.y.astype(int)))
    readings = lab.measure(Sharpness(iterations=40, probes=2), model, data)

    def losses(where):
        return nn.functional.cross_entropy(model(x[where].double()), y[where], reduction="none")

    for name in data.groups:
        own = dense_hessian(losses, trained(model), torch.as_tensor(data.of_group(name)))
        top = float(torch.linalg.eigvalsh(own)[-1])
        assert float(readings["group_hessian_top"].sel(group=name)) == pytest.approx(top, rel=1e-5)


def test_a_diverged_model_is_refused_in_a_sentence():
    model, data = problem(points=120)
    nn.init.constant_(model[1].weight, float("nan"))
    with pytest.raises(ValueError, match="The Hessian should be finite"):
        lab.measure(Sharpness(), model, data)
