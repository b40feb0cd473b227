"""Over seeds: the mean, the error of a mean and of a share, each by a second route."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import sem

from tiltmeter.over_seeds import mean_and_error, over_seeds, share


def test_the_error_of_a_mean_is_that_of_scipy():
    values = np.random.default_rng(0).normal(size=(3, 7))
    mean, error = over_seeds(xr.DataArray(values, dims=("group", "seed")))
    np.testing.assert_allclose(mean, values.mean(1), rtol=1e-14)
    np.testing.assert_allclose(error, sem(values, axis=1), rtol=1e-14)
    assert mean_and_error(values[0]) == pytest.approx((values[0].mean(), sem(values[0])), rel=1e-14)


def test_missing_values_do_not_count():
    values = xr.DataArray([[1.0, 2.0, 6.0, np.nan], [1.0, np.nan, np.nan, np.nan]], dims=("group", "seed"))
    mean, error = over_seeds(values)
    np.testing.assert_allclose(mean, [3.0, 1.0])
    np.testing.assert_allclose(error, [sem([1.0, 2.0, 6.0]), np.nan])


def test_one_run_has_no_error():
    assert np.isnan(mean_and_error([2.0])[1])
    assert mean_and_error([2.0])[0] == 2.0


def test_the_dimension_may_have_another_name():
    assert over_seeds(xr.DataArray([1.0, 3.0], dims="task"), "task")[1].item() == 1.0


def test_a_share_of_all_runs_is_not_certain():
    assert share([True] * 8)[0] == 1.0
    assert share([True] * 8)[1] > 0.05
    assert share([False] * 8)[1] == pytest.approx(share([True] * 8)[1])


def test_the_error_of_a_share_is_that_of_agresti_and_coull():
    # Their interval of a share covers it in about 95 % of samples; that of the plain formula in far fewer.
    rng, chance, count = np.random.default_rng(0), 0.9, 10
    hits = rng.binomial(count, chance, 4000)
    marks = [np.arange(count) < k for k in hits]
    middle = (hits + 2) / (count + 4)
    errors = np.array([share(each)[1] for each in marks])
    plain = np.sqrt(hits / count * (1 - hits / count) / count)
    assert np.mean(np.abs(middle - chance) < 2 * errors) > 0.93
    assert np.mean(np.abs(hits / count - chance) < 2 * plain) < 0.75


def test_a_share_of_no_runs():
    assert np.isnan(share([])).all()
