"""Downsampled: counts and points."""

import numpy as np
import pytest

import tiltmeter as tm

I = tm.interventions


class TestDownsampled:
    def test_counts_and_points(self):
        data = tm.GroupedData(np.arange(130.0)[:, None], np.zeros(130), ["a"] * 100 + ["b"] * 30)
        found = I.Downsampled(2.0).data(data, None)
        assert found.sizes == {"a": 60, "b": 30}
        assert len(np.unique(found.x)) == 90
        np.testing.assert_array_equal(found.x, I.Downsampled(2.0).data(data, None).x)
        assert not np.array_equal(found.x, I.Downsampled(2.0, seed=1).data(data, None).x)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="`ratio` should be at least 1"):
            I.Downsampled(0.5)
        with pytest.raises(ValueError, match="`scout` of Downsampled should be 0"):
            I.Downsampled(scout=5)
