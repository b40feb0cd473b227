"""Before training: who will be left behind, from rehearsals that kept their points."""

import numpy as np
import pytest
import torch

import tiltmeter as tm

RNG = np.random.default_rng(0)
KIND = RNG.random(3000) < 0.15
X = RNG.normal(size=(3000, 6)).astype(np.float32)
X[:, 5] = KIND
Y = (X[:, 0] > 0) ^ KIND  # the rule of the slice is the opposite
TABLE = {"kind": np.where(KIND, "rare", "common"), "size": RNG.normal(size=3000)}
DATA = tm.GroupedData(X, Y.astype(int), ["all"] * 3000)
TRAIN, HELD_OUT = DATA.take(np.arange(1500)), DATA.take(np.arange(1500, 3000))
ROWS = {name: values[1500:] for name, values in TABLE.items()}


def forecast(method):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    return tm.forecast(model, TRAIN, HELD_OUT, tm.Recipe(lr=0.1, steps=60, batch=32), method=method, progress=False)


def test_a_forecast_names_who_will_be_left_behind():
    ahead = forecast(tm.methods.Rehearsal(copies=5))
    discovery = tm.discover(ahead, ROWS)
    assert discovery.clear[0].name == "kind = rare"
    assert "will be worse off at the end: its loss will be" in discovery.claim
    assert discovery.licence.startswith("Forecast. Rehearsed 5 times, 90 % band over all evaluations: ")
    regrouped = discovery.run(0)
    assert {"loss_gap_low", "loss_gap_high"} <= set(regrouped)
    assert tm.leaders(regrouped, "loss").basis == "forecast"
    wide, narrow = (band_width(tm.discover(ahead, ROWS, most=most).run(0)) for most in (6, 1))
    assert wide >= narrow


def band_width(run):
    return float((run["loss_gap_high"] - run["loss_gap_low"]).max())


@pytest.mark.parametrize("method", [tm.methods.Rehearsal(copies=2), tm.methods.Twin(share=0.5)], ids=["two", "twin"])
def test_other_forecasts_cannot_promise_about_other_groups(method):
    with pytest.raises(ValueError, match="a forecast by at least 3 rehearsals that kept their points"):
        tm.discover(forecast(method), ROWS)
