"""The minority drop of curves made by hand: seeds, recovery, and what it refuses."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.shared.minority_drop import minority_drop


def run(recall, **more):
    """Recall of "few" as (time, seed); "many" is always right."""
    few = np.asarray(recall, dtype=float)
    values = np.stack([np.ones_like(few), few], 1)
    coords = {"time": np.arange(len(few)), "group": ["many", "few"]}
    error = xr.DataArray(1.0 - values, dims=("time", "group", "seed"), coords=coords)
    return tm.Trajectory({"error": error, **more}, "step", tm.record.Origin("training"))


def test_every_seed_has_its_own_lowest_point():
    found = minority_drop(run([[0.4, 0.6], [0.0, 0.5], [0.5, 0.1], [0.8, 0.7]]), "few")
    assert (found.start, found.lowest, found.end) == pytest.approx((0.5, 0.05, 0.75))
    assert found.drop == pytest.approx(0.45)
    assert found.error == pytest.approx(np.std([0.4, 0.5], ddof=1) / np.sqrt(2))
    assert (found.lowest_at, found.back_at) == (1.5, 2.5)
    assert np.isnan(found.loss_rise)
    assert "worst at step = 1.5, back at step = 2.5" in str(found)


def test_what_never_falls_or_never_comes_back():
    assert "it never gets worse" in str(minority_drop(run([[0.4], [0.5]]), "few"))
    assert "not back by the end" in str(minority_drop(run([[0.4], [0.1], [0.3]]), "few"))


def test_the_rise_of_the_loss():
    loss = xr.DataArray(
        [[0.7, 0.7], [0.2, 1.9]], dims=("time", "group"), coords={"time": [0, 1], "group": ["many", "few"]}
    )
    assert minority_drop(run([[0.4], [0.5]], loss=loss), "few").loss_rise == pytest.approx(1.2)


def test_bad_input_is_refused():
    with pytest.raises(KeyError, match="No group 'none'"):
        minority_drop(run([[0.4], [0.5]]), "none")
    wide = run([[0.4], [0.5]])
    with pytest.raises(ValueError, match="select one point of lr"):
        minority_drop(wide.replace({"error": wide["error"].expand_dims(lr=[0.1], axis=-1)}), "few")
