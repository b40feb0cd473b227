"""FairnessPenalty: its value by hand, missing groups, and what it does to rates."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

pytest.importorskip("fairret", reason='fairret is not installed: pip install "tiltmeter[fairness]"')
I = tm.interventions


def points(count=600, shares=(0.6, 0.4)):
    rng = np.random.default_rng(0)
    late = rng.random(count) < shares[1]
    y = (rng.random(count) < np.where(late, 0.3, 0.7)).astype(int)
    x = rng.normal(size=(count, 3)).astype("float32")
    x[:, 0] += 1.0 * (2 * y - 1)
    x[:, 1] = late
    return tm.GroupedData(x, y, np.where(late, "late", "early"))


def value(law, scores, y, codes, data=None):
    steer = tm.Steering(law, points() if data is None else data, model=nn.Linear(3, 1))
    losses = torch.zeros(len(scores), dtype=torch.float64)
    return steer(losses, torch.tensor(codes), scores=torch.tensor(scores), y=torch.tensor(y)).item()


SCORES, Y, CODES = np.array([0.3, -1.0, 2.0, 0.5, -0.7]), [1, 0, 1, 1, 0], [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("statistic", "counts"),
    [
        ("PositiveRate", [[0, 1, 2], [3, 4]]),
        ("TruePositiveRate", [[0, 2], [3]]),
        ("FalsePositiveRate", [[1], [4]]),
    ],
)
def test_the_sum_of_relative_deviations(statistic, counts):
    p = 1 / (1 + np.exp(-SCORES))
    whole = p[np.concatenate(counts)].mean()
    expected = sum(abs(p[places].mean() / whole - 1) for places in counts)
    assert value(I.FairnessPenalty(statistic, strength=3.0), SCORES, Y, CODES) == pytest.approx(3 * expected)
    smooth = np.logaddexp(*[abs(p[places].mean() / whole - 1) for places in counts]) - np.log(2)
    assert value(I.FairnessPenalty(statistic, "LSELoss"), SCORES, Y, CODES) == pytest.approx(smooth)


@pytest.mark.parametrize(
    ("statistic", "codes", "y"),
    [
        ("PositiveRate", [0] * 5, Y),  # a group is missing: the package itself gives a constant 1
        ("TruePositiveRate", CODES, [0] * 5),  # no positives: the package itself raises
        ("TruePositiveRate", CODES, [1, 0, 1, 0, 0]),  # one group has none
    ],
)
def test_a_batch_that_tells_nothing_adds_nothing(statistic, codes, y):
    assert value(I.FairnessPenalty(statistic), SCORES, y, codes) == 0.0


def trained(*laws, data=None, batch=None):
    data = points() if data is None else data
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    recipe = tm.Recipe(lr=0.3, steps=150, batch=batch, loss=tm.Logistic(), interventions=laws)
    return model, tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([150])))


def test_rates_become_equal_and_without_strength_nothing_changes():
    plain, run = trained()
    gap = np.ptp(run["positive_rate"].values[-1])
    _, fair = trained(I.FairnessPenalty(strength=1.0))
    assert gap > 0.25
    assert np.ptp(fair["positive_rate"].values[-1]) < 0.35 * gap
    assert torch.equal(trained(I.FairnessPenalty(strength=0.0))[0].weight, plain.weight)


def test_an_ensemble_is_that_training():
    data, recipe = points(), tm.Recipe(lr=0.1, steps=5, batch=32, loss=tm.Logistic())
    recipe = replace(recipe, interventions=(I.FairnessPenalty(), I.Balanced(by="draws")))
    both = tm.ensemble(lambda: nn.Linear(3, 1), data, data, recipe, seeds=[3, 4])
    torch.manual_seed(4)
    alone = tm.train(nn.Linear(3, 1), data, data, recipe, seed=4)
    np.testing.assert_allclose(both["loss"].sel(seed=4), alone["loss"], atol=1e-6)


def test_batches_without_a_group_are_refused_before_training():
    rare = points(shares=(0.97, 0.03))
    sentence = "compares groups within a batch, and .* of batches of 32 would hold no point of 'late': add Balanced"
    for call in (
        lambda recipe: tm.train(nn.Linear(3, 1), rare, rare, recipe),
        lambda recipe: tm.ensemble(lambda: nn.Linear(3, 1), rare, rare, recipe, seeds=2),
    ):
        recipe = tm.Recipe(lr=0.1, steps=2, batch=32, loss=tm.Logistic(), interventions=(I.FairnessPenalty(),))
        with pytest.raises(ValueError, match=sentence):
            call(recipe)
        call(replace(recipe, interventions=(*recipe.interventions, I.Balanced(by="draws"))))


def test_bad_input():
    with pytest.raises(ValueError, match="`statistic` should be one of PositiveRate, Accuracy"):
        I.FairnessPenalty("Luck")
    with pytest.raises(ValueError, match="`penalty` should be one of NormLoss, LSELoss"):
        I.FairnessPenalty(penalty="L2")
    steer = tm.Steering(I.FairnessPenalty(), points(), model=nn.Linear(3, 1))
    with pytest.raises(ValueError, match="Found several scores a point"):
        steer(torch.zeros(2), torch.tensor([0, 1]), scores=torch.zeros(2, 3), y=torch.zeros(2))
    with pytest.raises(ValueError, match="FairnessPenalty needs the codes of groups"):
        steer(torch.zeros(2), scores=torch.zeros(2), y=torch.zeros(2))
