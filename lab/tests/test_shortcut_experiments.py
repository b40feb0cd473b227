"""The experiments on sensitivity and shortcuts: parts in short by default, quick settings when there is time."""

import math
from dataclasses import replace

import pytest
import torch

from tiltmeter_lab.catalogue import find, make_now
from tiltmeter_lab.named import low_sensitivity, shortcuts
from tiltmeter_lab.shared import shortcut_availability, shortcut_domino, shortcut_moons, shortcut_shares


@pytest.mark.slow
def test_domino_forgets_the_digit_and_the_control_does_not():
    """Three seeds: probe(60) below probe(20) by .2, the end below one half, and without the easy block well above."""
    setting = replace(shortcut_domino.Domino(), steps=120)
    probe = shortcut_domino.trained(setting, 3)["probe_accuracy"]
    assert (probe.sel(time=60) < probe.sel(time=20) - 0.2).all()
    assert (probe.isel(time=-1) < 0.5).all()
    assert (probe.isel(time=-1) < probe.isel(time=0)).all()
    control = shortcut_domino.trained(replace(setting, amplitude=0.0), 1)["probe_accuracy"]
    assert (control.isel(time=-1) > 0.85).all()


def test_converged_linear_models_have_one_bias_at_all_ratios():
    setting = replace(shortcut_availability.Amplified(), points=1000)
    bias = shortcut_availability.converged_linear(setting, 3)["availability_bias"]
    assert bias.dims == ("time", "seed", "ratio")
    assert float((bias.max("ratio") - bias.min("ratio")).max()) < 1e-9


@pytest.mark.slow
def test_moons_apart_have_a_flatter_boundary_and_a_penalty_lowers_scores():
    setting = replace(shortcut_moons.Moons(), steps=250)
    runs = {
        name: shortcut_moons.trained(setting, margin, strength, 3)
        for name, (margin, strength) in shortcut_moons.arms(setting).items()
    }
    found = shortcut_moons.claims(runs)
    assert all(claim.holds for claim in found if claim.safe), [str(claim) for claim in found]


@pytest.mark.slow
def test_quick_shortcuts():
    runs = shortcuts.run(shortcuts.QUICK, make_now)
    found = shortcuts.claims(runs)
    assert all(claim.holds for claim in found if claim.safe), [str(claim) for claim in found if not claim.holds]
    assert len(found) == 12
    assert len(shortcuts.pictures(runs)) == 4


@pytest.mark.slow
def test_quick_low_sensitivity():
    runs = low_sensitivity.run(low_sensitivity.QUICK, make_now)
    found = low_sensitivity.claims(runs)
    assert all(claim.holds for claim in found if claim.safe), [str(claim) for claim in found if not claim.holds]
    assert not math.isnan(found[-1].statistic)
    assert len(low_sensitivity.pictures(runs)) == 2


@pytest.mark.slow
def test_shares_of_the_representation():
    found = shortcut_shares.claims({"shares": shortcut_shares.trained(shortcut_shares.Shares(), 3)})
    assert found[0].holds, str(found[0])


def test_they_are_in_the_catalogue():
    for name, module in (("low-sensitivity", low_sensitivity), ("shortcuts", shortcuts)):
        assert find(name) is module
        assert module.QUICK.seeds >= 3
        assert module.FULL.seeds > module.QUICK.seeds
        assert module.NEEDS == ()


def test_a_transformer_reads_patches_and_bits():
    assert low_sensitivity.Patches(8, 2, 10)(torch.zeros(3, 3, 8, 8)).shape == (3, 10)
    assert low_sensitivity.Bits(11)(torch.zeros(3, 11)).shape == (3, 1)
