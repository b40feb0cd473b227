"""Fish: two quadratics in closed form, balancing as the inner steps vanish, order and statistics."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab

I = tm.interventions
A = [torch.diag(torch.tensor([1.0, 3.0], dtype=torch.float64)), torch.tensor([[2.0, 0.5], [0.5, 1.0]]).double()]
C = [torch.tensor([1.0, 0.0]).double(), torch.tensor([-0.5, 2.0]).double()]


def stepped(inner, lr, seed=0, groups=(0, 1), steps=1):
    w = torch.tensor([0.3, -1.0], dtype=torch.float64, requires_grad=True)
    stepper = lab.interventions.Fish(inner, seed).optimizer(torch.optim.SGD([w], lr=lr))

    def closure(code):
        w.grad = None
        (0.5 * (w - C[code]) @ A[code] @ (w - C[code])).backward()

    for _ in range(steps):
        stepper.step(closure, list(groups))
    return w.detach(), stepper


def test_two_quadratics_in_closed_form():
    """w - lr / G (A1 (w - c1) + A2 (w - c2) - a A2 A1 (w - c1)), in the order that was drawn."""
    w, a, lr = torch.tensor([0.3, -1.0]).double(), 0.1, 0.4
    slopes = [A[i] @ (w - C[i]) for i in (0, 1)]
    expected = [w - lr / 2 * (slopes[0] + slopes[1] - a * A[1 - i] @ slopes[i]) for i in (0, 1)]  # group i first
    found = [stepped(a, lr, seed)[0] for seed in range(12)]
    near = [[torch.allclose(one, other, atol=1e-14) for other in expected] for one in found]
    assert all(any(row) for row in near)
    assert all(np.array(near).any(0))  # both orders are drawn


def test_as_inner_steps_vanish_it_is_the_mean_over_groups():
    w, lr = torch.tensor([0.3, -1.0]).double(), 0.4
    plain = w - lr / 2 * sum(A[i] @ (w - C[i]) for i in (0, 1))
    torch.testing.assert_close(stepped(1e-7, lr)[0], plain, atol=1e-6, rtol=0)


def test_one_group_alone_is_the_plain_step():
    w, lr = torch.tensor([0.3, -1.0]).double(), 0.4
    torch.testing.assert_close(stepped(0.1, lr, groups=(1,))[0], w - lr * A[1] @ (w - C[1]))


def test_the_step_rewards_agreement():
    """Mean over both orders: minus inner / 2 times the gradient of the inner product of both gradients."""
    w, a, lr = torch.tensor([0.3, -1.0]).double(), 0.05, 1.0
    slopes = [A[i] @ (w - C[i]) for i in (0, 1)]
    product = A[0] @ slopes[1] + A[1] @ slopes[0]  # its gradient
    mean = sum(w - lr / 2 * (slopes[0] + slopes[1] - a * A[1 - i] @ slopes[i]) for i in (0, 1)) / 2
    torch.testing.assert_close(mean, w - lr / 2 * (slopes[0] + slopes[1] - a / 2 * product))
    found = torch.stack([stepped(a, lr, seed)[0] for seed in range(200)]).mean(0)
    torch.testing.assert_close(found, mean, atol=4 * a * 3 / np.sqrt(200), rtol=0)


def test_it_goes_on_where_it_was():
    _, stepper = stepped(0.1, 0.1, steps=3)
    other = lab.interventions.Fish(0.1).optimizer(torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1))
    other.load_state_dict(stepper.state_dict())
    assert other.state_dict() == {"done": 3}


def points():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3)).astype("float32")
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(np.arange(120) % 4, "a", "b"))


def test_statistics_see_every_group():
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))
    tm.train(model, points(), points(), tm.Recipe(lr=0.1, steps=2, batch=40, interventions=(lab.interventions.Fish(),)))
    assert model[0].num_batches_tracked == 4


def test_full_batches_with_vanishing_steps_are_balanced_training():
    recipe, found = tm.Recipe(lr=0.2, steps=10, batch=None, loss=tm.Logistic()), []
    for law in (lab.interventions.Fish(1e-6), I.Balanced()):
        torch.manual_seed(0)
        model = nn.Linear(3, 1).double()
        tm.train(model, points(), points(), replace(recipe, interventions=(law,)))
        found.append(model.weight.detach())
    torch.testing.assert_close(*found, atol=1e-5, rtol=0)


def test_bad_input():
    with pytest.raises(ValueError, match="`inner` should be above 0"):
        lab.interventions.Fish(0.0)
    recipe = tm.Recipe(lr=0.1, steps=2, interventions=(lab.interventions.Fish(), I.GroupDRO()))
    with pytest.raises(
        ValueError, match="Fish takes one step for every group, so that no intervention weighs groups beside it"
    ):
        tm.train(nn.Linear(3, 1), points(), points(), recipe)
    drawn = replace(recipe, interventions=(lab.interventions.Fish(), I.Balanced(by="draws")))
    tm.train(nn.Linear(3, 1), points(), points(), drawn)
