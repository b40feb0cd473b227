"""best_schedule: exact gradients, forecasts that keep their word, and the guard against levelling down."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.kernel.kernel_control import KernelControl


def data(classes=2):
    rng = np.random.default_rng(0)
    x, rare = rng.normal(size=(360, 4)), np.arange(360) % 6 == 0
    score = np.where(rare, x[:, 1], x[:, 0])
    y = (score > 0).astype(int) if classes == 2 else np.digitize(score, [-0.4, 0.4])
    return tm.GroupedData(x, y, np.where(rare, "rare", "common")).split(0.5)


def kernels(classes=2):
    torch.manual_seed(0)
    return tm.tangent(nn.Linear(4, 1 if classes == 2 else classes).double(), *data(classes))


RECIPE = tm.Recipe(lr=0.1, steps=60, batch=None, loss=tm.Logistic())


@pytest.mark.parametrize(
    ("loss", "classes"),
    [(tm.Square(), 2), (tm.Logistic(), 2), (tm.CrossEntropy(), 3)],
    ids=["square", "logistic", "ce"],
)
def test_gradients_are_those_of_finite_differences(loss, classes):
    tangent = kernels(classes)
    question = tangent.question(replace(RECIPE, loss=loss, momentum=0.4))
    control = KernelControl.of(tangent, question, np.array([0, 1, 10, 60]), np.array([0, 8]))
    rng = np.random.default_rng(1)
    P, h = np.array([[0.6, 0.4], [0.3, 0.7]]), 1e-5
    losses, states = control.losses(P)
    slopes = rng.normal(size=losses.shape)
    numeric = np.zeros_like(P)
    for place in np.ndindex(P.shape):
        away = np.zeros_like(P)
        away[place] = h
        numeric[place] = ((control.losses(P + away)[0] - control.losses(P - away)[0]) * slopes).sum() / (2 * h)
    np.testing.assert_allclose(control.gradient(P, states, slopes), numeric, atol=1e-7)


def test_the_forecast_with_the_law_keeps_its_word_and_pieces_help():
    tangent, area = kernels(), tm.criteria.GapArea()
    one, three = (tm.best_schedule(tangent, RECIPE, area, pieces=count) for count in (1, 3))
    assert three.after < one.after < one.before
    for found in (one, three):
        ahead = tangent.forecast(replace(RECIPE, interventions=(found.law,)), horizon=False)
        assert float(area.of(ahead)) == pytest.approx(found.after, abs=2e-3)
        assert not found.levels_down


def test_training_follows():
    best = tm.best_schedule(kernels(), RECIPE, pieces=2)
    area = tm.criteria.WorstGroupArea()
    torch.manual_seed(0)
    plain = tm.train(nn.Linear(4, 1).double(), *data(), RECIPE)
    torch.manual_seed(0)
    run = tm.train(nn.Linear(4, 1).double(), *data(), replace(RECIPE, interventions=(best.law,)))
    assert float(area.of(run)) == pytest.approx(best.after, abs=3e-3)
    assert float(area.of(run)) < float(area.of(plain)) - 0.02


@pytest.mark.parametrize(
    ("change", "more", "sentence"),
    [
        ({"weights": {"rare": 2.0}}, {}, "`best_schedule` has no solution with weights: leave it out."),
        ({"weight_decay": 0.1}, {}, "`best_schedule` has no solution with weight_decay: leave it out."),
        ({"interventions": (tm.interventions.GroupDRO(),)}, {}, "`best_schedule` searches what groups count: leave out GroupDRO, or use `forecast`."),
        ({}, {"pieces": 0}, "`pieces` should be a whole number, at least 1. Found pieces = 0."),
    ],
)  # fmt: skip
def test_bad_input(change, more, sentence):
    with pytest.raises(ValueError, match="`") as error:
        tm.best_schedule(kernels(), replace(RECIPE, **change), **more)
    assert str(error.value) == sentence


def test_wrong_types():
    with pytest.raises(TypeError, match=r"`tangent` should be the result of `tm.tangent`. Found Linear."):
        tm.best_schedule(nn.Linear(2, 1), RECIPE)
    with pytest.raises(TypeError, match="Found the class GapArea: call it"):
        tm.best_schedule(kernels(), RECIPE, tm.criteria.GapArea)
