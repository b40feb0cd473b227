"""One thread, and an experiment made for the tests that counts how often it runs."""

import sys
from dataclasses import dataclass
from types import ModuleType

import altair as alt
import numpy as np
import pytest
import xarray as xr

from tiltmeter import Origin, Trajectory
from tiltmeter.experiments.catalogue import EXPERIMENTS
from tiltmeter.experiments.claim import Claim


@dataclass(frozen=True)
class Setting:
    steps: int = 4
    seeds: int = 3


class Toy(ModuleType):
    """Random walks, one run per start; `calls` counts what was made, `fail_at` raises before the run of that name."""

    TITLE, PAPER, NEEDS = "Walks go on", "Somebody (2000)", ()
    QUICK, FULL = Setting(), Setting(steps=8, seeds=5)

    def __init__(self):
        super().__init__("tiltmeter.experiments.toy_of_the_tests")
        self.calls, self.fail_at, self.error = [], None, RuntimeError("boom")

    def run(self, setting, keep):
        return {f"walk {i}": keep(f"walk {i}", lambda i=i: self._walk(setting, i)) for i in range(3)}

    def _walk(self, setting, i):
        if self.fail_at == i:
            raise self.error
        self.calls.append(i)
        values = np.random.default_rng(i).normal(size=(setting.steps, setting.seeds)).cumsum(0)
        coords = {"time": np.arange(setting.steps), "seed": np.arange(setting.seeds)}
        curve = xr.DataArray(values, dims=("time", "seed"), coords=coords)
        return Trajectory({"place": curve}, "step", Origin("toy", seeds=tuple(range(setting.seeds))))

    def claims(self, runs):
        ends = np.concatenate([run["place"].isel(time=-1).values for run in runs.values()])
        seeds = runs["walk 0"]["place"].sizes["seed"]
        return (
            Claim("Walks spread | far", float(ends.std()), "spread", 0.5, error=0.1, seeds=seeds),
            Claim("Walks rise", float(ends.mean()), "mean end", 10.0, "They never do.", safe=False),
        )

    def pictures(self, runs):  # noqa: ARG002
        values = alt.Data(values=[{"x": 1, "y": 2}])
        return {"Where they go": alt.Chart(values).mark_point().encode(x="x:Q", y="y:Q")}


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr("tiltmeter.experiments.toy_of_the_tests", made, raising=False)
    monkeypatch.setitem(EXPERIMENTS, "toy", "toy_of_the_tests")
    return made
