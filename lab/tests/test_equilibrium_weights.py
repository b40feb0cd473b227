"""Optimal weights: they minimise what they say, the price is reported, and impossible requests are refused."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter_lab.theory.equilibrium_weights import equilibrium_weights
from tiltmeter_lab.theory.incompatibility import incompatibility

PROBLEM = tm.teacher_mixture(0.75, 1.0, (0.5, 1.2), 0.6, (0.4, 0.2), (0.2, -0.1))


@pytest.mark.parametrize("criterion", [tm.fairness.criteria.AccuracyParity(), tm.fairness.criteria.WorstGroupError()])
def test_no_ratio_of_weights_does_better(criterion):
    found = equilibrium_weights(PROBLEM, tm.Square(), 2.0, 0.5, criterion)
    best = criterion.of(found.reweighted).item()
    assert best < criterion.of(found.plain).item()
    minus = found.weights["-"] / found.weights["+"] * np.geomspace(0.2, 5, 9)
    other = tm.equilibrium(PROBLEM, tm.Square(), 2.0, 0.5, {"+": 1 / (0.75 + 0.25 * minus).mean(), "-": 1.0})
    assert best <= criterion.of(other).item() + 1e-6
    for ratio in minus:
        scale = 1 / (0.75 + 0.25 * ratio)
        other = tm.equilibrium(PROBLEM, tm.Square(), 2.0, 0.5, {"+": scale, "-": ratio * scale})
        assert best <= criterion.of(other).item() + 1e-5


def test_the_mean_weight_is_one_and_the_result_is_what_they_give():
    found = equilibrium_weights(PROBLEM, tm.Logistic(), 2.0, 0.3, tm.fairness.criteria.AccuracyParity())
    assert 0.75 * found.weights["+"] + 0.25 * found.weights["-"] == pytest.approx(1.0)
    again = tm.equilibrium(PROBLEM, tm.Logistic(), 2.0, 0.3, found.weights)
    np.testing.assert_allclose(again.error, found.reweighted.error, atol=1e-7)
    assert found.reweighted.error_gap.item() == pytest.approx(0.0, abs=1e-4)


@pytest.mark.slow
def test_labels_give_more_freedom():
    by_group = equilibrium_weights(PROBLEM, tm.Square(), 2.0, 0.5, tm.fairness.criteria.EqualisedOdds())
    by_label = equilibrium_weights(PROBLEM, tm.Square(), 2.0, 0.5, tm.fairness.criteria.EqualisedOdds(), by_label=True)
    assert set(by_label.weights) == {("+", 1), ("+", -1), ("-", 1), ("-", -1)}
    assert (
        tm.fairness.criteria.EqualisedOdds().of(by_label.reweighted)
        < tm.fairness.criteria.EqualisedOdds().of(by_group.reweighted) - 0.01
    )


def test_the_sentence_names_the_price():
    found = equilibrium_weights(PROBLEM, tm.Square(), 2.0, 0.5, tm.fairness.criteria.WorstGroupError())
    assert str(found).startswith("Weights + ")
    assert "bring worst-group error from" in str(found)
    assert "worsens" in str(found)
    assert "population error" in found.worsened()
    assert found.table().sizes == {"training": 2, "criterion": 6}


def test_where_nothing_helps_it_is_said():
    fair = tm.teacher_mixture(0.5, 0.0, (1.0, 1.0), 0.5)
    found = equilibrium_weights(fair, tm.Square(), 2.0, 0.5, tm.fairness.criteria.AccuracyParity())
    assert found.weights == {"+": 1.0, "-": 1.0}
    assert str(found) == "No reweighting improves accuracy parity, which is 0.000."


def test_the_incompatibility_table():
    criteria = (tm.fairness.criteria.EqualOpportunity(), tm.fairness.criteria.WorstGroupError())
    found = incompatibility(PROBLEM, tm.Square(), 2.0, 0.5, criteria)
    assert found.table.dims == ("reweighted_for", "criterion")
    assert found.table.coords["reweighted_for"].values.tolist() == ["nothing", "equal opportunity", "worst-group error"]
    for one in criteria:
        column = found.table.sel(criterion=one.name)
        assert column.sel(reweighted_for=one.name) <= column.min() + 1e-6
    assert found.worsened()["equal opportunity"] == ["worst-group error", "population error"]
    assert "eweighting for equal opportunity worsens worst-group error, population error" in str(found)
    assert set(found.weights()) == {"equal opportunity", "worst-group error"}


def test_bad_requests_are_named():
    with pytest.raises(TypeError, match=r"`criterion` should be a criterion, as AccuracyParity\(\). Found str."):
        equilibrium_weights(PROBLEM, tm.Square(), 2.0, 0.5, "accuracy")
    with pytest.raises(ValueError, match=r"`equilibrium_weights` takes one problem. Found a grid over ridge."):
        equilibrium_weights(PROBLEM, tm.Square(), 2.0, ("ridge", [0.1, 0.5]), tm.fairness.criteria.AccuracyParity())
    alone = tm.theory.Mixture({"a": 1.0}, {"a": 1.0}, [[1.0, 0.4], [0.4, 1.0]])
    with pytest.raises(ValueError, match="nothing to reweight"):
        equilibrium_weights(alone, tm.Square(), 2.0, 0.5, tm.fairness.criteria.WorstGroupError())
    with pytest.raises(ValueError, match="`criteria` should name at least one criterion"):
        incompatibility(PROBLEM, tm.Square(), 2.0, 0.5, ())
