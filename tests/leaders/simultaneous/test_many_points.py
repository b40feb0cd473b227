"""Many points are drawn in bags and permuted in blocks: the same limits, and the same rate of false claims."""

from importlib import import_module

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
import tiltmeter.fairness.estimate as estimate
from tiltmeter.fairness.last_evaluation import last_evaluation
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
    monkeypatch.setattr(module, "BAGS", 2048)
    fast = bands(values, codes, CONTRAST)
    for name, band in usual.items():
        np.testing.assert_array_equal(band.gap, fast[name].gap)
        width = (band.upper - band.lower).mean()
        # Critical values from 1999 draws scatter by about 2 %, standard errors of 2048 bags by 1.6 %.
        np.testing.assert_allclose(fast[name].lower, band.lower, atol=0.06 * width)
        np.testing.assert_allclose(fast[name].upper, band.upper, atol=0.06 * width)
        np.testing.assert_array_equal(fast[name].shown, band.shown)


def test_groups_in_another_order_are_the_same_groups(monkeypatch):
    monkeypatch.setattr(module, "MANY", 1000)
    monkeypatch.setattr(module, "BAGS", 256)
    values, codes = curves(5000, 2, shift=0.05)
    one, other = bands(values, codes, CONTRAST), bands(values, 1 - codes, CONTRAST)
    for name, band in one.items():
        np.testing.assert_allclose(band.lower, -other[name].upper, rtol=1e-5)


def test_the_permutation_gate_in_blocks_has_the_same_critical_values(monkeypatch):
    values, codes = curves(20_011, 1)  # 43 points fill no row of blocks
    given = {curve.name: CONTRAST for curve in values}
    usual = module.PermutationGate(values, codes, given, 999, np.random.default_rng(0))
    monkeypatch.setattr(module, "MANY", 1000)
    fast = module.PermutationGate(values, codes, given, 999, np.random.default_rng(0))
    for name in given:
        assert fast._columns[name][0] == usual._columns[name][0]  # as observed
        quantiles = [np.quantile(gate._columns[name], [0.5, 0.95]) for gate in (usual, fast)]
        np.testing.assert_allclose(*quantiles, rtol=0.1)


def test_blocks_in_their_own_order_give_what_was_observed(monkeypatch):
    monkeypatch.setattr(module, "MANY", 1000)
    values, codes = curves(20_011, 1)
    part = module._Part(values[0], codes, CONTRAST)
    part.prepare_blocks(np.random.default_rng(0).permutation(len(codes)))
    same = part.by_chance(np.arange(module.BLOCKS)[None])[0].T
    np.testing.assert_allclose(same, part.observed, rtol=1e-4)


@pytest.mark.slow
def test_false_claims_stay_below_the_level(monkeypatch):
    monkeypatch.setattr(module, "MANY", 1000)
    monkeypatch.setattr(module, "BAGS", 512)
    claims = 0
    for seed in range(200):
        values, codes = curves(3000, 100 + seed)
        found = bands(values, codes, CONTRAST, draws=499, permutations=199)
        claims += any(band.shown.any() for band in found.values())
    assert claims <= 20  # 10 expected at most; the chance of more than 20 is 0.0012


def test_limits_of_the_last_evaluation_in_bags(monkeypatch):
    run = run_of(60_000)
    usual = last_evaluation(run).redrawn
    monkeypatch.setattr("tiltmeter.fairness.last_evaluation.MANY", 1000)
    monkeypatch.setattr(module, "MANY", 1000)
    monkeypatch.setattr(module, "BAGS", 4096)
    fast = last_evaluation(run).redrawn
    for rate in ("error", "tpr", "ppv", "base_rate", "loss"):
        one, other = getattr(usual, rate), getattr(fast, rate)
        # Standard deviations of 1999 draws scatter by 1.6 %, those of 4096 bags by 1.1 %; means by a 45th of them.
        np.testing.assert_allclose(one.std(0), other.std(0), rtol=0.08)
        np.testing.assert_allclose(one.mean(0), other.mean(0), atol=0.15 * one.std(0).max())


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
