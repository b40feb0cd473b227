"""Lazy curves: computed when asked for, once; a trajectory of them is like any other."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Trajectory, load, save
from tiltmeter.record.trajectory import LazyCurves

LOSS = xr.DataArray([0.5, 0.25], dims="time", coords={"time": [0.0, 2.0]})


class Counted:
    """A function that makes a curve and counts how often."""

    def __init__(self, curve):
        self.curve, self.calls = curve, 0

    def __call__(self):
        self.calls += 1
        return self.curve.copy(deep=True)


@pytest.fixture
def both():
    make = Counted(2 * LOSS)
    return make, Trajectory(LazyCurves({"loss": LOSS, "twice": make}), "t", Origin("toy"))


def test_a_curve_is_made_when_asked_for_and_once(both):
    make, run = both
    assert (list(run), len(run), "twice" in run, make.calls) == (["loss", "twice"], 2, True, 0)
    run["loss"]
    assert make.calls == 0
    run["twice"]
    assert run["twice"] is run["twice"]
    assert make.calls == 1


def test_what_was_made_cannot_be_written_to(both):
    _, run = both
    with pytest.raises(ValueError, match="read-only"):
        run["twice"].values[0] = 1.0


def test_a_change_of_clock_makes_nothing(both):
    make, run = both
    steps = run.on_clock("step", d=100)
    assert make.calls == 0
    np.testing.assert_array_equal(steps["twice"].time, [0.0, 200.0])
    np.testing.assert_array_equal(steps["twice"], [1.0, 0.5])


def test_it_is_equal_printed_and_saved_like_any_other(both, tmp_path):
    _, run = both
    plain = Trajectory({"loss": LOSS, "twice": 2 * LOSS}, "t", Origin("toy"))
    assert run == plain
    assert repr(run) == repr(plain)
    assert run.to_json() == plain.to_json()
    save(run, tmp_path / "run")
    assert load(tmp_path / "run") == plain


def test_it_reaches_another_process_whole(both):
    _, run = both
    kind, parts = run.__reduce__()
    assert kind(*parts) == run


def test_an_unknown_curve_is_named_without_making_any(both):
    make, run = both
    with pytest.raises(KeyError, match=r"No curve 'error'\. There are: loss, twice"):
        run["error"]
    assert make.calls == 0


def test_an_error_inside_a_curve_is_not_mistaken_for_its_absence():
    def broken():
        raise KeyError("within")

    run = Trajectory(LazyCurves({"loss": broken}), "t", Origin("toy"))
    with pytest.raises(KeyError, match="within"):
        run["loss"]
