"""Many points take faster draws and permutations in bags: the same limits, and the same rate of false claims."""

import time
from importlib import import_module

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
import tiltmeter.fairness.estimate as estimate
from tiltmeter.leaders import bands as module
from tiltmeter.leaders.bands import bands
from tiltmeter.leaders.points import PointCurve
from tiltmeter.record import Origin

#: By its name: as an attribute, `calibration` is the function.
calibration = import_module("tiltmeter.fairness.calibration")


def curves(points, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    codes = (rng.random(points) < 0.4).astype(int)
    common = rng.normal(size=points)
    loss = np.exp(0.3 * (common + 0.5 * rng.normal(size=(3, points)))) + shift * codes
    wrong = common + rng.normal(size=(3, points)) > 1.0
    values = [PointCurve("loss", loss.astype(np.float32)), PointCurve("error", wrong)]
    return values, codes


CONTRAST = np.array([[1.0, -1.0]])


def test_limits_are_those_of_the_usual_bootstrap(monkeypatch):
    values, codes = curves(20_000, 0, shift=0.05)
    usual = bands(values, codes, CONTRAST)
    monkeypatch.setattr(module, "MANY", 1000)
    fast = bands(values, codes, CONTRAST)
    for name, band in usual.items():
        np.testing.assert_array_equal(band.gap, fast[name].gap)
        width = (band.upper - band.lower).mean()
        # Critical values from 1999 draws scatter by about 2 %.
        np.testing.assert_allclose(fast[name].lower, band.lower, atol=0.06 * width)
        np.testing.assert_allclose(fast[name].upper, band.upper, atol=0.06 * width)
        np.testing.assert_array_equal(fast[name].shown, band.shown)


def test_the_permutation_gate_in_bags_has_the_same_critical_values(monkeypatch):
    values, codes = curves(20_000, 1)
    given = {curve.name: CONTRAST for curve in values}
    usual = module.PermutationGate(values, codes, given, 999, np.random.default_rng(0))
    monkeypatch.setattr(module, "MANY", 1000)
    fast = module.PermutationGate(values, codes, given, 999, np.random.default_rng(0))
    for name in given:
        quantiles = [np.quantile(gate._columns[name], [0.5, 0.95]) for gate in (usual, fast)]
        np.testing.assert_allclose(*quantiles, rtol=0.1)


@pytest.mark.slow
def test_false_claims_stay_below_the_level(monkeypatch):
    monkeypatch.setattr(module, "MANY", 1000)
    claims = 0
    for seed in range(200):
        values, codes = curves(3000, 100 + seed)
        found = bands(values, codes, CONTRAST, draws=499, permutations=199)
        claims += any(band.shown.any() for band in found.values())
    assert claims <= 20  # 10 expected at most; the chance of more than 20 is 0.0012


def run_of(points, seed=0):
    rng = np.random.default_rng(seed)
    chance = rng.random(points)
    positive = rng.random(points) < chance
    coords = {"time": [9], "group": ("point", rng.choice(["a", "b"], points)), "positive": ("point", positive)}
    arrays = {"probability": chance, "loss": rng.normal(size=points), "decided_positive": chance > 0.5}
    kept = {n: xr.DataArray(v[None], dims=("time", "point"), coords=coords) for n, v in arrays.items()}
    return tm.Trajectory({}, "step", Origin("training"), points=kept)


@pytest.mark.parametrize("curve", ["loss", "error", "tpr"])
def test_random_groups_by_formula(curve, monkeypatch):
    run = run_of(8000)
    usual = estimate.shuffled_groups(run, curve)
    monkeypatch.setattr(estimate, "MANY", 100)
    np.testing.assert_allclose(estimate.shuffled_groups(run, curve), usual, rtol=0.12)


def test_calibration_by_chance_by_formula(monkeypatch):
    run = run_of(8000)
    usual = tm.fairness.calibration(run)
    monkeypatch.setattr(import_module("tiltmeter.fairness.calibration"), "MANY", 100)
    fast = tm.fairness.calibration(run)
    for one, other in zip(usual.groups, fast.groups, strict=True):
        assert one.error == other.error
        np.testing.assert_allclose([one.chance, one.limit], [other.chance, other.limit], rtol=0.06)


def kept_run(points, groups):
    rng = np.random.default_rng(0)
    codes = rng.integers(groups, size=points)
    coords = {"time": np.arange(1, 6), "group": ("point", np.array([f"g{code}" for code in range(groups)])[codes])}
    arrays = {"loss": rng.exponential(size=(5, points)).astype("float32"), "wrong": rng.random((5, points)) < 0.3}
    kept = {name: xr.DataArray(part, dims=("time", "point"), coords=coords) for name, part in arrays.items()}
    means = {
        name: kept[place].astype(float).groupby("group").mean("point")
        for name, place in (("loss", "loss"), ("error", "wrong"))
    }
    return tm.Trajectory(means, "step", Origin("training"), points=kept)


@pytest.mark.slow
def test_verdicts_of_two_hundred_groups_in_two_seconds_of_a_processor():
    tm.leaders(kept_run(500, 2))
    run = kept_run(20_000, 200)
    begun = time.process_time()
    tm.leaders(run)
    assert time.process_time() - begun < 2
