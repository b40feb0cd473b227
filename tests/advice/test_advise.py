"""Advice: ranks by forecast, what is not ranked, and the comparison with training."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

import tiltmeter as tm
from tiltmeter.advice.advice import Advice
from tiltmeter.advice.menu import menu
from tiltmeter.record import Origin

I = tm.interventions


def data(count=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, count)
    a = np.where(rng.random(count) < 0.9, y, 1 - y)
    x = rng.normal(size=(count, 6)).astype("float32")
    x[:, 0] += 2.0 * (2 * a - 1)
    x[:, 1] += 1.0 * (2 * y - 1)
    return tm.GroupedData(x, y, np.where(a == y, "with", "against"))


def network(width=24):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))


RECIPE = tm.Recipe(lr=0.1, steps=40, batch=32, loss=tm.Logistic())
ADAM = tm.Recipe(torch.optim.Adam, steps=40, batch=32, loss=tm.Logistic())
WATCH = tm.Watch(when=tm.every(10))


def asked(laws, **settings):
    return tm.advise(network(), data(), data(seed=1), RECIPE, laws, watch=WATCH, progress=False, **settings)


@pytest.fixture(scope="module")
def advice():
    laws = {"balanced": I.Balanced(), "SelecMix": I.SelecMix(), "DFR": I.DFR(), "both": (I.Balanced(), I.CVaR(0.8))}
    laws["CVaR"] = I.CVaR(0.5)
    return asked(laws, route=tm.routes.Twin(share=0.5, count=2))


def test_ranks_are_those_of_the_scorecard(advice):
    areas = [row.worst_area.value for row in advice.ranked]
    assert areas == sorted(areas)
    assert {row.name for row in advice.ranked} == {"plain", "balanced", "both", "CVaR", "SelecMix"}
    by_hand = {name: float(tm.criteria.WorstGroupArea().of(run).mean()) for name, run in advice.runs.items()}
    for row in advice.ranked:
        assert row.worst_area.value == pytest.approx(by_hand[row.name], rel=1e-6)


def test_balancing_is_forecast_to_help_the_rare_group(advice):
    assert "balanced" in advice.best
    assert advice.card["balanced"].worst_area_change.sign < 0


def test_what_cannot_be_forecast_is_named_with_the_reason(advice):
    assert set(advice.unranked) == {"DFR"}
    assert advice.unranked["DFR"].endswith("`train` applies it.")
    assert "Not ranked: DFR." in str(advice)
    assert json.dumps(advice.to_json(), allow_nan=False)


def test_laws_that_weigh_losses_are_forecast_together(advice):
    together = {name: run.origin.settings["calculation"]["recipes_together"] for name, run in advice.runs.items()}
    assert together == {"plain": 1, "balanced": 1, "both": 2, "CVaR": 2, "SelecMix": 1}
    alone = tm.forecast(
        network(),
        data(),
        data(seed=1),
        replace(RECIPE, interventions=(I.Balanced(), I.CVaR(0.8))),
        watch=WATCH,
        route=tm.routes.Twin(share=0.5, count=2),
    )
    np.testing.assert_allclose(advice.runs["both"]["loss"], alone["loss"], rtol=1e-6)


def test_a_second_law_of_groups_is_not_ranked():
    recipe = replace(RECIPE, interventions=(I.Balanced(),))
    laws = {"group DRO": I.GroupDRO(0.1), "CVaR": I.CVaR(0.8)}
    route = tm.routes.Twin(share=0.5, count=1)
    advice = tm.advise(network(), data(), data(seed=1), recipe, laws, watch=WATCH, route=route, progress=False)
    assert set(advice.unranked) == {"group DRO"}


def test_a_law_that_changes_nothing_is_not_among_the_best():
    advice = asked({"nothing": I.CVaR(alpha=1.0)}, route=tm.routes.Twin(share=0.5, count=1))
    # Negative control: nothing but rounding.
    assert advice.card["nothing"].worst_area_change.value == pytest.approx(0.0, abs=1e-6)
    assert "nothing" not in advice.best or advice.ranked[0].name == "nothing"


def constant(value):
    loss = xr.DataArray([[value, 0.1]] * 2, dims=("time", "group"), coords={"time": [0, 10], "group": ["a", "b"]})
    return tm.Trajectory({"loss": loss}, "step", Origin("training"))


def hand_made(**areas):
    runs = {name: constant(value) for name, value in areas.items()}
    return Advice(tm.scorecard(runs), runs, {}, {}, "by hand")


def test_agreement_with_training_by_hand():
    advice = hand_made(plain=0.9, one=0.5, two=0.6, three=0.7)
    same = advice.judged_by({n: constant(v) for n, v in {"plain": 0.8, "one": 0.3, "two": 0.4, "three": 0.5}.items()})
    assert same.correlation == pytest.approx(1.0)
    assert same.place_of_first == 1
    turned = advice.judged_by({n: constant(v) for n, v in {"plain": 0.1, "one": 0.4, "two": 0.3, "three": 0.2}.items()})
    assert turned.correlation == pytest.approx(-1.0)
    assert turned.place_of_first == 4
    assert "place 4 of 4" in str(turned)
    assert turned.places == (("plain", 4, 1), ("three", 3, 2), ("two", 2, 3), ("one", 1, 4))
    assert str(turned).splitlines()[1].split() == ["plain", "0.9000", "(4)", "0.1000", "(1)"]


def test_nothing_better_than_plain():
    advice = hand_made(plain=0.2, one=0.5)
    assert advice.best == ()
    assert "No intervention is forecast" in str(advice)


def scattered(*values):
    return tm.stack([replaced_seed(constant(value), seed) for seed, value in enumerate(values)])


def replaced_seed(run, seed):
    return tm.Trajectory(dict(run), run.clock, Origin("training", seeds=(seed,)))


def test_gains_within_their_error_are_said():
    runs = {"plain": scattered(0.9, 0.8), "sure": scattered(0.5, 0.41), "luck": scattered(0.7, 0.9)}
    advice = Advice(tm.scorecard(runs), runs, {}, {}, "by hand")
    assert advice.best == ("sure", "luck")
    assert advice.unsure == ("luck",)
    assert "The gain is within two standard errors: luck." in str(advice)
    assert advice.to_json()["unsure"] == ["luck"]
    assert hand_made(plain=0.9, one=0.5).unsure == ()


def test_the_menu_needs_no_held_out_groups():
    assert all(law.needs != "held-out groups" for law in menu(100).values())
    assert menu(5)["JTT"].scout == 1


@pytest.mark.parametrize(
    ("laws", "sentence"),
    [
        ({}, "at least one intervention"),
        ({"plain": I.Balanced()}, "give the law another name"),
        ({"x": I.DFR()}, "None of the interventions can be forecast"),
    ],
)
def test_refusals(laws, sentence):
    with pytest.raises(ValueError, match=sentence):
        asked(laws, route=tm.routes.Twin(share=0.5, count=1))


def test_training_that_was_not_forecast_is_refused():
    with pytest.raises(ValueError, match="'other'"):
        hand_made(plain=0.2, one=0.5).judged_by({"plain": constant(0.1), "other": constant(0.2)})


def test_laws_without_names_are_refused():
    data = tm.GroupedData(np.zeros((4, 2), dtype="float32"), [0, 1, 0, 1], ["a", "a", "b", "b"])
    with pytest.raises(
        TypeError, match=r'`laws` should give interventions by name, as {"balanced": Balanced\(\)}. Found'
    ):
        tm.advise(torch.nn.Linear(2, 1), data, data, tm.Recipe(lr=0.1, steps=2), laws=[tm.interventions.Balanced()])


def test_of_a_frozen_backbone_all_weights_that_learn_are_followed():
    model = network()
    model[0].requires_grad_(False)
    recipe = replace(RECIPE, order=0)
    laws = {"balanced": I.Balanced(), "UPGrad": I.UPGrad()}
    found = tm.advise(model, data(), data(seed=1), recipe, laws, watch=WATCH, progress=False)
    assert found.route == "linearised network, up to 4000 of its weights"
    assert "UPGrad" in found.unranked
    for name, law in {"plain": (), "balanced": (I.Balanced(),)}.items():
        own = network()
        own[0].requires_grad_(False)
        run = tm.train(own, data(), data(seed=1), replace(recipe, interventions=law), watch=WATCH)
        np.testing.assert_allclose(found.runs[name]["loss"], run["loss"], rtol=1e-4)
    assert asked({"balanced": I.Balanced()}).route.startswith("2 twins")


def test_a_network_that_cannot_be_cut_is_followed_by_coordinates():
    torch.manual_seed(0)
    tiny = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    found = tm.advise(tiny, data(), data(seed=1), ADAM, {"balanced": I.Balanced()}, watch=WATCH, progress=False)
    assert found.route.startswith("linearised network")
    assert found.runs["plain"]["loss"].sizes["seed"] == 2  # batches are not known


def test_convolutions_keep_a_quarter():
    torch.manual_seed(0)
    images = torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 2, 3)), torch.nn.Conv2d(1, 64, 2), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(128, 1),
    )  # fmt: skip
    found = tm.advise(images, data(), data(seed=1), RECIPE, {"balanced": I.Balanced()}, watch=WATCH, progress=False)
    assert found.route == "2 twins with 0.25 of the width"
