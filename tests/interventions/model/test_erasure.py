"""Erasure: no linear trace of the attribute, the label kept, and the unbalanced one that reverses the bias."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import tiltmeter as tm
from tiltmeter.interventions.model import eraser

I = tm.interventions


def aligned(share, count=4000, seed=0):
    """Label and attribute each shift directions of their own; the attribute goes along with the label in `share`."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, count)
    a = np.where(rng.random(count) < share, y, 1 - y)
    x = rng.normal(size=(count, 6))
    x[:, 0] += 1.5 * (2 * y - 1)
    x[:, 1] += 2.5 * (2 * a - 1)
    groups = [f"y{i} a{j}" for i, j in zip(y, a, strict=True)]
    return tm.GroupedData(x, y, groups)


ATTRIBUTE = {f"y{i} a{j}": j for i in (0, 1) for j in (0, 1)}


def attributes(data):
    return np.array([ATTRIBUTE[group] for group in data.groups])[data.codes]


def test_the_covariance_with_the_attribute_vanishes():
    rng = np.random.default_rng(1)
    x, z, weights = rng.normal(size=(800, 5)), rng.integers(0, 3, 800), rng.uniform(0.5, 2.0, 800)
    x[:, :3] += 2.0 * np.eye(3)[z] @ rng.normal(size=(3, 3))
    erased = eraser(x, z, weights)(x)
    share = weights / weights.sum()
    centred = erased - share @ erased
    for one in range(3):
        assert np.abs((share * (z == one)) @ centred).max() < 1e-14


def test_a_linear_model_finds_the_attribute_no_better_than_chance():
    data = aligned(0.5)
    z = attributes(data)
    before = LogisticRegression().fit(data.x, z).score(data.x, z)
    erased = eraser(data.x, z, np.ones(len(z)))(data.x)
    after = LogisticRegression().fit(erased, z).score(erased, z)
    assert before > 0.95
    assert after < max(z.mean(), 1 - z.mean()) + 0.03


def by_null_space(x, z, rounds):
    """INLP: fit a linear model to the attribute, project its direction away, and again (Ravfogel et al., 2020)."""
    projection = np.eye(x.shape[1])
    for _ in range(rounds):
        w = LogisticRegression().fit(x @ projection, z).coef_[0] @ projection
        w /= np.linalg.norm(w)
        projection = projection @ (np.eye(x.shape[1]) - np.outer(w, w))
    return x @ projection


def test_projecting_again_and_again_ends_there_too_and_changes_more():
    """INLP as the reference: both leave nothing linear to find, and the least change is the smaller one."""
    rng = np.random.default_rng(3)
    z = rng.integers(0, 2, 3000)
    x = rng.normal(size=(3000, 6)) @ rng.normal(size=(6, 6))  # correlated inputs
    x += 1.5 * z[:, None] * rng.normal(size=6)
    chance = max(z.mean(), 1 - z.mean())
    reads = lambda inputs: LogisticRegression(max_iter=1000).fit(inputs, z).score(inputs, z)  # noqa: E731
    once, erased, projected = by_null_space(x, z, 1), eraser(x, z, np.ones(3000))(x), by_null_space(x, z, 5)
    assert reads(x) > chance + 0.2
    assert reads(erased) < chance + 0.03
    assert reads(projected) < chance + 0.06
    assert reads(once) > reads(erased) + 0.005 or reads(once) < chance + 0.03
    whole = np.square(x - x.mean(0)).sum()
    assert np.square(erased - x).sum() < 0.5 * np.square(projected - x).sum() < 0.5 * whole


def test_erasing_again_changes_nothing():
    data = aligned(0.7)
    z = attributes(data)
    once = eraser(data.x, z, np.ones(len(z)))(data.x)
    np.testing.assert_allclose(eraser(once, z, np.ones(len(z)))(once), once, atol=1e-8)


def errors(law, share=0.95):
    model = torch.nn.Linear(6, 1).double()
    fitted = law.deliver(model, aligned(share))
    test = aligned(0.5, seed=9)
    wrong = (fitted(torch.tensor(test.x))[:, 0].detach().numpy() > 0) != (test.y == 1)
    a = attributes(test)
    return wrong[a == test.y].mean(), wrong[a != test.y].mean()


def test_balanced_erasure_serves_both_and_unbalanced_erasure_reverses():
    with_, against = errors(I.Erasure(ATTRIBUTE))
    assert abs(with_ - against) < 0.03
    assert max(with_, against) < 0.12
    with_, against = errors(I.Erasure(ATTRIBUTE, balanced=False))
    # Negative control: points that go along with the attribute are now worse off. The published numbers, .375 and .017,
    # are of other data; here .469 and .006 were measured.
    assert with_ > 0.375
    assert against < 0.017


def test_the_delivered_layer_is_the_eraser_and_the_fit_in_one():
    data = aligned(0.8, count=500)
    model = torch.nn.Linear(6, 1).double()
    fitted = I.Erasure(ATTRIBUTE).deliver(model, data)
    z = attributes(data)
    cells = np.unique(data.codes, return_inverse=True)[1]
    erase = eraser(data.x, z, 1.0 / np.bincount(cells)[cells])
    scores = [fitted(torch.tensor(x)).detach().numpy() for x in (data.x, erase(data.x))]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-9)
    assert model.weight.shape == fitted.weight.shape
    assert not torch.equal(model.weight, fitted.weight)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: I.Erasure({"y0 a0": 0}).deliver(torch.nn.Linear(6, 1), aligned(0.5, 200)), "name every group"),
        (
            lambda: I.Erasure(dict.fromkeys(ATTRIBUTE, 1)).deliver(torch.nn.Linear(6, 1), aligned(0.5, 200)),
            "two values",
        ),
        (lambda: I.Erasure(strength=0.0), "`strength` should be a positive number"),
        (lambda: I.Erasure().deliver(torch.nn.Linear(6, 3), aligned(0.5, 200)), "all 3 labels"),
        (lambda: I.Erasure().deliver(torch.nn.ReLU(), aligned(0.5, 200)), "Found a model without any"),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()
