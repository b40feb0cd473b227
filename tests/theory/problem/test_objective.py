"""Objective and its flattening: bad input in one sentence each, JSON, weights by group and label."""

import json

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.theory.problem.objective import Objective, flatten

PROBLEM = tm.teacher_mixture(rho=0.7, variance=(0.5, 1.5), overlap=0.5)

BAD = [
    ({"samples": 0}, ValueError, "`samples` should be positive. Found samples = 0."),
    ({"samples": -1.5}, ValueError, "`samples` should be positive. Found samples = -1.5."),
    ({"samples": ("samples", [1.0, -2.0])}, ValueError, "`samples` should be positive. Found samples = -2."),
    ({"samples": "many"}, TypeError, "`samples` should be a number. Found samples = 'many'."),
    ({"ridge": -0.1}, ValueError, "`ridge` should not be negative. Found ridge = -0.1."),
    ({"ridge": float("nan")}, ValueError, "`ridge` should be finite. Found ridge = nan."),
    ({"weights": {"+": -1.0}}, ValueError, "`weights['+']` should not be negative. Found weights['+'] = -1."),
    ({"weights": {("+", 1): -1.0}}, ValueError, "`weights[('+', 1)]` should not be negative."),
    ({"weights": [1.0, 2.0]}, TypeError, "`weights` should map groups, or (group, label), to numbers"),
    ({"weights": {"x": 1.0}}, KeyError, "`weights` names 'x'; it should name a group ('+', '-') or (group, label)"),
    ({"weights": {("+", 3): 1.0}}, KeyError, "label -1 or 1."),
    ({"weights": {"+": 1.0, ("+", 1): 2.0}}, ValueError, "`weights` names both '+' and ('+', 1)"),
    ({"weights": {"+": 0.0, "-": 0.0}}, ValueError, "`weights` should leave at least one group a positive weight."),
    ({"coupling": -1.0}, ValueError, "`coupling` should not be negative. Found coupling = -1."),
    ({"coupling": 1.0, "ridge": 0.0}, ValueError, "Coupled students need a positive ridge. Found ridge = 0."),
    ({"loss": "logistic"}, TypeError, "`loss` should be a loss, as Square(), Logistic() or Hinge(). Found str."),
]


@pytest.mark.parametrize(("change", "kind", "sentence"), BAD)
def test_bad_input_is_named(change, kind, sentence):
    with pytest.raises(kind) as error:
        flatten(PROBLEM, Objective(**{"loss": tm.Square(), "samples": 2.0, "ridge": 0.1, **change}))
    assert sentence in error.value.args[0]


def test_a_problem_is_a_mixture():
    with pytest.raises(TypeError, match="`problem` should be a Mixture"):
        tm.equilibrium("two groups", tm.Square(), 1.0, 1.0)


def test_grids_with_different_labels_are_refused():
    problem = tm.teacher_mixture(rho=xr.DataArray([0.2, 0.5], dims="k", coords={"k": [0, 1]}))
    other = xr.DataArray([1.0, 2.0], dims="k", coords={"k": [5, 6]})
    with pytest.raises(ValueError, match="The grids of problem and objective do not share their labels"):
        tm.equilibrium(problem, tm.Square(), samples=other, ridge=1.0)


def test_weights_reach_their_group_and_label():
    flat = flatten(PROBLEM, Objective(tm.Square(), 1.0, 1.0, {"+": 2.0, ("-", -1): 3.0}))
    np.testing.assert_array_equal(flat.points[0].s, [[2.0, 2.0], [1.0, 3.0]])


def test_groups_that_are_pairs_keep_their_weights():
    names = ("a", 1), ("a", -1)
    problem = tm.theory.Mixture(dict.fromkeys(names, 0.5), dict.fromkeys(names, 1.0), np.diag([0, 0, 1, 1]))
    flat = flatten(problem, Objective(tm.Square(), 1.0, 1.0, {("a", 1): 2.0, (("a", -1), 1): 3.0}))
    np.testing.assert_array_equal(flat.points[0].s, [[2.0, 2.0], [3.0, 1.0]])


def test_json_rebuilds_the_objective():
    given = Objective(
        tm.losses.Hinge(), ("samples", [1.0, 2.0]), 0.3, {"+": 1.0, ("-", 1): ("w", [1.0, 2.0])}, False, 0.5
    )
    again = Objective.from_json(json.loads(json.dumps(given.to_json())))
    assert again.to_json() == given.to_json()
