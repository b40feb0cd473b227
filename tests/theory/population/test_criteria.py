"""Criteria: zero where groups are treated alike, the worst pair elsewhere."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.criteria import CRITERIA

GAPS = [
    (tm.fairness.criteria.StatisticalParity(), "positive_rate_gap"),
    (tm.fairness.criteria.EqualOpportunity(), "tpr_gap"),
    (tm.fairness.criteria.EqualisedOdds(), "equalised_odds"),
    (tm.fairness.criteria.AccuracyParity(), "error_gap"),
    (tm.fairness.criteria.PredictiveParity(), "ppv_gap"),
]


@pytest.mark.parametrize(("criterion", "name"), GAPS)
def test_a_criterion_is_its_worst_gap(criterion, name):
    gap = xr.DataArray([[0.1, -0.3, 0.2], [0.0, 0.1, np.nan]], dims=("k", "pair"))
    np.testing.assert_array_equal(criterion.of(xr.Dataset({name: gap})), [0.3, np.nan])


def test_the_worst_group():
    error = xr.DataArray([0.1, 0.4], dims="group")
    assert tm.fairness.criteria.WorstGroupError().of(xr.Dataset({"error": error})).item() == 0.4


def test_equal_groups_are_fair_in_every_sense():
    found = tm.equilibrium(tm.teacher_mixture(0.5, 0.0, (1.0, 1.0), 0.5), tm.Logistic(), 2.0, 0.1)
    for criterion in (*CRITERIA, tm.fairness.criteria.PredictiveParity()):
        if criterion != tm.fairness.criteria.WorstGroupError():
            assert criterion.of(found).item() < 1e-9, criterion
