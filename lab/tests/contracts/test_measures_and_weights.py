"""Weights of points: a measure counts them, and says so (`weighs`), or counts every point once."""

import warnings

import numpy as np
import pytest

from tiltmeter.data.grouped import GroupedData
from tiltmeter_lab.measures.catalogue import MEASURES, find
from tiltmeter_lab.measures.measure import example_of, measure


def reading(name, weights=None):
    """What the measure reads of its example, every point with these weights."""
    chosen, model, data = example_of(find(name))  # anew each time: some remember their last evaluation
    if weights is not None:
        members = [data.groups[code] for code in data.codes]
        data = GroupedData(data.x, data.y, members, weights=weights(np.arange(len(data))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure(chosen, model, data)


def same(one, other):
    return all(np.allclose(one[curve].values, other[curve].values, rtol=1e-9, equal_nan=True) for curve in one)


@pytest.mark.parametrize("name", list(MEASURES))
def test_it_weighs_points_if_it_says_so(name):
    plain, uneven = reading(name), reading(name, lambda place: np.where(place % 2, 3.0, 1.0))
    if not getattr(find(name), "weighs", False):
        for curve, values in plain.items():
            np.testing.assert_array_equal(uneven[curve].values, values.values, err_msg=curve)
        return
    assert not same(plain, uneven), "it says that it weighs points, and does not"
    assert same(plain, reading(name, lambda place: np.full(len(place), 3.0))), "only ratios of weights may matter"
