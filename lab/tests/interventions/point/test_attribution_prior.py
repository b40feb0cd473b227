"""AttributionPrior: for a linear model a ridge on the weights of the mask, in closed form."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab

I = tm.interventions


def points(count=200, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(count) < 0.5, 1, -1)
    x = rng.normal(size=(count, 4)) + y[:, None] * [0.5, 2.0, 0.0, 1.0]
    return tm.GroupedData(x, y, np.arange(count) % 2)


def trained(law, model, steps=200, lr=0.15):
    data = points()
    laws = () if law is None else (law,)
    recipe = tm.Recipe(lr=lr, steps=steps, batch=None, loss=tm.Square(), interventions=laws)
    tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([steps])))
    return model


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_a_linear_model_ends_at_the_ridge_on_the_mask(strength):
    data, mask = points(), (1, 3)
    model = nn.Linear(4, 1, bias=False).double()
    trained(lab.interventions.AttributionPrior(mask, strength), model)
    ridge = np.diag([2.0 * strength if place in mask else 0.0 for place in range(4)])
    expected = np.linalg.solve(data.x.T @ data.x / len(data) + ridge, data.x.T @ data.y / len(data))
    np.testing.assert_allclose(model.weight.detach().numpy()[0], expected, atol=1e-9)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()


def test_without_strength_it_is_plain_bit_by_bit():
    one, two = trained(None, network(), 5), trained(lab.interventions.AttributionPrior((1,), 0.0), network(), 5)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_a_network_loses_its_slope_there_and_keeps_it_elsewhere():
    x = torch.tensor(points().x, requires_grad=True)
    slopes = []
    for law in (None, lab.interventions.AttributionPrior((1,), 3.0)):
        model = trained(law, network(), 150)
        slopes.append(torch.autograd.grad(model(x).sum(), x)[0].abs().mean(0))
    assert slopes[0][1] > slopes[0][3]  # plain: the stronger input
    assert slopes[1][1] < 0.5 * slopes[1][3]
    assert slopes[1][3] > slopes[0][3]


def test_several_scores_follow_the_log_probabilities():
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True, generator=torch.Generator().manual_seed(0))
    W = torch.tensor([[1.0, 0.0, 2.0], [0.5, -1.0, 0.0]], dtype=torch.float64)
    model = nn.Linear(3, 2, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(W)
    data = tm.GroupedData(np.zeros((60, 3)), [0, 1] * 30, [0, 1] * 30)
    steer = tm.Steering(lab.interventions.AttributionPrior((0, 2), 2.0), data, model=model)
    scores = model(x)
    found = steer(torch.zeros(5).double(), torch.zeros(5).long(), scores=scores, y=torch.zeros(5).long(), x=x)
    p = torch.softmax(scores, 1)
    slopes = W.sum(0) - 2.0 * p @ W  # of the sum of log p
    assert found.item() == pytest.approx(2.0 * slopes[:, [0, 2]].square().sum(1).mean().item())


def test_bad_input():
    with pytest.raises(ValueError, match="`mask` should hold at least one place"):
        lab.interventions.AttributionPrior(())
    with pytest.raises(ValueError, match="`strength` should be at least 0"):
        lab.interventions.AttributionPrior((0,), -1.0)
    data, recipe = (
        points(),
        tm.Recipe(lr=0.1, steps=2, loss=tm.Square(), interventions=(lab.interventions.AttributionPrior((9,)),)),
    )
    with pytest.raises(ValueError, match=r"should name places among 4 inputs. Found place 9"):
        tm.train(network(), data, data, recipe)
    tokens = tm.GroupedData(np.zeros((80, 4), dtype=int), [0, 1] * 40, [0, 1] * 40)
    with pytest.raises(TypeError, match=r"one tensor of numbers with a fraction. Found a tensor of torch.int64"):
        tm.Steering(replace(lab.interventions.AttributionPrior((1,))), tokens, model=network())
    steer, x = tm.Steering(lab.interventions.AttributionPrior((1,)), data, model=network()), torch.zeros(2, 4).double()
    with pytest.raises(ValueError, match=r"call x.requires_grad_\(\)"):
        steer(torch.ones(2), torch.tensor([0, 1]), scores=torch.ones(2), y=torch.ones(2), x=x)
