"""Which measures count the weights of points, as docs/measures.md says."""

import warnings

import numpy as np
import pytest

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.catalogue import MEASURES, find
from tiltmeter.measures.example import example_of
from tiltmeter.measures.measure import measure

#: Accuracies and losses of points, weighed as the default curves are.
WEIGHED = ("truncated-accuracy", "randomised", "low-dimensional-dependence", "distributional")


def weighed(data):
    """The same points, every other one counting three times as much."""
    members = [data.groups[code] for code in data.codes]
    grown = GroupedData(data.x, data.y, members, weights=np.where(np.arange(len(data)) % 2, 3.0, 1.0))
    assert grown.groups == data.groups
    return grown


@pytest.mark.parametrize("name", [name for name in MEASURES if name not in WEIGHED])
def test_every_point_counts_once(name):
    chosen, model, data = example_of(find(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = measure(chosen, model, data)
        again, _, _ = example_of(find(name))  # some remember their last look
        found = measure(again, model, weighed(data))
    for curve, values in plain.items():
        np.testing.assert_array_equal(found[curve].values, values.values, err_msg=curve)
