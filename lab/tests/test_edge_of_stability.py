"""The edge of stability at a small size, the exact parts of it, and claims that fail where they should."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Trajectory
from tiltmeter_lab.catalogue import find, make_now
from tiltmeter_lab.named import edge_of_stability as experiment

SMALL = replace(experiment.QUICK, seeds=1, points=60, units=12, rates=(0.2,), steps=320, evaluations=8, window=12)


@pytest.fixture(scope="module")
def runs():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield experiment.run(SMALL, make_now)
    torch.set_num_threads(before)


def test_it_is_in_the_catalogue_and_has_several_rates_and_seeds():
    assert find("edge-of-stability") is experiment
    for setting in (experiment.QUICK, experiment.FULL):
        assert setting.seeds >= 3
        assert len(setting.rates) >= 3
        assert setting.small < min(setting.rates)


def test_runs_hold_sharpness_of_all_and_of_groups_and_the_loss_of_every_step(runs):
    assert list(runs) == ["rate 0.2", "small rate 0.02", "linear model, rate 0.02"]
    for run in runs.values():
        assert run["hessian_top"].sizes == {"time": 9, "rank": 1, "seed": 1}
        assert run["group_hessian_top"].sizes == {"time": 9, "group": 2, "seed": 1}
        assert run["descent_loss"].sizes == {"time": 320, "seed": 1}
        assert run["side_change"].sizes == {"time": 10, "side": 2, "seed": 1}


def test_the_loss_of_the_loop_is_the_one_that_the_probe_sees(runs):
    run = runs["rate 0.2"]
    shares = xr.DataArray(run.origin.settings["shares"], dims="group")
    times = run["loss"].time.values[:-1]
    seen = (shares * run["loss"]).sum("group").sel(time=times)
    np.testing.assert_allclose(seen, run["descent_loss"].sel(time=times), rtol=1e-9)


def test_sharpness_climbs_far_above_its_start_and_the_controls_stay(runs):
    factor = {name: (run["hessian_top"].max() / run["hessian_top"][0]).item() for name, run in runs.items()}
    assert factor["rate 0.2"] > 3.0
    linear = runs["linear model, rate 0.02"]
    np.testing.assert_allclose(linear["hessian_top"], linear.origin.settings["linear_sharpness"], rtol=1e-6)
    for name in ("small rate 0.02", "linear model, rate 0.02"):
        assert (runs[name]["descent_loss"].diff("time") < 0).all(), name


def test_claims_are_told_from_the_runs_alone_and_can_fail(runs):
    stored = {name: Trajectory.from_json(run.to_json()) for name, run in runs.items()}
    said = experiment.claims(stored)
    assert [str(claim) for claim in said] == [str(claim) for claim in experiment.claims(runs)]
    by = {claim.sentence.split()[0]: claim for claim in said}
    assert by["A"].holds  # the linear model
    assert by["No"].holds  # no sharper than its groups
    # What never sharpens and never swings, called by the name of the others, is not taken for them.
    dull = {**runs, "rate 0.2": runs["small rate 0.02"]}
    told = {claim.sentence.split()[0]: claim for claim in experiment.claims(dull)}
    assert not told["From"].holds
    assert not told["The"].holds
    assert not any(claim.holds for claim in experiment.claims(dull) if claim.sentence.startswith("At the edge"))


def test_the_linear_control_fails_for_another_curvature(runs):
    bent = runs["linear model, rate 0.02"]
    curves = {**bent, "hessian_top": bent["hessian_top"] * (1.0 + 1e-5)}
    wrong = {**runs, "linear model, rate 0.02": Trajectory(curves, bent.clock, bent.origin)}
    claim = next(c for c in experiment.claims(wrong) if c.sentence.startswith("A linear"))
    assert not claim.holds


def test_sides_are_chosen_by_the_first_step_and_followed_from_the_second():
    rng = np.random.default_rng(0)
    losses = rng.normal(size=(5, 30))
    found = experiment.sides(losses, first=100, few=6)
    change = np.diff(losses, axis=0)
    top = np.argsort(-abs(change[0]))[:6]
    assert found.time.values.tolist() == [102, 103, 104]
    np.testing.assert_allclose(found.sel(side="falling"), change[1:, top[change[0, top] < 0]].mean(1))
    np.testing.assert_allclose(found.sel(side="rising"), change[1:, top[change[0, top] > 0]].mean(1))


def test_a_side_without_points_is_nan():
    falling = np.array([[3.0, 2.0], [2.0, 1.0], [1.0, 0.5]])
    assert np.isnan(experiment.sides(falling, 0, 2).sel(side="rising")).all()


def test_pictures(runs):
    charts = experiment.pictures(runs)
    assert len(charts) == 3
    drawn = str(charts["Sharpness rises to 2 / rate and stays there"].to_dict())
    assert "10.0" in drawn  # the level 2 / 0.2
