"""Criteria for group weights: averages over training, not areas that grow with the number of steps."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter.criteria import GapArea, WorstGroupArea


@pytest.mark.parametrize("steps", [10, 1000])
def test_areas_are_averages_over_the_steps(steps):
    evaluations = np.array([0, steps // 2, steps])
    losses = np.array([[0.9, 0.2], [0.9, 0.2], [0.9, 0.2]])
    curves = {"loss": xr.DataArray(losses, dims=("time", "group"), coords={"time": evaluations})}
    assert GapArea().of(curves) == pytest.approx(0.7)
    assert WorstGroupArea().of(curves) == pytest.approx(0.9)
