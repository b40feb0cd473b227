"""Downsampled and Reweighed: counts, points and weights."""

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


class TestReweighed:
    def test_every_group_gets_the_base_rate_of_all_and_keeps_its_weight(self):
        rng = np.random.default_rng(0)
        group = rng.choice(["a", "b", "c"], 900, p=[0.6, 0.3, 0.1])
        y = (rng.random(900) < np.where(group == "a", 0.7, 0.2)).astype(int)
        for weights in (None, rng.uniform(0.5, 2.0, 900)):
            data = tm.GroupedData(np.zeros((900, 1)), y, group, weights=weights)
            new = I.Reweighed().data(data, None).weights
            before = np.ones(900) if weights is None else weights
            for name in "abc":
                chosen = group == name
                assert np.isclose(new[chosen].sum(), before[chosen].sum())
                assert np.isclose((new * y)[chosen].sum() / new[chosen].sum(), (before * y).sum() / before.sum())

    def test_groups_alike_keep_their_weights(self):
        """Negative control."""
        data = tm.GroupedData(np.zeros((80, 1)), [0, 1] * 40, ["a"] * 40 + ["b"] * 40)
        np.testing.assert_allclose(I.Reweighed().data(data, None).weights, 1.0)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="`scout` of Reweighed should be 0"):
            I.Reweighed(scout=5)
        measured = tm.GroupedData(np.zeros((80, 1)), np.linspace(0.0, 1.0, 80), ["a"] * 40 + ["b"] * 40)
        with pytest.raises(ValueError, match=r"needs labels that are classes\. Found 80 values of 80 points\."):
            I.Reweighed().data(measured, None)
