"""A twin of share 1 is the training; narrower ones tell it; what cannot be told is refused."""

import copy
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

import tiltmeter as tm
from networks import small_cnn
from tiltmeter.forecast.task import forecast_task
from tiltmeter.forecast.twin import twins
from tiltmeter.forecast.twin.forecasts_by_twins import forecast_alone
from tiltmeter.forecast.twin.rule import Scale
from tiltmeter.modules.networks import mlp, two_layer

ADAMW = partial(torch.optim.AdamW, lr=3e-3, weight_decay=0.01)


def data(seed=0, points=400):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(points, 12)).astype(np.float32)
    group = np.where(np.arange(points) % 4 == 0, "rare", "common")
    y = np.where(np.where(group == "rare", x[:, 1] * x[:, 2], x[:, 0]) > 0, 1, -1)
    return tm.GroupedData(x, y, group).split(0.4)


def network(seed=0, hidden=(128,)):
    torch.manual_seed(seed)
    return mlp(12, hidden)


def apart(a, b):
    return max(float(abs(a[name] - b[name]).max()) for name in b)


def per_layer(parameters):
    first, *rest = list(parameters)
    return torch.optim.Adam([{"params": [first], "lr": 1e-2}, {"params": rest, "weight_decay": 0.1}], lr=1e-3)


RECIPES = {
    "AdamW, ours": tm.Recipe(ADAMW, schedule=tm.schedules.Cosine(3e-3, 40), steps=40, order=1, clip=0.5),
    "momentum": tm.Recipe(lr=0.05, momentum=0.9, weight_decay=0.01, steps=40, order=1, weights={"rare": 3.0}),
    "one cycle": tm.Recipe(
        torch.optim.Adam, schedule=partial(lr_scheduler.OneCycleLR, max_lr=3e-3, total_steps=41), steps=40, order=1
    ),
    "by layer": tm.Recipe(per_layer, steps=40, order=1, proportions={"rare": 0.5, "common": 0.5}),
    "given order": tm.Recipe(torch.optim.RMSprop, steps=40, order=np.arange(40 * 8).reshape(40, 8) % 240),
}


def separate(model, train, held_out, recipe, method):
    """The curves of every twin, and how they were made."""
    return forecast_alone(forecast_task(model, train, held_out, recipe), method, progress=False)


@pytest.mark.parametrize("name", RECIPES)
def test_share_one_is_the_training_to_the_bit(name):
    train, held_out = data()
    run = tm.train(network(), train, held_out, RECIPES[name])
    told = tm.forecast(network(), train, held_out, RECIPES[name], method=tm.methods.Twin(share=1))
    assert [name for name in told if not name.endswith(("_gap_low", "_gap_high"))] == list(run)
    assert apart({name: told[name] for name in run}, run) == 0.0
    assert told.origin.source == "forecast"
    assert told.origin.settings["recipe"] == run.origin.settings["recipe"]


@pytest.mark.parametrize("name", RECIPES)
def test_several_twins_are_each_by_itself(name):
    train, held_out = data()
    both, _ = separate(network(), train, held_out, RECIPES[name], tm.methods.Twin(1 / 4, count=2))
    for seed in range(2):
        alone, _ = separate(network(), train, held_out, RECIPES[name], tm.methods.Twin(1 / 4, count=1, seed=seed))
        assert (
            apart(
                {key: both[key].isel(seed=seed) for key in ("loss", "margin")},
                {key: alone[key] for key in ("loss", "margin")},
            )
            < 1e-6
        )


def test_a_linear_model_is_its_own_twin():
    train, held_out = data()
    torch.manual_seed(0)
    model = nn.Linear(12, 1)
    recipe = tm.Recipe(ADAMW, steps=40, order=0)
    with pytest.raises(ValueError, match="dimensions of more than 8 units"):
        tm.forecast(model, train, held_out, recipe, method=tm.methods.Twin())
    told = tm.forecast(model, train, held_out, recipe, method=tm.methods.Twin(share=1))
    run = tm.train(copy.deepcopy(model), train, held_out, recipe)
    assert apart({name: told[name] for name in run}, run) == 0.0


def gap(run):
    loss = run["loss"].mean("seed") if "seed" in run["loss"].dims else run["loss"]
    return (loss.sel(group="rare") - loss.sel(group="common")).values


def test_twins_tell_the_run_and_the_rule_is_why(monkeypatch):
    train, held_out = data(points=1500)
    recipe = replace(RECIPES["AdamW, ours"], steps=200, schedule=None)
    run = tm.train(network(), train, held_out, recipe)
    told = tm.forecast(network(), train, held_out, recipe, method=tm.methods.Twin(1 / 4))
    assert np.corrcoef(gap(told), gap(run))[0, 1] > 0.97
    off = np.abs(gap(told) - gap(run)).max()
    monkeypatch.setattr(twins, "scale_of", lambda *_: Scale())
    plain = tm.forecast(network(), train, held_out, recipe, method=tm.methods.Twin(1 / 4))
    assert np.abs(gap(plain) - gap(run)).max() > 1.3 * off


def test_orders_of_their_own_without_the_run_s():
    train, held_out = data()
    recipe = tm.Recipe(ADAMW, steps=40)
    told, account = separate(network(), train, held_out, recipe, tm.methods.Twin(share=1, count=3))
    assert told["loss"].sizes["seed"] == 3
    assert float(told["loss"].std("seed").max()) > 0
    assert account["order"] == "one for every twin"


def test_curves_answer_the_usual_questions(tmp_path):
    train, held_out = data()
    recipe = tm.Recipe(ADAMW, steps=60, order=0)
    told = tm.forecast(network(), train, held_out, recipe, method=tm.methods.Twin(1 / 4))
    run = tm.train(network(), train, held_out, recipe)
    assert set(run) <= set(told)
    assert tm.agreement(told, run)["loss"].how == "same times"
    assert str(tm.leaders(told, "loss"))
    tm.save(told, tmp_path / "told")
    assert tm.load(tmp_path / "told") == told


def test_convolutions_with_batch_norm_and_several_classes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3, 8, 8)).astype(np.float32)
    y, group = rng.integers(0, 3, 200), np.where(np.arange(200) % 2 == 0, "a", "b")
    train, held_out = tm.GroupedData(x, y, group).split(0.4)
    torch.manual_seed(0)
    model = small_cnn(3, 3, 32, normalise=True)
    before = copy.deepcopy(model.state_dict())
    recipe = tm.Recipe(ADAMW, steps=12, batch=16, order=0)
    told = tm.forecast(model, train, held_out, recipe, method=tm.methods.Twin(1 / 4))
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert told.origin.settings["calculation"]["cut"]["0"] == [8, 32]
    exact = tm.forecast(model, train, held_out, recipe, method=tm.methods.Twin(share=1))
    run = tm.train(model, train, held_out, recipe)
    assert apart({name: exact[name] for name in run}, run) == 0.0
    # Before the first batch, the twins answer as the network does.
    assert float(abs(told["loss"].sel(time=0) - run["loss"].sel(time=0)).max()) < 1e-5


def test_architectures_from_several_seeds():
    train, held_out = data()
    told = tm.forecast(
        lambda: mlp(12, (64,)),
        train,
        held_out,
        tm.Recipe(ADAMW, steps=20, order=0),
        method=tm.methods.Twin(1 / 4),
        seeds=3,
    )
    assert told.origin.settings["copies"] == 3
    assert told.origin.settings["promise"] is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"share": 0}, "`share` should be a share above 0, up to 1. Found share = 0."),
        ({"share": 1.5}, "`share` should be a share above 0, up to 1. Found share = 1.5."),
        ({"count": 0}, "`count` should be an integer from 1. Found count = 0."),
        ({"seed": -1}, "`seed` should be an integer from 0. Found seed = -1."),
    ],
)
def test_bad_routes(given, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        tm.methods.Twin(**given)


@pytest.mark.parametrize(
    ("model", "recipe", "said"),
    [
        (
            lambda: two_layer(12, 40, dtype=torch.float32),
            tm.Recipe(lr=0.1, steps=5),
            "needs dimensions of more than 8 units",
        ),
        (lambda: nn.Sequential(network(), nn.Sigmoid()), tm.Recipe(lr=0.1, steps=5), "answers with probabilities"),
        (network, tm.Recipe(torch.optim.Adafactor, steps=5), "Found Adafactor, which mixes"),
        (network, tm.Recipe(torch.optim.LBFGS, steps=5), "Found LBFGS, which evaluates the loss several times"),
        (network, tm.Recipe(ADAMW, steps=5, order=np.zeros((5, 2), int) + 999), "`order` should hold places below 240"),
        (
            network,
            tm.Recipe(ADAMW, steps=5, schedule=lr_scheduler.ReduceLROnPlateau),
            "ReduceLROnPlateau, which needs a metric",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The model's outputs are probabilities")
def test_what_twins_refuse(model, recipe, said):
    train, held_out = data()
    with pytest.raises((ValueError, TypeError), match=said):
        tm.forecast(model(), train, held_out, recipe, method=tm.methods.Twin())
