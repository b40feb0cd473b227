"""An ensemble that is killed goes on to the curves of the uninterrupted one, bit by bit."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiltmeter as tm  # noqa: E402

RULES = {
    "sgd": partial(torch.optim.SGD, lr=0.1),
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "adam": partial(torch.optim.Adam, lr=0.01),
}


class Killed(BaseException):
    """Not an Exception, as the signal of a user."""


def networks(dropout):
    def make():
        layers = [nn.Linear(6, 4), nn.Tanh(), nn.Dropout(0.3), nn.Linear(4, 1)]
        return nn.Sequential(*(layer for layer in layers if dropout or not isinstance(layer, nn.Dropout)))

    return make


def killed_at(step, monkeypatch):
    from tiltmeter.training.stacked_loop import StackedObservations

    evaluate = StackedObservations.__call__

    def dying(self, now):
        if now >= step:
            raise Killed
        return evaluate(self, now)

    monkeypatch.setattr(StackedObservations, "__call__", dying)


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("death", [3, 40])
def test_the_same_curves_bit_by_bit(flat, tmp_path, monkeypatch, rule, dropout, death):
    recipe = tm.Recipe(RULES[rule], steps=60, batch=8, loss=tm.Logistic())
    settings = {"seeds": 3, "watch": tm.Watch(when=tm.record.every(5))}
    train, held_out = flat.split(0.5)
    whole = tm.ensemble(networks(dropout), train, held_out, recipe, **settings)
    settings |= {"to": tmp_path / "run", "checkpoint": tm.record.every(12)}
    with monkeypatch.context() as patch:
        killed_at(death, patch)
        with pytest.raises(Killed):
            tm.ensemble(networks(dropout), train, held_out, recipe, **settings)
    again = tm.ensemble(networks(dropout), train, held_out, recipe, resume=True, **settings)
    assert set(again) == set(whole)
    for name in whole:
        np.testing.assert_array_equal(again[name].values, whole[name].values, err_msg=name)
    for name, array in whole.points.items():
        np.testing.assert_array_equal(again.points[name].values, array.values, err_msg=name)


def test_what_interventions_remember_is_kept(flat, tmp_path, monkeypatch):
    recipe = tm.Recipe(lr=0.1, steps=30, batch=16, loss=tm.Logistic(), interventions=(tm.interventions.GroupDRO(0.5),))
    settings = {"seeds": 2, "watch": tm.Watch(when=tm.record.every(5))}
    train, held_out = flat.split(0.5)
    whole = tm.ensemble(networks(False), train, held_out, recipe, **settings)
    settings |= {"to": tmp_path / "run", "checkpoint": tm.record.every(12)}
    with monkeypatch.context() as patch:
        killed_at(20, patch)
        with pytest.raises(Killed):
            tm.ensemble(networks(False), train, held_out, recipe, **settings)
    again = tm.ensemble(networks(False), train, held_out, recipe, resume=True, **settings)
    for name in whole:
        np.testing.assert_array_equal(again[name].values, whole[name].values, err_msg=name)


def test_what_cannot_go_on_is_refused(flat, tmp_path):
    recipe = tm.Recipe(lr=0.1, steps=10, batch=8)
    train, held_out = flat.split(0.5)
    with pytest.raises(ValueError, match="with `to=None` there is none to continue"):
        tm.ensemble(networks(False), train, held_out, recipe, seeds=2, resume=True)
    settings = {"to": tmp_path / "run", "checkpoint": tm.record.every(5)}
    tm.ensemble(networks(False), train, held_out, recipe, seeds=2, **settings)
    with pytest.raises(ValueError, match="seeds"):
        tm.ensemble(networks(False), train, held_out, recipe, seeds=3, resume=True, **settings)
