"""A linear model is its own linearisation: the forecast must be what full-batch training does, and the closed form."""

import copy
from functools import partial
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.kernel.question import Question, targets
from tiltmeter.forecast.kernel.solvers.convex import FeatureTraining, convex_course
from tiltmeter.recipe.plain_sgd import PlainSGD

by_kernel = partial(tm.forecast, method=tm.methods.Kernel(), progress=False)

STEPS = 150


def linear(outputs=1):
    torch.manual_seed(1)
    return nn.Linear(6, outputs).double()


def trained(model, train, held_out, loss, steps=STEPS, weights=None, scheduler=None, **settings):
    if scheduler is None:
        sgd = partial(torch.optim.SGD, **settings)
        return tm.train(
            copy.deepcopy(model),
            train,
            held_out,
            tm.Recipe(sgd, steps=steps, batch=len(train), weights=weights, loss=loss),
        )
    # Schedules by a second route: a loop of its own.
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, **settings)
    x, y = train.tensors(torch.float64)
    with tm.Probe(model, held_out, loss=loss, budget=None) as probe:
        for step in range(steps):
            probe(step)
            optimizer.param_groups[0]["lr"] = scheduler(step)
            optimizer.zero_grad()
            (0.5 * (model(x)[:, 0] - y) ** 2).mean().backward()
            optimizer.step()
    return probe.trajectory()


def apart(forecast, run):
    return max(row.largest for row in tm.agreement(forecast, run).rows)


@pytest.mark.parametrize(
    "settings",
    [{}, {"momentum": 0.9}, {"weight_decay": 0.2}, {"momentum": 0.5, "weight_decay": 0.1}],
    ids=["plain", "momentum", "decay", "both"],
)
def test_square_is_full_batch_training(two_labels, settings):
    train, held_out = two_labels
    ahead = by_kernel(
        linear(), train, held_out, tm.Recipe(lr=0.1, steps=STEPS, batch=None, loss=tm.Square(), **settings)
    )
    assert apart(ahead, trained(linear(), train, held_out, tm.Square(), lr=0.1, **settings)) < 1e-10
    assert ahead["loss"].sel(time=STEPS).mean() < 0.7 * ahead["loss"].sel(time=0).mean()


@pytest.mark.parametrize("loss", [tm.Square(), tm.Logistic()], ids=["square", "logistic"])
@pytest.mark.parametrize("weights", [{"b": 3.0}, {("a", 1): 0.5, "b": 2.0}], ids=["group", "label"])
def test_weights_are_those_of_training(two_labels, loss, weights):
    train, held_out = two_labels
    ahead = by_kernel(linear(), train, held_out, tm.Recipe(lr=0.1, steps=STEPS, batch=None, weights=weights, loss=loss))
    assert apart(ahead, trained(linear(), train, held_out, loss, weights=weights, lr=0.1)) < 1e-10
    assert (
        apart(ahead, by_kernel(linear(), train, held_out, tm.Recipe(lr=0.1, steps=STEPS, batch=None, loss=loss))) > 1e-3
    )


@pytest.mark.parametrize(
    "schedule",
    [tm.schedules.Cosine(0.2, STEPS), tm.schedules.Warmup(0.2, 40), tm.schedules.Steps((0, 50), (0.2, 0.05))],
)
def test_schedules_are_those_of_training(two_labels, schedule):
    train, held_out = two_labels
    ahead = by_kernel(
        linear(), train, held_out, tm.Recipe(schedule=schedule, momentum=0.3, steps=STEPS, batch=None, loss=tm.Square())
    )
    assert apart(ahead, trained(linear(), train, held_out, tm.Square(), scheduler=schedule, momentum=0.3)) < 1e-10


@pytest.mark.parametrize("outputs", ["full", "trace"])
@pytest.mark.parametrize("loss", [tm.Square(), tm.losses.CrossEntropy()], ids=["square", "cross-entropy"])
def test_several_outputs(three_classes, loss, outputs):
    # The outputs of a linear layer share no weights, and so the trace is exact as well.
    train, held_out = three_classes
    kernels = tm.tangent(linear(3), train, held_out, outputs=outputs)
    ahead = kernels.forecast(tm.Recipe(lr=0.1, momentum=0.2, steps=STEPS, batch=None, loss=loss))
    assert kernels.outputs == outputs
    assert apart(ahead, trained(linear(3), train, held_out, loss, lr=0.1, momentum=0.2)) < 1e-10


def test_square_is_the_closed_form(two_labels):
    # Weights of least squares by gradient descent from w0: w = w* + (1 - lr H)^s (w0 - w*), written out.
    train, held_out = two_labels
    model, lr = linear(), 0.1
    augmented = np.c_[train.x, np.ones(len(train))]
    curvature, pull = augmented.T @ augmented / len(train), augmented.T @ train.y / len(train)
    best = np.linalg.solve(curvature, pull)
    first = np.r_[model.weight.detach().numpy()[0], model.bias.detach().numpy()]
    ahead = by_kernel(model, train, held_out, tm.Recipe(lr=lr, steps=1000, batch=None, loss=tm.Square()))
    seen = np.c_[held_out.x.astype(np.float32).astype(float), np.ones(len(held_out))]
    for step in (1, 10, 100, 1000):
        now = best + np.linalg.matrix_power(np.eye(7) - lr * curvature, step) @ (first - best)
        values = 0.5 * (seen @ now - held_out.y) ** 2
        for group in ("a", "b"):
            expected = values[held_out.of_group(group)].mean()
            assert ahead["loss"].sel(time=step, group=group).item() == pytest.approx(expected, abs=1e-10)


def test_small_steps_are_the_gradient_flow(two_labels):
    # f(t) = f0 + K_look K^-1 (1 - exp(-lr K t / n)) (y - f0), from an eigendecomposition; the steps differ from the
    # flow by lr * curvature / 2 of what is learned per unit of time, here below 1e-8.
    train, held_out = two_labels
    kernels = tm.tangent(linear(), train, held_out)
    lr, steps = 1e-8, 10**8
    ahead = kernels.forecast(
        tm.Recipe(lr=lr, steps=steps, batch=None, loss=tm.Square()), watch=tm.Watch(when=tm.record.at([steps]))
    )
    values, vectors = np.linalg.eigh(kernels.kernel)
    values, vectors = values[-7:], vectors[:, -7:]
    gone = -np.expm1(-lr * values * steps / len(train)) / values
    start = kernels.start_sample[:, 0]
    seen = kernels.start_held_out[:, 0] + kernels.cross @ (vectors @ (gone * (vectors.T @ (train.y - start))))
    expected = [0.5 * np.mean((seen - held_out.y)[held_out.of_group(g)] ** 2) for g in ("a", "b")]
    np.testing.assert_allclose(ahead["loss"].sel(time=steps).values, expected, atol=1e-8)


def test_two_routes_to_the_squared_loss_agree(two_labels):
    # Lanczos with modes, and features with single steps and Chebyshev steps.
    train, held_out = two_labels
    torch.manual_seed(0)
    kernels = tm.tangent(nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 1)).double(), train, held_out)
    sgd, evaluations = PlainSGD(0.02, 40_000, 0.0, 0.01), np.array([0, 10, 500, 1000, 20_000, 40_000])
    whole = kernels.course(Question(sgd, tm.Square(), None, {"b": 2.0}, None), evaluations)
    goal = targets(train.y, 1, tm.Square(), 1.0)
    share = np.where(train.codes == 1, 2.0, 1.0) / len(train)
    radial = kernels.radial()
    start = kernels.start_sample, kernels.start_held_out
    training = FeatureTraining(kernels.kernel, kernels.features(tm.Square()), start, share, sgd, evaluations, radial)
    other = convex_course(training, lambda f: f - goal, 1.0)
    assert "gradient flow" in other.method
    # The flow begins after 500 single steps and differs from them by lr * curvature of what still moves then.
    np.testing.assert_allclose(other.outputs, whole.outputs, atol=2e-4)
    np.testing.assert_allclose(other.outputs[:3], whole.outputs[:3], atol=1e-6)


def test_directions_that_swing_are_followed_step_by_step(two_labels):
    train, held_out = two_labels
    torch.manual_seed(0)
    kernels = tm.tangent(nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 1)).double(), train, held_out)
    start, share = (kernels.start_sample, kernels.start_held_out), np.full(len(train), 1 / len(train))
    parts = kernels.kernel, kernels.features(tm.Logistic()), start, share

    def course(sgd, evaluations):
        return convex_course(FeatureTraining(*parts, sgd, np.array(evaluations)), lambda f: 0.0 * f, 0.25)

    sharpest = course(PlainSGD(0.01, 10), [0]).sharpest
    for product, method in ((0.5, "500 single steps, then the gradient flow"), (1.5, "2000 single steps")):
        sgd = PlainSGD(product / sharpest, 2000)
        assert course(sgd, [0, 2000]).method.endswith(method)


def test_logistic_flow_after_single_steps(two_labels, monkeypatch):
    convex = import_module("tiltmeter.forecast.kernel.solvers.convex")
    monkeypatch.setattr(convex, "WORK", 0.0)
    monkeypatch.setattr(convex, "FIRST", 20)
    train, held_out = two_labels
    ahead = by_kernel(linear(), train, held_out, tm.Recipe(lr=1e-3, steps=1000, batch=None, loss=tm.Logistic()))
    assert "20 single steps, then" in ahead.origin.settings["calculation"]["method"]
    # lr * curvature / 2 is 1e-3 * 0.25 * 3 / 2: the flow and the steps differ by less than 1e-4 of what moves.
    assert apart(ahead, trained(linear(), train, held_out, tm.Logistic(), 1000, lr=1e-3)) < 1e-4
