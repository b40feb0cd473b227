"""Which classes look alike, how long they take, and which pictures are drawn."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter_lab.shared.picture_groups import FRESH, UPRIGHT, at_hand, picture_groups
from tiltmeter_lab.shared.similar_classes import alike_and_unlike, class_similarity, half_way


def test_draws_differ_and_come_again():
    first, again, other = (picture_groups("digits", 0.8, (1.0, 1.0), 300, 100, draw=d)[0] for d in (FRESH, FRESH, 0))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)


def test_pictures_that_are_not_here_are_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("TILTMETER_DATA", str(tmp_path))
    assert at_hand(("digits", "fashion-mnist")) == ("digits",)


def test_alike_and_unlike():
    train, _ = picture_groups("digits", 0.8, (0.5, 1.0), 1200, 100)
    cosine = class_similarity(train, UPRIGHT)
    np.testing.assert_allclose(cosine, cosine.T, atol=1e-12)
    alike, unlike = alike_and_unlike(cosine)
    assert len({*alike, *unlike}) == 4
    assert float(cosine.sel({"class": alike[0], "other_class": alike[1]})) == pytest.approx(float(cosine.max()))
    nearest = cosine.max("other_class")
    assert float(nearest.sel({"class": unlike}).max()) <= float(np.sort(nearest.values)[3])


def test_half_way():
    values = [[0.1, 0.5, 0.2], [0.3, 0.5, 0.6], [0.5, 0.5, 0.1]]
    curve = xr.DataArray(values, dims=("time", "class"), coords={"time": [0, 10, 30]})
    found = half_way(curve).values
    assert found[0] == pytest.approx(10.0)
    assert np.isnan(found[1])  # it ends where it began
    assert found[2] == pytest.approx(28.0)  # first up, then down to its end: between the last two evaluations
