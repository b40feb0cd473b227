"""Counts small enough to do by hand, and two failures of published code that ours does not share."""

import numpy as np
import pytest
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.bias_amplification import BiasAmplification

PEOPLE = 50


def people(decided, positives=(30, 10), **more):
    """50 people in each of two groups, so many positive and so many decided positive: (readings, data)."""
    group = np.repeat(["a", "b"], PEOPLE)
    y = np.concatenate([np.arange(PEOPLE) < count for count in positives]).astype(int)
    score = np.concatenate([np.where(np.arange(PEOPLE) < count, 1.0, -1.0) for count in decided])
    data = tm.GroupedData(score[:, None], y, group)
    return lab.measure(BiasAmplification(**more), nn.Identity(), data)


def test_a_perfect_predictor_amplifies_nothing():
    readings = people(decided=(30, 10))
    for name in ("amplification", "amplification_absolute", "amplification_variance", "amplification_undirected"):
        assert float(readings[name]) == pytest.approx(0.0, abs=1e-12)


def test_an_amplifying_predictor_pair_by_pair():
    readings = people(decided=(40, 5))
    assert readings["amplification_pair"].sel({"class": 1}).values == pytest.approx([0.2, 0.1])
    assert float(readings["amplification"]) == pytest.approx(0.15)
    assert float(readings["amplification_variance"]) == pytest.approx(0.05**2)


def test_deciding_everybody_positive_is_damping_on_the_whole():
    readings = people(decided=(50, 50))
    assert readings["amplification_pair"].values.ravel() == pytest.approx([0.4, -0.8])
    assert float(readings["amplification"]) == pytest.approx(-0.2)
    assert float(readings["amplification_absolute"]) == pytest.approx(0.6)
    assert float(readings["amplification"]) == pytest.approx(float(readings["amplification_null"]))  # it is blind


def test_the_undirected_value_of_two_groups_is_not_zero():
    """A published implementation asks for more than 1 / (groups - 1) = 1 of a share, and so always finds 0."""
    readings = people(decided=(40, 0))
    # 30 of 40 positives are of group a, more than half; all 40 that are decided positive are.
    assert float(readings["amplification_undirected"]) == pytest.approx(1.0 - 0.75)


def test_task_to_attribute_is_the_same_question_with_roles_exchanged():
    group = np.repeat(["a", "b"], PEOPLE)
    y = np.concatenate([np.arange(PEOPLE) < 30, np.arange(PEOPLE) < 10]).astype(int)
    said = np.where(y == 1, "a", group)  # everybody who is positive is taken for an a
    data = tm.GroupedData(np.where(y, 1.0, -1.0)[:, None], y, group)
    readings = lab.measure(BiasAmplification(guess=lambda score: said), nn.Identity(), data)
    # P(a | positive) rises from 3/4 to 1, P(b | positive) falls from 1/4 to 0: both the way the data lean.
    assert float(readings["amplification_t_to_a"]) == pytest.approx(0.25)
    assert float(readings["amplification"]) == pytest.approx(0.0, abs=1e-12)


def test_sets_of_attributes_show_what_single_ones_hide():
    """Decisions turn on the combination: each attribute alone has the rate of its labels."""
    groups = [("F", "old"), ("F", "young"), ("M", "old"), ("M", "young")]
    group = [one for one in groups for _ in range(PEOPLE)]
    positives, decided = (20, 30, 30, 20), (10, 40, 40, 10)
    y = np.concatenate([np.arange(PEOPLE) < count for count in positives]).astype(int)
    score = np.concatenate([np.where(np.arange(PEOPLE) < count, 1.0, -1.0) for count in decided])
    pairs = lab.measure(BiasAmplification(), nn.Identity(), tm.GroupedData(score[:, None], y, group))[
        "amplification_pair"
    ]
    assert pairs.sel(attribute=["F, old", "F, young", "M, old", "M, young"]).values.ravel() == pytest.approx([0.2] * 4)
    assert np.isnan(pairs.sel(attribute=["F, *", "*, old"])).all()  # independent: no direction to go further in


def test_directions_come_from_the_training_data_where_given():
    group = np.repeat(["a", "b"], PEOPLE)
    other = tm.GroupedData(
        np.zeros((2 * PEOPLE, 1)), np.concatenate([np.zeros(PEOPLE), np.ones(PEOPLE)]).astype(int), group
    )
    assert float(people(decided=(40, 5), train=other)["amplification"]) == pytest.approx(-0.15)


def test_bad_choices_are_refused():
    with pytest.raises(ValueError, match="`least` should leave some set of attributes"):
        people(decided=(40, 5), least=1000)
    data = tm.GroupedData(np.zeros((60, 1)), np.linspace(0, 1, 60), [0, 1] * 30)
    with pytest.raises(ValueError, match="Found a regression"):
        lab.measure(BiasAmplification(), nn.Linear(1, 1), data)
