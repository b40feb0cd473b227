"""Arms and seeds of an experiment as cells of a study: joined to the same runs, cut off at any time, counted."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
import xarray as xr

from tiltmeter import Trajectory
from tiltmeter.record import Origin
from tiltmeter_lab.catalogue import find, make_now
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.kept import Kept
from tiltmeter_lab.reproduce import reproduce
from tiltmeter_lab.shared.seed_study import joined_seeds, seed_study
from tiltmeter_lab.study import Study


@dataclass(frozen=True)
class Setting:
    steps: int = 3
    seeds: int = 4
    together: int | None = 2


def arm(setting, name, seeds):
    """Walks with their points, one for each seed, that depend on nothing but arm and seed."""
    draws = [np.random.default_rng([seed, len(name)]).normal(size=(setting.steps, 5)) for seed in seeds]
    values = np.stack(draws, -1)
    coords = {"time": np.arange(setting.steps), "seed": list(seeds)}
    curve = xr.DataArray(values.mean(1), dims=("time", "seed"), coords=coords)
    points = xr.DataArray(values, dims=("time", "point", "seed"), coords={**coords, "group": ("point", list("aabbb"))})
    return Trajectory({"place": curve}, "step", Origin("toy", seeds=tuple(seeds)), points={"place": points})


@pytest.fixture
def walks(toy, monkeypatch):
    """The toy experiment with its walks in cells, computed in this process."""
    toy.QUICK, toy.FULL, toy.arm = Setting(together=None), Setting(), arm
    toy.run = lambda setting, keep: seed_study(keep, "toy", setting, ("up", "down, too"), range(setting.seeds))
    toy.claims = lambda runs: (
        Claim("Walks rise", float(runs["up"]["place"].mean()), "mean", 9.0, seeds=len(runs["up"].origin.seeds)),
    )
    run = Study.run
    monkeypatch.setattr(Study, "run", lambda self, progress=True: run(self, ThreadPoolExecutor(1), progress))
    return toy


def runs_of(toy, folder, partial=False):
    return toy.run(toy.FULL, Kept(folder, toy.FULL, partial=partial))


def test_cells_of_some_seeds_give_the_run_of_all_of_them(walks, tmp_path):
    apart = runs_of(walks, tmp_path)
    whole = walks.run(walks.QUICK, make_now)
    assert list(apart) == list(whole) == ["up", "down, too"]
    for name, run in whole.items():
        assert apart[name]["place"].identical(run["place"])
        assert apart[name].points["place"].identical(run.points["place"])
        assert apart[name].origin == run.origin


def lose(folder, arm, first):
    """Remove the cell of an arm that begins with this seed."""
    for cell in (folder / "study" / "cells").iterdir():
        settings = json.loads((cell / "cell.json").read_text())["settings"]
        if settings["arm"] == arm and settings["seeds"][0] == first:
            shutil.rmtree(cell)


def test_an_experiment_cut_off_is_judged_with_its_counts_and_goes_on(walks, tmp_path):
    assert reproduce("toy", "full", to=tmp_path).partial == ""
    folder = tmp_path / "toy" / "full"
    lose(folder, "up", 2)
    some = reproduce("toy", "full", to=tmp_path, partial=True)
    assert some.partial == "6 of 8 complete: up 2 of 4, down, too 4 of 4"
    assert some.claims[0].seeds == 2
    assert "In part: 6 of 8 complete" in some.sentence
    assert len(list((folder / "study" / "cells").iterdir())) == 3, "nothing was computed"
    again = reproduce("toy", "full", to=tmp_path)
    assert (again.partial, again.claims[0].seeds) == ("", 4)
    lose(folder, "up", 0)
    lose(folder, "up", 2)
    with pytest.raises(ValueError, match=r"Nothing to judge yet: no seed of 'up' is complete."):
        reproduce("toy", "full", to=tmp_path, partial=True)


def test_runs_that_are_not_made_of_cells_cannot_be_judged_in_part(toy, tmp_path):
    with pytest.raises(ValueError, match=r"The run 'walk 0' is not there, and it is not made of parts"):
        reproduce("toy", "full", to=tmp_path, partial=True)
    assert toy.calls == []


def test_seeds_that_diverged_are_known_beside_those_that_did_not():
    one, two = (arm(Setting(), "up", [seed]) for seed in (0, 7))
    ended = Trajectory(dict(two), "step", two.origin, xr.DataArray([2.0], dims="seed", coords={"seed": [7]}))
    found = joined_seeds([one, ended])
    np.testing.assert_array_equal(found.diverged.values, [np.nan, 2.0])
    assert joined_seeds([one, two]).diverged is None
    assert "place" not in found.points, "points that not all runs kept are left out"


@pytest.mark.slow
def test_a_training_in_cells_is_the_training_at_once(tmp_path):
    module = find("other-protocols")
    small = replace(module.FULL, d=20, width=8, steps=60, seeds=4, together=2)
    apart = module.run(small, Kept(tmp_path, small))
    for name, run in module.run(replace(small, together=None), make_now).items():
        np.testing.assert_allclose(apart[name]["loss"].values, run["loss"].values, rtol=1e-4)
        assert apart[name].points.sizes("loss") == run.points.sizes("loss")
