"""ProductOfExperts: the model ends with what the expert does not know."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab

I = tm.interventions


def table():
    """All (a, c, y) of two inputs that are independent given the label, as often as they come: 400 points."""
    rows = []
    for y in (0, 1):
        for a in (-1, 1):
            for c in (-1, 1):
                often = 200 * (0.9 if (a > 0) == (y > 0) else 0.1) * (0.75 if (c > 0) == (y > 0) else 0.25)
                rows += [(a, c, y)] * round(often)
    a, c, y = np.array(rows).T
    return tm.GroupedData(np.column_stack([a, c]).astype(float), y, np.where(a == 2 * y - 1, "with", "against"))


def end(law, steps=300, weight_decay=0.0):
    data = table()
    torch.manual_seed(0)
    model = nn.Linear(2, 1).double()
    laws = () if law is None else (law,)
    recipe = tm.Recipe(
        lr=2.0, steps=steps, batch=None, loss=tm.Logistic(), interventions=laws, weight_decay=weight_decay
    )
    tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([steps])))
    return model.weight.detach().numpy()[0]


def test_the_model_has_no_weight_on_what_the_expert_explains():
    # The logarithm of the odds is the sum of both inputs' own: log 9 a + log 3 c.
    plain = end(None)
    np.testing.assert_allclose(plain, [np.log(9), np.log(3)], atol=1e-6)
    beside = end(lab.interventions.ProductOfExperts(mask=(0,)))
    assert abs(beside[0]) < 0.02  # the ridge of the regression leaves a little
    assert beside[1] == pytest.approx(np.log(3), abs=1e-3)


def test_an_expert_that_knows_nothing_changes_nothing():
    """Negative control: an input without a relation to the label."""
    data = table()
    x = np.column_stack([data.x, np.tile([1.0, -1.0], len(data) // 2)])
    x[:, 2] -= np.where(data.y == 1, x[data.y == 1, 2].mean(), x[data.y == 0, 2].mean())
    data = tm.GroupedData(x, data.y, data.codes)
    found = []
    for laws in ((), (lab.interventions.ProductOfExperts(mask=(2,)),)):
        torch.manual_seed(0)
        model = nn.Linear(3, 1).double()
        recipe = tm.Recipe(lr=0.5, steps=20, batch=None, loss=tm.Logistic(), interventions=laws)
        tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([20])))
        found.append(model.weight.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_a_weak_learner_that_knows_everything_leaves_nothing_to_learn():
    """The trap: the scout knows the useful input too."""
    assert np.abs(end(lab.interventions.ProductOfExperts(steps=200), steps=200, weight_decay=1e-3)).max() < 0.25
    assert np.abs(end(None, steps=200, weight_decay=1e-3)).max() > 0.9


def test_the_loss_of_two_scores_is_that_of_their_difference():
    data = table()
    x, y = torch.tensor(data.x), torch.tensor(data.y)
    values = []
    for outputs in (1, 2):
        model = nn.Linear(2, outputs).double()
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[0.3, -0.2]]) * torch.tensor([[1.0]] if outputs == 1 else [[-0.5], [0.5]]))
            model.bias.zero_()
        steer = tm.Steering(lab.interventions.ProductOfExperts(mask=(0,)), data, model=model)
        scores = model(x)[:, 0] if outputs == 1 else model(x)
        values.append(steer(torch.zeros(len(y)).double(), torch.tensor(data.codes), scores=scores, y=y, x=x).item())
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize(
    ("law", "sentence"),
    [
        (lambda: lab.interventions.ProductOfExperts(steps=0), "`steps` should be a positive whole number"),
        (lambda: lab.interventions.ProductOfExperts(mask=()), "`mask` should hold at least one place"),
        (lambda: lab.interventions.ProductOfExperts(mask=(-1,)), "whole numbers from 0. Found -1 among them"),
    ],
)
def test_bad_values(law, sentence):
    with pytest.raises(ValueError, match=sentence):
        law()


def test_bad_input():
    data, recipe = table(), tm.Recipe(lr=0.1, steps=2, loss=tm.Logistic())
    with pytest.raises(ValueError, match=r"should name places among 2 inputs. Found place 5"):
        tm.train(
            nn.Linear(2, 1), data, data, replace(recipe, interventions=(lab.interventions.ProductOfExperts((5,)),))
        )
    with pytest.raises(TypeError, match="`mask` should hold places of inputs"):
        lab.interventions.ProductOfExperts(mask="0")
    one = data.take(np.flatnonzero(data.y == 1))
    with pytest.raises(ValueError, match="ProductOfExperts needs points of two labels"):
        tm.Steering(lab.interventions.ProductOfExperts((0,)), one, model=nn.Linear(2, 1))
