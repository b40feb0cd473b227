"""Group giveaway: areas of normal columns in closed form, brighter images, and random groups."""

import numpy as np
import pytest
from scipy.stats import norm
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.group_giveaway import GroupGiveaway


def test_a_shifted_column_has_the_area_of_the_normal_law():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 5000)
    x = rng.normal(size=(10_000, 20))
    x[:, 3] += 0.5 * (group == "b")
    found = lab.measure(GroupGiveaway(most=2), nn.Linear(20, 2), tm.GroupedData(x, rng.integers(0, 2, 10_000), group))
    assert found["group_giveaway"].cue.values[0] == "column 3"
    assert found["group_giveaway"].values[0] == pytest.approx(norm.cdf(0.5 / 2**0.5), abs=0.02)
    assert found["group_giveaway"].values[1] == pytest.approx(found["group_giveaway_null"].values[0], abs=0.02)


def test_cues_of_images():
    rng = np.random.default_rng(1)
    group = np.tile(["dark", "bright", "rough"], 100)
    x = rng.normal(size=(300, 2, 6, 6))
    x[group == "bright", 1] += 1.0
    x[group == "rough"] *= 3.0
    model = nn.Sequential(nn.Flatten(), nn.Linear(72, 2))
    found = lab.measure(GroupGiveaway(), model, tm.GroupedData(x, rng.integers(0, 2, 300), group))["group_giveaway"]
    assert float(found.sel(cue="mean of channel 1", group="bright")) > 0.98
    assert float(found.sel(cue="mean of channel 0", group="bright")) < 0.65
    assert float(found.sel(cue="edges", group="rough")) == 1.0
    two = np.flatnonzero(group != "bright")
    found = lab.measure(GroupGiveaway(), model, tm.GroupedData(x[two], two // 3 % 2, group[two]))["group_giveaway"]
    assert float(found.sel(cue="contrast", group="rough")) == 1.0
    assert float(found.sel(cue="fine detail", group="rough")) < 0.65  # edges and contrast grow alike


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="`most` should be at least 1"):
        GroupGiveaway(most=0)
    tokens = tm.GroupedData(np.zeros((60, 3), dtype=int), [0, 1] * 30, ["a", "b"] * 30)
    with pytest.raises(ValueError, match="needs images"):
        lab.measure(GroupGiveaway(), nn.Sequential(nn.Embedding(2, 2), nn.Flatten(), nn.Linear(6, 2)), tokens)
