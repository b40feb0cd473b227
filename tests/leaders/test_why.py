"""why: the reasons that a run tells, those that it does not, and the words for both."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.forecast.kernel.why import SHARES, Why

WOMEN, MEN = (
    (4063, 38, 117, 33),
    (3143, 70, 305, 231),
)  # true negatives, false positives, false negatives, true positives


def run(cells=(WOMEN, MEN), train=True):
    sizes = [sum(counts) for counts in cells]
    groups = np.repeat(list("abc"[: len(cells)]), sizes)
    positive = np.concatenate([np.repeat([False, False, True, True], counts) for counts in cells])
    decided = np.concatenate([np.repeat([False, True, False, True], counts) for counts in cells])
    losses = np.where(decided == positive, 0.1, 2.0)
    coords = {"time": [10], "group": ("point", groups), "positive": ("point", positive)}
    points = {
        name: xr.DataArray(values[None], dims=("time", "point"), coords=coords)
        for name, values in (("loss", losses), ("decided_positive", decided))
    }
    names = sorted(set(groups))
    means = [[losses[groups == name].mean() for name in names]]
    loss = xr.DataArray(means, dims=("time", "group"), coords={"time": [10], "group": names})
    settings = {"train": {"points": 100, "sizes": [[g, 60 - 20 * i] for i, g in enumerate(names)]}} if train else {}
    return tm.Trajectory(
        {"loss": loss}, "step", tm.record.Origin("training", {"held_out": {}}, settings), points=points
    )


def test_the_census_by_hand():
    text = str(tm.fairness.why(run()))
    assert text.startswith(
        "Of a 3.5 % are positive, of b 14.3 %. The error of b is higher than that of a by 6.4 points: 7.1 from base rates ("
    )
    assert "\N{MINUS SIGN}0.7 from cases with the same label (" in text
    assert "not clear). The loss of b is higher than that of a by 0.1" in text
    assert "60.0 % of the training data are a, 40.0 % b." in text
    assert "is not known from a run: `tangent(model, train, evaluation).why(recipe, step=...)` tries each." in text
    assert text.endswith(
        "Noise in labels, and how much the inputs say about them in each group, are not known from a run."
    )


def test_what_a_forecast_found_takes_the_place_of_not_known():
    ahead = Why(5, "loss", {"a": 0.4, "b": 0.2}, "a", "b", {SHARES: 0.05}, None, {"a": 0.1, "b": 0.3}, {},
                {"a": 0.6, "b": 0.4}, {})  # fmt: skip
    text = str(tm.fairness.why(run(), ahead=ahead))
    assert "With equal shares of the data (now 60 % and 40 % of the data) 25 % of the gap would be left." in text
    assert "tries each" not in text


def test_of_several_groups_those_furthest_apart():
    found = tm.fairness.why(run(cells=[(90, 10, 50, 50), (99, 1, 1, 99), (95, 5, 20, 80)], train=False))
    assert found.pair == ("a", "b")
    assert found.shares == {}


def test_refusals():
    with pytest.raises(ValueError, match="`level` should lie"):
        tm.fairness.why(run(), level=0)
    with pytest.raises(KeyError, match="No group 'z'"):
        tm.fairness.why(run(), pair=("a", "z"))
