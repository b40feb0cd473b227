"""Advice: ranks by forecast, what is not ranked, and the comparison with training."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

import tiltmeter as tm
from tiltmeter.advice import advise as module
from tiltmeter.advice.advice import Advice
from tiltmeter.forecast import rehearsal, task
from tiltmeter.interventions.menu import menu
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
WATCH = tm.Watch(when=tm.record.every(10))


def asked(laws, **settings):
    return tm.advise(network(), data(), data(seed=1), RECIPE, laws, watch=WATCH, progress=False, **settings)


@pytest.fixture(scope="module")
def advice():
    laws = {"balanced": I.Balanced(), "SelecMix": I.SelecMix(), "DFR": I.DFR(), "both": (I.Balanced(), I.CVaR(0.8))}
    laws["CVaR"] = I.CVaR(0.5)
    return asked(laws, method=tm.methods.Twin(share=0.5, count=2))


def test_ranks_of_narrow_copies_are_those_of_the_last_evaluation(advice):
    values = [advice.value(advice.runs[row.name]) for row in advice.ranked]
    assert values == sorted(values)
    last = advice.runs["plain"][advice.curve].isel(time=-1).mean("seed")
    assert advice.value(advice.runs["plain"]) == pytest.approx(float(np.ptp(last.values)))
    assert {row.name for row in advice.ranked} == {"plain", "balanced", "both", "CVaR", "SelecMix"}
    assert advice.better == ()
    assert str(advice).startswith("Try first: ")
    assert "better than plain" in advice.headline  # that they do not say whether


@pytest.fixture(scope="module")
def rehearsed():
    arms = {"balanced": I.Balanced(), "nothing": I.CVaR(alpha=1.0), "DFR": I.DFR()}
    recipe = replace(RECIPE, steps=120, order=0)
    return tm.advise(
        network(),
        data(2000),
        data(2000, seed=1),
        recipe,
        arms,
        watch=WATCH,
        method=tm.methods.Rehearsal(),
        price=0.2,
        progress=False,
    )


def test_an_intervention_is_named_only_if_the_gap_clearly_shrinks_and_fresh_trainings_confirm_it(rehearsed):
    assert rehearsed.better == ("balanced",)
    assert [row.name for row in rehearsed.ranked] == ["balanced", "plain", "nothing"]
    gap = rehearsed.changes["balanced"].gap
    assert gap.low < gap.change < gap.high < 0
    assert rehearsed.changes["nothing"].gap.change == pytest.approx(0.0, abs=1e-6)
    assert "DFR needs validation groups" in rehearsed.unranked["DFR"]
    assert rehearsed.confirmed.scope == "trainings"
    assert rehearsed.confirmed.trainings == 5
    assert rehearsed.confirmed.helps
    assert re.match(
        r"Balanced: the gap falls from \d+ to -?\d+ points, error .*, (nobody|[\w ]+) pays?\. Confirmed by 5",
        str(rehearsed),
    )
    assert re.search(r"1\. balanced +-?\d+ .*\(-.* to -.*\) +\d+ %", str(rehearsed))
    assert re.search(r"2\. plain .*\nNo clear gain, or not recommended:\n 3\. nothing ", str(rehearsed))
    assert json.dumps(rehearsed.to_json(), allow_nan=False)


def test_without_confirmation_it_is_said(rehearsed):
    assert "Not confirmed: " in replace(rehearsed, confirmed=None, unconfirmed="that takes long.").headline
    weaker = replace(rehearsed.confirmed, reason="it selects many more or fewer people, and the gap does not shrink")
    assert replace(rehearsed, confirmed=weaker).headline.startswith("No change is clear; the best so far is balanced.")


def test_saved_and_loaded(rehearsed, advice, tmp_path):
    area = replace(rehearsed, criterion=tm.fairness.criteria.WorstGroupArea())
    for number, one in enumerate((rehearsed, advice, area)):
        one.save(tmp_path / str(number))
        again = tm.results.load_advice(tmp_path / str(number))
        assert str(again) == str(one)
        assert again.to_json() == one.to_json()
        assert again.runs == one.runs
        assert again.interventions == one.interventions
        assert again.criterion == one.criterion
    with pytest.raises(FileNotFoundError, match=r"Found no advice\.json at"):
        tm.results.load_advice(tmp_path)
    (tmp_path / "0" / "advice.json").write_text("{}")
    with pytest.raises(ValueError, match=r"advice\.json is damaged: its checksum is missing\."):
        tm.results.load_advice(tmp_path / "0")
    with pytest.raises(FileExistsError):
        rehearsed.save(tmp_path / "1")


def test_the_trainings_are_those_of_train_with_the_same_batches(rehearsed):
    recipe = replace(RECIPE, steps=120, order=0, interventions=(I.Balanced(),))
    run = tm.train(network(), data(2000), data(2000, seed=1), recipe, watch=WATCH)
    np.testing.assert_array_equal(rehearsed.runs["balanced"]["loss"], run["loss"])


def test_other_criteria_and_questions(rehearsed):
    arms = {"balanced": I.Balanced()}
    whole = asked(arms, criterion=tm.fairness.criteria.WorstGroupArea(), method=tm.methods.Rehearsal())
    value = float(tm.fairness.criteria.WorstGroupArea().of(whole.runs["plain"]))
    assert whole.value(whole.runs["plain"]) == pytest.approx(value)
    assert "averaged over training" in str(whole)
    asks = SimpleNamespace(asked="tpr")
    benefit = asked(arms, question=asks, method=tm.methods.Rehearsal())
    assert (benefit.curve, benefit.card.curve) == ("tpr", "error")
    gap = float(np.ptp(benefit.runs["plain"]["tpr"].isel(time=-1).values))
    assert benefit.value(benefit.runs["plain"]) == pytest.approx(gap)


def test_the_budget_decides_what_is_tried(capsys, monkeypatch):
    arms = {"balanced": I.Balanced(), "CVaR": I.CVaR(0.8)}
    assert asked(arms).rehearsed
    real = task.price_of
    monkeypatch.setattr(task, "price_of", lambda one: real(one)._replace(loop=900.0, training=1000.0))
    monkeypatch.setattr(module, "twin_for", lambda _: None)
    few = tm.advise(network(), data(), data(seed=1), RECIPE, arms, budget=2.0, watch=WATCH)
    assert few.unranked == {"CVaR": "The budget does not pay for it."}
    assert "trainings: rehearsals." in capsys.readouterr().err


def test_an_interrupt_compares_what_is_finished(monkeypatch):
    original, calls = rehearsal.train_copy, []

    def stops(copy):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(copy)

    monkeypatch.setattr(rehearsal, "train_copy", stops)
    found = asked({"balanced": I.Balanced(), "CVaR": I.CVaR(0.8)}, method=tm.methods.Rehearsal())
    assert set(found.runs) == {"plain", "balanced"}
    assert found.unranked == {"CVaR": "It was not finished."}


def test_what_cannot_be_forecast_is_named_with_the_reason(advice):
    assert set(advice.unranked) == {"DFR"}
    assert advice.unranked["DFR"].endswith("`train` applies it.")
    assert "Not tried: DFR." in str(advice)
    assert json.dumps(advice.to_json(), allow_nan=False)


def test_advice_by_narrow_copies_is_their_forecast(advice):
    alone = tm.forecast(
        network(),
        data(),
        data(seed=1),
        replace(RECIPE, interventions=(I.Balanced(), I.CVaR(0.8)), order=0),
        watch=WATCH,
        method=tm.methods.Twin(share=0.5, count=2),
    )
    np.testing.assert_allclose(advice.runs["both"]["loss"].mean("seed"), alone["loss"], rtol=1e-6)


def test_a_second_law_of_groups_is_not_ranked():
    recipe = replace(RECIPE, interventions=(I.Balanced(),))
    laws = {"group DRO": I.GroupDRO(0.1), "CVaR": I.CVaR(0.8)}
    route = tm.methods.Twin(share=0.5, count=1)
    advice = tm.advise(network(), data(), data(seed=1), recipe, laws, watch=WATCH, method=route, progress=False)
    assert set(advice.unranked) == {"group DRO"}


def test_a_law_that_changes_nothing_is_not_among_the_best():
    advice = asked({"nothing": I.CVaR(alpha=1.0)}, method=tm.methods.Twin(share=0.5, count=1))
    # Negative control: nothing but rounding.
    assert advice.card["nothing"].worst_area_change.value == pytest.approx(0.0, abs=1e-6)
    assert "nothing" not in advice.best or advice.ranked[0].name == "nothing"


def constant(value):
    loss = xr.DataArray([[value, 0.1]] * 2, dims=("time", "group"), coords={"time": [0, 10], "group": ["a", "b"]})
    return tm.Trajectory({"loss": loss}, "step", Origin("training"))


def hand_made(**areas):
    runs = {name: constant(value) for name, value in areas.items()}
    return Advice(tm.scorecard(runs), runs, {}, {}, "by hand", rehearsed=False)


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
    assert str(turned).splitlines()[1].split() == ["plain", "0.8000", "(4)", "0.0000", "(1)"]


def test_nothing_better_than_plain():
    advice = hand_made(plain=0.2, one=0.5)
    assert advice.best == ()
    assert "Nothing to try first" in str(advice)


def test_the_menu_needs_no_held_out_groups():
    assert all(law.needs != "validation groups" for law in menu(100).values())
    assert menu(5)["JTT"].scout == 1


@pytest.mark.parametrize(
    ("laws", "sentence"),
    [
        ({}, "`interventions` should hold at least one"),
        ({"plain": I.Balanced()}, "give the intervention another name"),
        ({"x": I.DFR()}, "None of the interventions can be tried"),
    ],
)
def test_refusals(laws, sentence):
    with pytest.raises(ValueError, match=sentence):
        asked(laws, method=tm.methods.Twin(share=0.5, count=1))


def test_training_that_was_not_forecast_is_refused():
    with pytest.raises(ValueError, match="'other'"):
        hand_made(plain=0.2, one=0.5).judged_by({"plain": constant(0.1), "other": constant(0.2)})


def test_laws_without_names_are_refused():
    data = tm.GroupedData(np.zeros((4, 2), dtype="float32"), [0, 1, 0, 1], ["a", "a", "b", "b"])
    with pytest.raises(
        TypeError, match=r'`interventions` should give them by name, as {"balanced": Balanced\(\)}. Found'
    ):
        tm.advise(torch.nn.Linear(2, 1), data, data, tm.Recipe(lr=0.1, steps=2), [tm.interventions.Balanced()])


def loans(usual, seed=0, count=3000):
    """Two groups with `usual` incomes, repaying as often: a model that sees incomes misses the poorer one."""
    rng = np.random.default_rng(seed)
    group = rng.choice(list(usual), count)
    middle = np.array([usual[one] for one in group])
    income = rng.normal(middle, 8.0)
    repaid = (0.2 * (income - middle) + 0.7 * rng.logistic(size=count) > 0).astype(int)
    x = np.stack([(income - 38) / 8, rng.normal(size=count)], 1).astype("float32")
    return tm.GroupedData(x, repaid, group, question=tm.Question("approved", "repaid")).split(0.5)


def on_decisions(usual, seed=0):
    train, held_out = loans(usual, seed)
    torch.manual_seed(0)
    arms = {name: arm for name, arm in menu(200, "tpr").items() if name not in menu(200)}
    settings = {"method": tm.methods.Rehearsal(), "progress": False, "watch": WATCH}
    recipe = replace(RECIPE, steps=200, order=0)
    model = torch.nn.Linear(2, 1)
    return tm.advise(model, train, held_out, recipe, arms, **settings), model, train, held_out, recipe


def test_thresholds_by_group_are_fitted_to_training_points_and_judged_on_others():
    advice, model, train, held_out, recipe = on_decisions({"men": 42.0, "women": 34.0})
    assert advice.curve == "tpr"
    assert advice.better == ("thresholds by group",)
    tm.train(model, train, held_out, recipe)
    fitted = I.GroupThreshold("tpr").deliver(model, train)
    scores = fitted(held_out.tensors()[0], [held_out.groups[code] for code in held_out.codes]).detach().numpy()
    again = [float((scores[(held_out.codes == code) & (held_out.y == 1)] > 0).mean()) for code in range(2)]
    np.testing.assert_allclose(advice.runs["thresholds by group"]["tpr"].values[-1], again, atol=1e-6)
    gaps = {name: float(np.ptp(run["tpr"].values[-1])) for name, run in advice.runs.items()}
    assert gaps["thresholds by group"] < 0.4 * gaps["plain"]
    text = str(advice)
    assert re.search(r"1\. thresholds by group\*", text)
    assert text.startswith("Thresholds by group: the gap falls from ")
    assert "; it needs the group at every decision. Confirmed by 5 fresh trainings of each." in text
    assert max(len(line.partition(";")[0]) for line in text.splitlines()[2:]) <= 80  # remarks may wrap
    assert text.endswith("* needs the group at every decision")


def test_of_random_groups_nothing_is_recommended():
    """Negative control: groups that differ in nothing, four times."""
    for seed in range(4):
        advice = on_decisions({"a": 38.0, "b": 38.0}, seed)[0]
        assert advice.better == ()
        assert advice.ranked[0].name == "plain"
