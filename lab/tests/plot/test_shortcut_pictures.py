"""Pictures of angles, of parts as groups, and of reliance."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Trajectory
from tiltmeter_lab.plot.labelled_lines import angles, as_groups, reliance


def test_angles_mark_the_extremes():
    degrees = np.arange(0, 360, 5)
    wave = xr.DataArray(np.cos(2 * np.radians(degrees)), coords={"angle": degrees})
    dots = angles(wave).layer[2].data["values"]
    assert [dot["angle"] for dot in dots] == [0, 90, 180, 270]
    with pytest.raises(ValueError, match="should have a dimension `angle`"):
        angles(wave.rename(angle="time"))


def test_parts_keep_their_errors():
    share = xr.DataArray([[0.2, 0.8]], dims=("time", "cue"), coords={"time": [1], "cue": ["a", "b"]})
    run = Trajectory({"share": share, "share_se": share, "other": share}, "step", Origin("example"))
    drawn = as_groups(run, "share", "cue")
    assert list(drawn) == ["share", "share_se"]
    assert drawn["share_se"].dims == ("time", "group")
    with pytest.raises(ValueError, match="no dimension 'token'"):
        as_groups(run, "share", "token")


def test_reliance_draws_every_model():
    made = xr.DataArray(
        np.arange(6.0).reshape(1, 2, 3),
        dims=("time", "seed", "ratio"),
        coords={"time": [0], "ratio": [1.0, 10.0, 30.0]},
    )
    drawn = reliance({"linear": made, "deep": 2 * made}).layer[2].data["values"]
    assert {row["model"] for row in drawn} == {"linear", "deep"}
    assert [row["value"] for row in drawn][:3] == [1.5, 2.5, 3.5]
    with pytest.raises(ValueError, match="nothing to draw"):
        reliance({})
