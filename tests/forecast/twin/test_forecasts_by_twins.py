"""Recipes whose twins train in one stack are forecast as each is alone; what cannot share a stack does not.

Layers of 16 units keep the weights of every twin at a multiple of 64 bytes: the library of matrix products may round in
another way elsewhere.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.task import forecast_task
from tiltmeter.forecast.twin import forecasts_by_twins as module
from tiltmeter.forecast.twin import untrained
from tiltmeter.forecast.twin.forecasts_by_twins import forecasts_by_twins
from tiltmeter.modules.networks import mlp

I = tm.interventions
ADAMW = tm.Recipe(partial(torch.optim.AdamW, lr=3e-3, weight_decay=0.01), steps=30, batch=32, order=1)
SGD = tm.Recipe(lr=0.05, momentum=0.9, steps=30, batch=32, clip=0.5)
WEIGHTS = {f"weight {one:g}": {"weights": {"rare": one}} for one in (0.5, 1.0, 4.0)} | {"plain": {}}
INTERVENTIONS = {
    "Balanced": {"interventions": (I.Balanced(),)},
    "weighted Balanced": {"interventions": (I.Balanced(),), "weights": {"rare": 3.0}},
    "GroupDRO": {"interventions": (I.GroupDRO(rate=0.1),)},
    "V-REx": {"interventions": (I.VREx(beta=10.0),)},
    "CVaR": {"interventions": (I.CVaR(0.5),)},
    "weighted DRO": {"interventions": (I.GroupDRO(rate=0.2),), "weights": {("rare", 1): 2.0}},
}
CURVES_ONLY = tm.Watch(points=False)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 16)).astype(np.float32)
    group = np.where(np.arange(400) % 4 == 0, "rare", "common")
    y = np.where(np.where(group == "rare", x[:, 1] * x[:, 2], x[:, 0]) > 0, 1, -1)
    return tm.GroupedData(x, y, group).split(0.4)


def network(hidden=(64,)):
    torch.manual_seed(0)
    return mlp(16, hidden)


def recipes(plain, changes):
    return {name: replace(plain, **change) for name, change in changes.items()}


def together(run):
    return run.origin.settings["calculation"]["recipes_together"]


def forecasts_of(model, data, asked, route, watch=CURVES_ONLY):
    task = forecast_task(model, *data, next(iter(asked.values())), watch)
    return forecasts_by_twins(task, asked, route)


def both_ways(data, asked, route, watch=CURVES_ONLY, model=network):
    found = forecasts_of(model(), data, asked, route, watch).all_of_them()
    assert list(found) == list(asked)
    alone = {
        name: forecasts_of(model(), data, {name: one}, route, watch).all_of_them()[name] for name, one in asked.items()
    }
    return found, alone


def assert_same(found, alone):
    for name, run in alone.items():
        assert list(found[name]) == list(run), name
        for curve in run:
            assert found[name][curve].identical(run[curve]), (name, curve)  # to the bit
        assert found[name].points == run.points
        assert found[name].origin.settings["recipe"] == run.origin.settings["recipe"]
        assert together(run) == 1


@pytest.mark.parametrize("plain", [ADAMW, SGD], ids=["with the order", "without"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_mixture_of_weights_and_laws_is_each_alone(plain, count, data):
    asked = recipes(plain, WEIGHTS | INTERVENTIONS)
    found, alone = both_ways(data, asked, tm.methods.Twin(1 / 4, count=count))
    assert_same(found, alone)
    # One stack without interventions, one of constant interventions, which are weights, and one of interventions that
    # react.
    stacks = {name: 2 if "Balanced" in name else 4 for name in asked}
    assert {name: together(run) for name, run in found.items()} == stacks
    losses = [run["loss"].isel(time=-1).values.tobytes() for name, run in found.items() if name != "plain"]
    assert len(set(losses)) == len(losses)  # the recipes do differ


def test_points_of_every_look_are_kept(data):
    asked = recipes(
        ADAMW, {name: (WEIGHTS | INTERVENTIONS)[name] for name in ("plain", "Balanced", "GroupDRO", "CVaR")}
    )
    found, alone = both_ways(data, asked, tm.methods.Twin(1 / 4), tm.Watch(when=tm.record.every(10)))
    assert_same(found, alone)
    assert "pull" in found["Balanced"]
    assert "pull" not in found["plain"]


def test_deep_networks_and_unknown_activations(data):
    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1))

    found, alone = both_ways(data, recipes(ADAMW, WEIGHTS), tm.methods.Twin(1 / 2), model=model)
    assert_same(found, alone)
    assert all(together(run) == 4 for run in found.values())


def test_roughly_known_scores_are_those_of_the_recipe_alone(data, monkeypatch):
    """Many points: recipes without interventions know what a twin adds roughly, those with them exactly."""
    monkeypatch.setattr(untrained, "MANY", 120)
    monkeypatch.setattr(untrained, "ASKED", 60)
    monkeypatch.setattr(untrained, "NEAR", np.inf)
    asked = recipes(
        ADAMW, {name: (WEIGHTS | INTERVENTIONS)[name] for name in ("plain", "weight 4", "Balanced", "GroupDRO", "CVaR")}
    )
    found, alone = both_ways(data, asked, tm.methods.Twin(1 / 4))
    assert_same(found, alone)
    assert together(found["plain"]) == 2


def test_the_untrained_network_and_its_twins_are_asked_once(data, monkeypatch):
    asked = []
    plain_scores = untrained.Untrained._scores

    def scores(self, network, places):
        asked.append(network)
        return plain_scores(self, network, places)

    monkeypatch.setattr(untrained.Untrained, "_scores", scores)
    for changes in (WEIGHTS, INTERVENTIONS):
        asked.clear()
        forecasts_of(network(), data, recipes(ADAMW, changes), tm.methods.Twin(1 / 4, count=2))
        assert len(asked) == 3  # the network and its two twins, for all recipes


def test_other_draws_are_not_stacked_and_equal_their_own(data):
    """A negative control: batches, steps and optimisers that differ belong to other stacks."""
    changes = {
        "plain": {},
        "drawn": {"proportions": {"rare": 0.5, "common": 0.5}},
        "balanced draws": {"interventions": (I.Balanced(by="draws"),)},
        "other order": {"order": 2},
        "other batch": {"batch": 16},
        "longer": {"steps": 31},
        "other rate": {"optimiser": partial(torch.optim.AdamW, lr=1e-3)},
        "UPGrad": {"interventions": (I.UPGrad(),)},
        "down-sampled": {"interventions": (I.Downsampled(),)},
    }
    found, alone = both_ways(data, recipes(ADAMW, changes), tm.methods.Twin(1 / 4))
    assert_same(found, alone)
    assert all(together(run) == 1 for run in found.values())
    ways = {name: run.origin.settings["calculation"]["trained"] for name, run in found.items()}
    assert {name for name, way in ways.items() if way == "one by one"} == {"UPGrad", "down-sampled"}
    assert not np.array_equal(found["plain"]["loss"].values, found["other order"]["loss"].values)


def test_networks_that_are_no_chain_are_forecast_one_after_another(data):
    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 1))

    found, alone = both_ways(data, recipes(replace(ADAMW, steps=5), WEIGHTS), tm.methods.Twin(1 / 2), model=model)
    assert_same(found, alone)
    account = found["plain"].origin.settings["calculation"]
    assert (account["trained"], account["recipes_together"]) == ("one by one", 1)


@pytest.mark.parametrize("laws", [(), (I.GroupDRO(rate=0.1),)], ids=["weights", "laws"])
def test_a_recipe_that_diverges_leaves_the_others_alone(laws, data):
    plain = replace(SGD, clip=None, loss=tm.Square(), interventions=laws)
    asked = recipes(
        plain, {"sound": {}, "wild": {"weights": {"rare": 1e9, "common": 1e9}}, "too": {"weights": {"rare": 2.0}}}
    )
    found, alone = both_ways(data, asked, tm.methods.Twin(1 / 4))
    assert_same(found, alone)
    assert found["sound"].diverged is None
    assert found["too"].diverged is None
    assert found["wild"].diverged.identical(alone["wild"].diverged)
    assert together(found["wild"]) == 3


def test_few_recipes_at_a_time_where_memory_ends(data, monkeypatch):
    monkeypatch.setattr(module, "MOST_WEIGHTS", 2 * 2 * (16 * 16 + 16 + 16 + 1))  # two recipes of two twins
    found = forecasts_of(network(), data, recipes(ADAMW, WEIGHTS), tm.methods.Twin(1 / 4, count=2)).runs
    assert [together(run) for run in found.values()] == [2, 2, 2, 2]


def test_refusals_name_their_recipe_only(data):
    changes = {
        "plain": {},
        "weighted": {"weights": {"rare": 2.0}},
        "DFR": {"interventions": (I.DFR(),)},
        "GCE": {"interventions": (I.GeneralisedCrossEntropy(),)},
    }
    asked = recipes(replace(ADAMW, loss=tm.Square()), changes)
    found = forecasts_of(network(), data, asked, tm.methods.Twin(1 / 4, count=2))
    assert list(found.runs) == ["plain", "weighted"]
    assert "delivers no other model" in str(found.refused["DFR"])
    assert "needs the logistic loss" in str(found.refused["GCE"])
    with pytest.raises(ValueError, match="delivers no other model"):
        found.all_of_them()


def test_what_is_wrong_with_all_is_said_of_all(data):
    asked = recipes(replace(ADAMW, optimiser=torch.optim.Adafactor), {"one": {}, "two": {"weights": {"rare": 2.0}}})
    found = forecasts_of(network(), data, asked, tm.methods.Twin(1 / 4, count=2))
    assert not found.runs
    assert all("Adafactor" in str(error) for error in found.refused.values())
