"""Several recipes are forecast as each is alone, and the untrained network is asked once for all of them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import tiltmeter as tm
from tiltmeter.forecast.task import forecast_task
from tiltmeter.forecast.twin import untrained
from tiltmeter.forecast.twin.forecasts_by_twins import forecasts_by_twins
from tiltmeter.modules.networks import mlp

lab = pytest.importorskip("tiltmeter_lab")

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


def forecasts_of(model, data, asked, route, watch=CURVES_ONLY):
    task = forecast_task(model, *data, next(iter(asked.values())), watch)
    return forecasts_by_twins(task, asked, route)


def both_ways(data, asked, route, watch=CURVES_ONLY, model=network):
    together, refused = forecasts_of(model(), data, asked, route, watch)
    assert not refused
    assert list(together) == list(asked)
    task = {name: forecast_task(model(), *data, one, watch) for name, one in asked.items()}
    return together, {name: route.forecast(one) for name, one in task.items()}


def assert_same(together, alone):
    for name, run in alone.items():
        for curve in together[name]:
            assert together[name][curve].identical(run[curve]) or curve not in run, (name, curve)  # to the bit
        assert together[name].points == run.points
        assert together[name].origin.settings["recipe"] == run.origin.settings["recipe"]


@pytest.mark.parametrize("plain", [ADAMW, SGD], ids=["with the order", "without"])
def test_a_mixture_of_weights_and_laws_is_each_alone(plain, data):
    asked = recipes(plain, WEIGHTS | INTERVENTIONS)
    together, alone = both_ways(data, asked, tm.methods.Twin(1 / 4))
    assert_same(together, alone)
    losses = [run["loss"].isel(time=-1).values.tobytes() for name, run in together.items() if name != "plain"]
    assert len(set(losses)) == len(losses)  # the recipes do differ
    assert "pull" in together["Balanced"]
    assert "pull" not in together["plain"]


def test_points_of_every_look_are_kept(data):
    asked = recipes(ADAMW, {name: (WEIGHTS | INTERVENTIONS)[name] for name in ("plain", "GroupDRO")})
    assert_same(*both_ways(data, asked, tm.methods.Twin(1 / 4), tm.Watch(when=tm.record.every(10))))


def test_the_untrained_network_is_asked_once(data, monkeypatch):
    asked = []
    plain_scores = untrained.Untrained._scores

    def scores(self, network, places):
        asked.append(network)
        return plain_scores(self, network, places)

    monkeypatch.setattr(untrained.Untrained, "_scores", scores)
    changes = WEIGHTS | INTERVENTIONS
    forecasts_of(network(), data, recipes(replace(ADAMW, steps=2), changes), tm.methods.Twin(1 / 4))
    assert len(asked) == 1 + len(changes)  # the network once, and the twin of every recipe


def test_recipes_that_draw_or_step_otherwise_equal_their_own(data):
    changes = {
        "plain": {},
        "drawn": {"proportions": {"rare": 0.5, "common": 0.5}},
        "other order": {"order": 2},
        "longer": {"steps": 31},
        "UPGrad": {"interventions": (I.UPGrad(),)},
        "down-sampled": {"interventions": (I.Downsampled(),)},
    }
    together, alone = both_ways(data, recipes(ADAMW, changes), tm.methods.Twin(1 / 4))
    assert_same(together, alone)
    assert not np.array_equal(together["plain"]["loss"].values, together["other order"]["loss"].values)


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


def test_refusals_name_their_recipe_only(data):
    changes = {
        "plain": {},
        "weighted": {"weights": {"rare": 2.0}},
        "DFR": {"interventions": (I.DFR(),)},
        "GCE": {"interventions": (tm.interventions.GeneralisedCrossEntropy(),)},
    }
    asked = recipes(replace(ADAMW, loss=tm.Square()), changes)
    runs, refused = forecasts_of(network(), data, asked, tm.methods.Twin(1 / 4, count=2))
    assert list(runs) == ["plain", "weighted"]
    assert "delivers no other model" in str(refused["DFR"])
    assert "needs the logistic loss" in str(refused["GCE"])


def test_what_is_wrong_with_all_is_said_of_all(data):
    asked = recipes(replace(ADAMW, optimiser=torch.optim.Adafactor), {"one": {}, "two": {"weights": {"rare": 2.0}}})
    runs, refused = forecasts_of(network(), data, asked, tm.methods.Twin(1 / 4, count=2))
    assert not runs
    assert all("Adafactor" in str(error) for error in refused.values())
