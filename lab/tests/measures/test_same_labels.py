"""Arrays made without xarray's constructors are those that the constructors make."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter.measures import snapshot as module
from tiltmeter.measures.snapshot import same_labels

BLANKS = {
    "labels": xr.DataArray([1.0, 2.0], dims="group", coords={"group": ["a", "b"]}, name="loss", attrs={"a": [1]}),
    "intersections": xr.DataArray(
        np.zeros(2), dims="group", coords={"group": np.array([("f", 1), ("m", 2), 0], dtype=object)[:2]}
    ),
    "no labels": xr.DataArray(np.zeros((2, 3)), dims=("group", "class")),
    "a number": xr.DataArray(1.0),
}


@pytest.mark.parametrize("case", BLANKS)
@pytest.mark.parametrize("known", [True, False])
def test_is_what_the_constructor_makes(case, known, monkeypatch):
    assert module._KNOWN, "this xarray has other fields: see same_labels.py"
    monkeypatch.setattr(module, "_KNOWN", known)
    blank = BLANKS[case]
    values = np.random.default_rng(0).normal(size=blank.shape)
    found = same_labels(blank, values)
    expected = blank.copy(data=values)
    xr.testing.assert_identical(found, expected)
    xr.testing.assert_identical(found.isel(dict.fromkeys(found.dims, 0)), expected.isel(dict.fromkeys(found.dims, 0)))
    xr.testing.assert_identical((found + found).sum(), (expected + expected).sum())
    assert repr(found) == repr(expected)


def test_attributes_are_its_own():
    blank = BLANKS["labels"]
    found = same_labels(blank, np.zeros(2))
    found.attrs["b"] = 2
    assert blank.attrs == {"a": [1]}


def test_a_recorder_reads_the_labels_of_a_curve_once(monkeypatch):
    from tiltmeter.record import Origin, Recorder
    from tiltmeter.record import recorder as place

    read = []
    monkeypatch.setattr(place, "reading", lambda name, value, of=place.reading: read.append(name) or of(name, value))
    bare = xr.DataArray([1.0, 2.0], dims="group", coords={"group": ["a", "b"]})
    with Recorder(None, clock="step", origin=Origin("example")) as recorder:
        for step in range(5):
            values = np.array([step, 0.5])
            recorder.append(step, {"loss": same_labels(BLANKS["labels"], values), "error": same_labels(bare, values)})
    assert sorted(read) == ["error", "loss"]
