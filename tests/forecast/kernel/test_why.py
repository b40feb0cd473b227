"""Why a forecast loss differs: each reason put into the data by hand is found, and no reason where there is none."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.kernel.why import BASE_RATES, SHARES, SPREAD, Why, _point_losses

RECIPE = tm.Recipe(lr=0.2, steps=60, batch=None, loss=tm.Logistic())


def kernels(seed=0, share=0.5, rates=(0.5, 0.5), spread=(1.0, 1.0), turned=0.0, told=False):
    """A linear network that starts at zero; b is the share `share` of the points."""
    rng = np.random.default_rng(seed)
    group = np.where(np.arange(1200) < 1200 * share, "b", "a")
    second = group == "b"
    y = np.where(rng.random(1200) < np.where(second, rates[1], rates[0]), 1, 0)
    x = rng.normal(size=(1200, 5))
    x[:, 0] += np.where(second, np.cos(turned), 1.0) * (2 * y - 1)
    x[:, 1] += np.where(second, np.sin(turned), 0.0) * (2 * y - 1)
    x[:, 4] = 3.0 * (2 * second - 1) if told else x[:, 4]
    x *= np.where(second, spread[1], spread[0])[:, None]
    order = rng.permutation(1200)
    data = tm.GroupedData(x[order].astype(np.float32), y[order], group[order])
    model = nn.Linear(5, 1)
    nn.init.zeros_(model.weight), nn.init.zeros_(model.bias)
    return tm.tangent(model, *data.split(0.5))


def test_a_small_share_matters_where_tasks_differ():
    why = kernels(share=0.1, turned=1.5).why(RECIPE, step=60)
    assert why.worse == "b"
    assert why.matter[0] == SHARES
    assert f"With {SHARES} (now 10 % and 90 % of the data)" in str(why)
    assert why.without[SHARES] < why.gap


def test_base_rates_matter_in_training_and_among_the_held_out_points():
    blind = kernels(rates=(0.5, 0.05)).why(RECIPE, step=60)  # no input tells the group
    assert blind.base_rates["b"] == pytest.approx(0.05, abs=0.03)
    assert BASE_RATES not in blind.matter
    assert blind.from_labels > 0.2 * blind.gap
    assert "comes from different shares of labels among the held-out points" in str(blind)
    assert "not known." not in str(blind).split("By step")[0]
    told = kernels(rates=(0.5, 0.05), told=True).why(RECIPE, step=60)
    assert BASE_RATES in told.matter
    assert "positives)" in str(told)


def test_spread_matters_where_inputs_are_larger():
    why = kernels(spread=(0.3, 1.0)).why(RECIPE, step=60)
    assert why.worse == "a"
    assert why.matter[0] == SPREAD
    assert why.spread["b"] > why.spread["a"]


def test_it_says_when_it_does_not_know():
    """Labels of b flipped at random: nothing in the kernels tells."""
    found = kernels()
    rng = np.random.default_rng(5)

    def flipped(data):
        return tm.GroupedData(data.x, np.where((data.codes == 1) & (rng.random(len(data)) < 0.3), 1 - data.y, data.y),
                              np.array(data.groups)[data.codes])  # fmt: skip

    model = nn.Linear(5, 1)
    nn.init.zeros_(model.weight), nn.init.zeros_(model.bias)
    why = tm.tangent(model, flipped(found.sample), flipped(found.held_out)).why(RECIPE, step=60)
    assert why.worse == "b"
    assert why.matter == ()
    assert "None of these explains the gap: the reason is not known." in str(why)
    assert str(why).endswith("Noise in labels is not known to a forecast.")


def test_it_explains_the_loss_that_is_forecast():
    """Losses are those of the forecast of the same recipe, logistic or squares, and shares differ between the two."""
    one = kernels(share=0.3, turned=1.0)
    for loss in (tm.Logistic(), tm.Square()):
        recipe = tm.Recipe(lr=0.1, steps=20, batch=None, loss=loss)
        ahead = one.forecast(recipe)["loss"].sel(time=20)
        why = one.why(recipe, step=20)
        assert why.losses == pytest.approx({g: ahead.sel(group=g).item() for g in ("a", "b")}, rel=1e-6)
        assert loss.definition in str(why)


def test_the_learned_share_of_the_logistic_loss_is_that_of_its_first_gradient():
    """At outputs of zero the logistic loss is a quarter of squares around labels twice as far: one fourth the pace."""
    one = kernels(share=0.3, turned=1.0)
    logistic = one.why(tm.Recipe(lr=0.4, steps=10, batch=None, loss=tm.Logistic()), step=10)
    codes, kernel = one.sample.codes, one.kernel
    task = np.where(one.sample.y == 1, 0.5, -0.5)
    sizes, vectors = np.linalg.eigh(kernel * 0.25 / len(task))
    for code, group in enumerate(one.sample.groups):
        own = np.where(codes == code, task, 0.0)
        part = (vectors.T @ own) ** 2 / (own @ own)
        assert logistic.shares[group] == pytest.approx(part @ (1 - (1 - 0.4 * sizes) ** 10), abs=1e-6)


def test_sentences_of_what_would_be_left():
    why = Why(5, "loss", {"a": 0.4, "b": 0.2}, "a", "b", {SHARES: -0.1, BASE_RATES: 0.05, SPREAD: 0.21}, 0.1,
              {"a": 0.1, "b": 0.3}, {"a": 0.03, "b": 0.13}, {"a": 0.2, "b": 0.8}, {"a": 1.0, "b": 1.0})  # fmt: skip
    assert str(why) == (
        "At step 5 the forecast loss is 0.4 for a and 0.2 for b. With equal shares of the data (now 20 % and 80 % of the "
        "data) the gap would close or turn round. With equal base rates in training (now 3 % and 13 % positives) 25 % of "
        "the gap would be left. Equal spread of inputs would change little. Of the gap, 50 % comes from different shares "
        "of labels among the held-out points. By step 5 the network has learned the directions that hold 30 % of b's "
        "task, against 10 % of a's. Noise in labels is not known to a forecast."
    )


def test_the_streams_and_the_model_stay_as_they_were():
    one = kernels()
    state = torch.get_rng_state()
    one.why(RECIPE, step=10)
    assert (torch.get_rng_state() == state).all()
    assert not one.model.weight.any()


def test_no_reason_is_named_for_a_gap_that_is_not_clear():
    facts = (0.1, {"a": 0.1, "b": 0.3}, {"a": 0.03, "b": 0.13}, {"a": 0.2, "b": 0.8}, {"a": 1.0, "b": 1.0})
    why = Why(5, "loss", {"a": 0.4, "b": 0.2}, "a", "b", {SHARES: -0.1}, *facts, 0.2, {SHARES: 0.01})
    assert not why.clear
    assert why.matter == ()
    assert str(why) == (
        "No difference in forecast loss is clear at step 5, so no reason is named: 0.4 for a and 0.2 for b. The gap lies "
        "between -0.19 and 0.59."
    )


def test_a_change_within_its_error_is_no_reason():
    facts = (0.0, {"a": 0.1, "b": 0.3}, {"a": 0.03, "b": 0.13}, {"a": 0.2, "b": 0.8}, {"a": 1.0, "b": 1.0})
    why = Why(5, "loss", {"a": 0.4, "b": 0.2}, "a", "b", {SHARES: 0.1}, *facts, 0.01, {SHARES: 0.1})
    assert why.clear
    assert why.matter == ()
    assert "What equal shares of the data would change is not clear." in str(why)


def test_errors_are_those_of_resampled_held_out_points():
    tangent = kernels(share=0.1, turned=1.5)
    why, losses = tangent.why(RECIPE, step=60), _point_losses(tangent, RECIPE, 60)
    rng = np.random.default_rng(0)
    first, second = (losses[tangent.held_out.of_group(group)] for group in (why.worse, why.better))
    gaps = [rng.choice(first, len(first)).mean() - rng.choice(second, len(second)).mean() for _ in range(2000)]
    assert why.gap_error == pytest.approx(np.std(gaps), rel=0.05)  # 2,000 draws: a relative standard error of 1.6 %
