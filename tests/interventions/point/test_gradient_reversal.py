"""GradientReversal: the gradient that reaches the model, by a second route, and what it hides."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

I = tm.interventions
RECIPE = tm.Recipe(lr=0.2, steps=20, batch=32, loss=tm.Logistic())
ATTRIBUTE = {f"{y}{a}": a for y in "01" for a in "01"}


def points(count=400, aligned=0.5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, count)
    a = np.where(rng.random(count) < aligned, y, 1 - y)
    x = rng.normal(size=(count, 4)).astype("float32")
    x[:, 0] += 1.5 * (2 * y - 1)
    x[:, 1] += 2.0 * (2 * a - 1)
    return tm.GroupedData(x, y, [f"{i}{j}" for i, j in zip(y, a, strict=True)])


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))


def trained(*laws, data=None, **more):
    data = points() if data is None else data
    model = network()
    tm.train(model, data, data, replace(RECIPE, interventions=laws, **more), watch=tm.Watch(when=tm.record.at([1])))
    return model


def test_the_gradient_is_that_of_the_loss_minus_that_of_the_adversary():
    data, model = points(), network()
    law = I.GradientReversal(0.7, ATTRIBUTE, hidden=5)
    steer = tm.Steering(law, data, model=model)
    x, y = data.tensors()
    scores = model(x)[:, 0]
    losses = nn.functional.softplus(-(2.0 * y - 1) * scores)
    steer(losses, torch.as_tensor(data.codes), scores=scores, y=y, x=x).backward()
    found = [p.grad.clone() for p in model[0].parameters()]
    own = [p.grad.clone() for p in steer.parameters()]
    wanted = torch.as_tensor([int(group[1]) for group in data.groups])[torch.as_tensor(data.codes)]
    adversary = nn.functional.cross_entropy(steer.beside[0](torch.tanh(model[0](x))), wanted)
    losses = nn.functional.softplus(-(2.0 * y - 1) * model(x)[:, 0]).mean()
    of_loss = torch.autograd.grad(losses, list(model[0].parameters()))
    of_other = torch.autograd.grad(adversary, [*model[0].parameters(), *steer.parameters()])
    for one, plain, other in zip(found, of_loss, of_other, strict=False):
        torch.testing.assert_close(one, plain - 0.7 * other)
    for one, other in zip(own, of_other[2:], strict=True):
        torch.testing.assert_close(one, other)


def test_without_strength_the_model_is_plain_bit_by_bit():
    for one, two in zip(trained().parameters(), trained(I.GradientReversal(0.0)).parameters(), strict=True):
        assert torch.equal(one, two)


def one_feature(strength, aligned):
    """The weights of a single feature, and how well it tells the attribute, from linear layers."""
    from sklearn.linear_model import LogisticRegression

    data = points(800, aligned)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 1), nn.Linear(1, 1))
    recipe = replace(RECIPE, lr=0.1, steps=300, interventions=(I.GradientReversal(strength, ATTRIBUTE),))
    tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([300])))
    a = np.array([int(group[1]) for group in data.groups])[data.codes]
    feature = model[0](data.tensors()[0]).detach().numpy()
    weights = model[0].weight.detach().numpy()[0]
    return weights[1] / weights[0], LogisticRegression().fit(feature, a).score(feature, a)


def test_the_feature_says_less_of_the_attribute_and_too_much_strength_turns_it_round():
    plain, some, much = (one_feature(strength, 0.8) for strength in (0.0, 0.3, 1.0))
    assert plain[0] > some[0] > 0 > much[0]
    assert plain[1] > some[1] > much[1] + 0.02
    assert abs(one_feature(1.0, 0.5)[0]) < 0.05  # negative control: nothing to hide


def test_the_adversary_is_made_from_its_seed_and_leaves_the_stream_alone():
    torch.manual_seed(5)
    one = tm.Steering(I.GradientReversal(), points(), model=network())
    after = torch.rand(1)
    torch.manual_seed(5)
    network()
    assert torch.equal(after, torch.rand(1))
    other = tm.Steering(I.GradientReversal(seed=1), points(), model=network())
    assert not torch.equal(next(one.parameters()), next(other.parameters()))


def test_bad_input():
    with pytest.raises(ValueError, match="`hidden` should be a number of units"):
        I.GradientReversal(hidden=-1)
    with pytest.raises(ValueError, match=r"`attribute` should name every group. Missing: '01'"):
        tm.Steering(I.GradientReversal(attribute={"00": 0, "10": 0, "11": 1}), points(), model=network())
    with pytest.raises(TypeError, match=r"GradientReversal acts on the last linear layer. Found a model without any"):
        tm.Steering(I.GradientReversal(), points(), model=nn.Tanh())
    steer = tm.Steering(I.GradientReversal(), points(), model=network())
    with pytest.raises(ValueError, match="needs one row of features for each of the 2 points"):
        steer(torch.ones(2), torch.tensor([0, 1]), scores=torch.ones(2), y=torch.ones(2))
