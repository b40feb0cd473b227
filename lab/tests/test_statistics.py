"""Experiments of dependence, distribution and rank: small runs of each, and the published ones with their claims."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from tiltmeter.record import Trajectory
from tiltmeter_lab.catalogue import find, make_now
from tiltmeter_lab.named.distributional import _rise

SMALL = {
    "low-dimensional-dependence": {"train": 500, "held_out": 100, "width": 10, "batch": 20, "steps": 10, "seeds": 2},
    "distributional": {"train": 600, "width": 8, "batch": 16, "steps": 12, "early": 5, "seeds": 2},
    "low-rank-weights": {"steps": 20, "seeds": 2, "drift_lrs": (0.2, 0.1), "drift_time": 0.4},
    "low-rank-embeddings": {
        "width": 8,
        "depths": (1, 2),
        "points": 40,
        "trained_depths": (1, 2),
        "steps": 6,
        "seeds": 2,
    },
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name.startswith("low-rank") else pytest.mark.slow) for name in SMALL]
)
def test_a_small_run_is_complete_and_the_same_every_time(name):
    module = find(name)
    setting = replace(module.QUICK, **SMALL[name])
    assert module.QUICK.seeds >= 3
    before = torch.get_rng_state()
    runs = module.run(setting, make_now)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(isinstance(run, Trajectory) and run.origin.seeds == (0, 1) for run in runs.values())
    again = module.run(setting, make_now)
    assert {key: run.to_json() for key, run in runs.items()} == {key: run.to_json() for key, run in again.items()}
    stored = {key: Trajectory.from_json(run.to_json()) for key, run in runs.items()}
    assert [str(c) for c in module.claims(stored)] == [str(c) for c in module.claims(runs)]
    assert any(claim.safe for claim in module.claims(runs))
    for chart in module.pictures(stored).values():
        assert chart.to_dict()["layer"]


def test_arms_share_their_start_and_runs_are_kept_one_by_one():
    module = find("distributional")
    asked = []

    def keep(name, make):
        asked.append(name)
        return make()

    run = module.run(replace(module.QUICK, **SMALL["distributional"]), keep)["arms"]["accuracy"]
    assert asked[:2] == ["arms", "clones"]  # photographs, too, where they are present
    assert np.allclose(run.isel(time=0), run.isel(time=0, arm=0))  # the same networks before the first step
    assert not np.allclose(run.isel(time=-1), run.isel(time=-1, arm=0))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SMALL)
def test_safe_claims_hold(name):
    module = find(name)
    for claim in module.claims(module.run(module.QUICK, make_now)):
        assert claim.holds or not claim.safe, str(claim)


def test_a_flat_loss_has_no_rise_by_choice_of_its_lowest_point():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 12, 5))
    found = []
    for values in noise:
        loss = xr.DataArray(values, dims=("time", "seed"), coords={"time": np.arange(12), "seed": np.arange(5)})
        found.append(_rise(loss).values.mean())
    # Means of 400 differences of five pairs each; the lowest of twelve chosen on the same seeds would give 0.7.
    assert abs(np.mean(found)) < 4 * np.std(found) / 20
    falling = xr.DataArray(
        np.array([3.0, 1.0, 2.5])[:, None] + [0.0, 0.1],
        dims=("time", "seed"),
        coords={"time": [0, 1, 2], "seed": [0, 1]},
    )
    assert _rise(falling).values == pytest.approx(1.5)
