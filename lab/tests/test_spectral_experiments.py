"""Experiments on spectral and principal-component bias at a size that runs in a moment, and how arrivals are
counted."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from tiltmeter import Trajectory
from tiltmeter.record import Origin
from tiltmeter_lab.catalogue import find, make_now
from tiltmeter_lab.named import principal_components, spectral_1d
from tiltmeter_lab.shared.arrival import first_below, times_later

SMALL = {
    "spectral-1d": {"frequencies": (1, 3), "points": 32, "width": 16, "steps": 40, "held_out": 10, "seeds": 2},
    "spectral-interpolation": {"width": 8, "steps": 20, "lines": 4, "seeds": 2},
    "spectral-kernel": {"width": 50, "points": 60, "grid": 32, "frequencies": (1, 2), "steps": 8, "seeds": 2},
    "spectral-double-descent": {"points": 200, "width": 8, "steps": 20, "lines": 4, "seeds": 2},
    "principal-components": {"width": 20, "steps": 12, "digits_steps": 10, "seeds": 2},
}
#: In the default suite.
FAST = ("spectral-1d",)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in SMALL])
def test_small_runs_end_and_repeat(name):
    module = find(name)
    setting = replace(module.QUICK, **SMALL[name])
    first, second = module.run(setting, make_now), module.run(setting, make_now)
    for run in first:
        assert first[run] == second[run], run
    for claim in module.claims(first):
        assert str(claim)
        assert claim.seeds == 2
    for title, chart in module.pictures(first).items():
        assert chart.to_dict()["$schema"], title


def test_arrivals_are_first_times():
    falling = xr.DataArray([[1.0, 1.0], [0.4, 0.9], [0.7, 0.8]], dims=("time", "seed"), coords={"time": [0, 10, 20]})
    assert first_below(falling, 0.5).values.tolist() == [10.0, math.inf]
    assert first_below(falling, 2.0).values.tolist() == [0.0, 0.0]


def test_what_never_arrived_counts_against_the_claim():
    ten, twenty, never = (xr.DataArray([t], dims="seed") for t in (10.0, 20.0, math.inf))
    assert times_later(twenty, ten).min() == 2.0
    assert times_later(never, ten).min() == math.inf
    assert times_later(ten, never).min() == 0.0
    assert times_later(never, never).min() == 0.0


def errors(arrivals):
    """A run in which each frequency falls below one half at its time."""
    times = np.arange(0, 101, 10)
    values = np.where(times[:, None, None] >= np.asarray(arrivals)[None, :, None], 0.1, 1.0) * np.ones((1, 1, 3))
    curve = xr.DataArray(
        values,
        dims=("time", "frequency", "seed"),
        coords={"time": times, "frequency": [1, 2, 4, 8], "seed": [0, 1, 2]},
    )
    return Trajectory({"frequency_error": curve}, "step", Origin("training"))


@pytest.mark.parametrize(("arrivals", "holds"), [((10, 20, 40, 90), True), ((40, 20, 10, 10), False)])
def test_claims_of_spectral_bias_can_fail(arrivals, holds):
    runs = dict.fromkeys(("equal amplitudes", "rising amplitudes", "sine activation"), errors(arrivals))
    said = spectral_1d.claims(runs)
    assert all(claim.holds == holds for claim in said if claim.safe)
    assert said[-1].holds != holds  # the control


def test_rates_are_those_of_exponentials():
    times, true = np.arange(0, 60, 2), np.array([0.1, 0.03, 0.01])
    signs = np.array([1.0, -1.0, 0.5])
    curve = xr.DataArray(
        np.exp(-true * times[:, None])[:, :, None] * np.abs(signs),
        dims=("time", "component", "seed"),
        coords={"time": times, "component": [1, 2, 3], "seed": [0, 1, 2]},
    )
    run = Trajectory({"component_error": curve}, "step", Origin("training"))
    assert principal_components.rates(run) == pytest.approx(true)


def test_problem_has_the_variances_asked_for():
    data = principal_components.problem(principal_components.QUICK, 0.5)
    moments = data.x.T @ data.x / len(data)
    assert moments == pytest.approx(np.diag(np.geomspace(1.0, 0.01, 8)), abs=1e-12)
    assert data.x.mean(0) == pytest.approx(0.0, abs=1e-12)
