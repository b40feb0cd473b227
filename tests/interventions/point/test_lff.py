"""LfF: the network beside is trained as if alone, and points count by relative difficulty."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

I = tm.interventions
RECIPE = tm.Recipe(lr=0.3, steps=8, batch=16, loss=tm.Logistic())


def points(count=80):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, count)
    x = rng.normal(size=(count, 3)) + (2 * y - 1)[:, None] * [1.0, 0.5, 0.0]
    return tm.GroupedData(x, y, np.arange(count) % 2)


def model(outputs=1):
    torch.manual_seed(0)
    return nn.Linear(3, outputs).double()


def by_hand(data, q, steps=8):
    """Both networks as NumPy vectors: weights and offset, gradients written out."""
    start = model()
    w = np.append(start.weight.detach().numpy()[0], start.bias.detach().numpy())
    v = w.copy()
    for step in range(steps):
        places = RECIPE.batches(data).batch(data, 16, 0, step)
        x = np.column_stack([data.x[places], np.ones(16)])
        s = 2.0 * data.y[places] - 1
        main, easy = np.logaddexp(0, -s * (x @ w)), np.logaddexp(0, -s * (x @ v))
        p, pv = np.exp(-main), np.exp(-easy)
        difficulty = easy / (easy + main)
        w = w + 0.3 * (difficulty * s * (1 - p)) @ x / 16
        v = v + 0.3 * (pv**q * s * (1 - pv)) @ x / 16
    return w, v


@pytest.mark.parametrize("q", [0.7, 0.2])
def test_both_networks_follow_their_formulas(q):
    data = points()
    trained = model()
    tm.train(trained, data, data, replace(RECIPE, interventions=(I.LfF(q),)))
    w, _ = by_hand(data, q)
    np.testing.assert_allclose(np.append(trained.weight.detach(), trained.bias.detach()), w, atol=1e-12)


def own_loop(law, steps=8, outputs=1):
    data, trained = points(), model(outputs)
    steer = tm.Steering(law, data, model=trained)
    optimizer = torch.optim.SGD([*trained.parameters(), *steer.parameters()], lr=0.3)
    x, y, group = torch.tensor(data.x), torch.tensor(data.y), torch.tensor(data.codes)
    for step in range(steps):
        places = RECIPE.batches(data).batch(data, 16, 0, step)
        scores = trained(x[places])
        if outputs == 1:
            scores = scores[:, 0]
            losses = nn.functional.softplus(-(2.0 * y[places] - 1) * scores)
        else:
            losses = nn.functional.cross_entropy(scores, y[places], reduction="none")
        loss = steer(losses, group[places], scores=scores, y=y[places], x=x[places])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return trained, steer


def test_the_network_beside_is_generalised_cross_entropy_alone_bit_by_bit():
    data, alone = points(), model()
    tm.train(alone, data, data, replace(RECIPE, interventions=(tm.interventions.GeneralisedCrossEntropy(0.7),)))
    _, steer = own_loop(I.LfF(0.7))
    assert torch.equal(alone.weight, steer.beside[0].weight)


def test_a_loop_of_ones_own_is_train_bit_by_bit():
    data, expected = points(), model()
    tm.train(expected, data, data, replace(RECIPE, interventions=(I.LfF(),)))
    assert torch.equal(own_loop(I.LfF())[0].weight, expected.weight)


def test_two_equal_networks_halve_the_first_step():
    """Negative control: without a difference there is nothing to learn from."""
    start, plain = model(), model()
    data = points()
    tm.train(plain, data, data, replace(RECIPE, steps=1))
    once, _ = own_loop(I.LfF(), steps=1)
    torch.testing.assert_close(once.weight - start.weight, (plain.weight - start.weight) / 2)


def test_several_classes():
    trained, steer = own_loop(I.LfF(), outputs=2)
    assert steer.beside[0].weight.shape == (2, 3)
    assert not torch.equal(trained.weight, model(2).weight)


def test_bad_input():
    with pytest.raises(ValueError, match="`q` should lie above 0"):
        I.LfF(0.0)
    with pytest.raises(ValueError, match="LfF sees the network: give model= too"):
        tm.Steering(I.LfF(), points())
    steer = tm.Steering(I.LfF(), points(), model=model())
    with pytest.raises(ValueError, match=r"LfF needs the points, x=. Found none"):
        steer(torch.ones(2), torch.tensor([0, 1]), scores=torch.ones(2), y=torch.ones(2))
    data = points()
    with pytest.raises(ValueError, match="LfF needs the logistic loss or cross-entropy"):
        tm.train(model(), data, data, replace(RECIPE, loss=tm.Square(), interventions=(I.LfF(),)))
