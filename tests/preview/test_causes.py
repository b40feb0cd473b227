"""Causes: populations have what they promise, and the cause that was built in is the one that is named."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.preview.causes import Contrast
from tiltmeter.preview.features import columns
from tiltmeter.preview.populations import balance, few_people, populations
from two_group_tables import parts


@pytest.fixture(scope="module")
def inputs():
    return tm.preview(*parts(count=6000, shift=0.8, rate=1.0)).inputs


def moments(rows, group):
    own = rows.codes == group
    mass = rows.mass[own] / rows.mass[own].sum()
    x = rows.x[own]
    mean = mass @ x
    return mean, mass @ (x - mean) ** 2, float(mass @ rows.labels[own])


def test_equal_shares(inputs):
    world = populations(inputs, ("share",))["share"]
    for rows in (world.train, world.held_out):
        assert np.allclose(np.bincount(rows.codes, rows.mass), [0.5, 0.5])


def test_the_same_base_rate(inputs):
    world = populations(inputs, ("base rate",))["base rate"]
    for rows in (world.train, world.held_out):
        assert abs(moments(rows, 0)[2] - moments(rows, 1)[2]) < 1e-12


def test_the_same_position(inputs):
    world = populations(inputs, ("position",))["position"]
    everybody = inputs.train.mass @ inputs.train.x
    for rows in (world.train, world.held_out):
        for group in (0, 1):
            assert np.abs(moments(rows, group)[0] - everybody).max() < 0.01


def test_the_same_spread():
    rng = np.random.default_rng(0)
    second = rng.random(6000) < 0.4
    x = rng.normal(size=(6000, 2)) * np.where(second, 1.4, 1.0)[:, None] + np.outer(second, [1.0, 0.0])
    data = tm.GroupedData(x, (x[:, 1] > 0).astype(int), np.where(second, "b", "a"))
    inputs = tm.preview(*data.split(0.4)).inputs
    world = populations(inputs, ("spread",))["spread"]
    before = [moments(inputs.train, group)[0] for group in (0, 1)]
    after = [moments(world.train, group) for group in (0, 1)]
    assert np.abs(after[0][1] - after[1][1]).max() < 0.02
    assert np.abs(np.array(before) - [one[0] for one in after]).max() < 0.01


def test_one_rule_keeps_every_base_rate(inputs):
    world = populations(inputs, ("rule",))["rule"]
    for rows, whole in ((world.train, inputs.train), (world.held_out, inputs.held_out)):
        assert ((rows.labels > 0) & (rows.labels < 1)).all()
        for group in (0, 1):
            assert abs(moments(rows, group)[2] - moments(whole, group)[2]) < 1e-9


def test_balance_is_the_nearest_weighting_in_entropy():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    base = np.full(200, 1 / 200)
    weights = balance(x, np.array([0.2, -0.1]), base)
    logs = np.log(weights / base)
    design = np.concatenate([x, np.ones((200, 1))], axis=1)
    left = logs - design @ np.linalg.lstsq(design, logs, rcond=None)[0]
    assert np.abs(left).max() < 1e-9  # the logarithms of the weights are linear in the columns
    assert np.abs(weights @ x - [0.2, -0.1]).max() < 1e-3


def test_a_target_that_cannot_be_reached_is_given_up():
    weights = balance(np.array([[0.0], [1.0]]), np.array([5.0]), np.array([0.5, 0.5]))
    assert np.isfinite(weights).all()
    assert abs(weights.sum() - 1.0) < 1e-12


def test_the_cause_that_was_built_in_is_the_largest():
    """Where one group is moved and nothing else differs, its position makes the gap of the false positive rate."""
    view = tm.preview(*parts(count=9000, shift=1.2))
    causes = view.causes("fpr", group="b")
    assert causes.top().cause == "position"
    assert causes.of("position").named
    assert abs(causes.of("position").gap_without) < 0.5 * abs(causes.of("position").gap)
    assert causes.sentence().startswith("Position makes the gap of group b")


def test_groups_that_are_alike_have_no_cause():
    named = 0
    for seed in range(6):
        view = tm.preview(*parts(count=1500, seed=seed))
        named += bool(view.causes("tpr", group="a").named)
    assert named <= 1


def test_the_row_as_it_is_is_the_previews_own_gap():
    view = tm.preview(*parts(count=3000, rate=1.0))
    causes = view.causes("tpr", group="b", deals=0)
    ends = view.run["tpr"].isel(time=-1)
    assert abs(causes.of("share").gap - float(ends.sel(group="b") - ends.sel(group="a"))) < 1e-12
    assert causes.of("share").gap_without == causes.of("share").gap + causes.of("share").change


def test_a_contrast_by_soft_labels_is_that_of_hard_ones(inputs):
    view = tm.preview(*parts(count=3000, rate=1.0))
    rows, scores = view.inputs.held_out, view.course.scores[-1]
    for curve in ("tpr", "fpr", "positive_rate", "error", "loss"):
        value = Contrast(curve, 1, 0).of(scores, rows, view.inputs)
        gap = float(view.run[curve].sel(group="b")[-1] - view.run[curve].sel(group="a")[-1])
        assert abs(value - gap) < 1e-9, curve


def test_groups_with_few_of_a_label_are_not_reweighted():
    rng = np.random.default_rng(0)
    y = np.zeros(2000, dtype=int)
    y[:1000] = rng.integers(0, 2, 1000)
    y[1000:1010] = 1
    data = tm.GroupedData(rng.normal(size=(2000, 2)), y, ["a"] * 1000 + ["b"] * 1000)
    view = tm.preview(*data.split(0.4))
    assert few_people(view.inputs) == {1: "8 training rows of a label"}
    assert str(view.causes(group="b")) == (
        "No causes are named: too few people to reweight in b (8 training rows of a label)."
    )


def test_small_other_groups_are_left_out_and_named():
    rng = np.random.default_rng(0)
    groups = np.array(["a"] * 1500 + ["b"] * 1500 + ["c"] * 60)
    x = rng.normal(size=(3060, 2)) + np.outer(groups == "b", [1.0, 0.0])
    data = tm.GroupedData(x, (x[:, 0] + rng.normal(size=3060) > 0).astype(int), groups)
    causes = tm.preview(*data.split(0.4)).causes("fpr", group="b", deals=0)
    assert causes.left_out == ("c",)
    assert "Left out, with too few people: c." in str(causes)
    assert causes.top().cause in ("position", "base rate")


def test_the_groups_own_column_does_not_stop_the_balance():
    train, held_out = parts(count=4000, shift=0.5)
    with_group = [part.with_points(np.c_[part.x, part.codes.astype(float)]) for part in (train, held_out)]
    world = populations(tm.preview(*with_group).inputs, ("position",))["position"]
    assert not world.refused
    assert np.isfinite(world.train.mass).all()


def test_a_population_of_too_few_people_is_refused_by_name():
    view = tm.preview(*parts(count=1500, shift=2.2))
    assert "people of group" in view.causes("loss", group="b", deals=0).refused["position"]


def test_the_level_of_numbers_is_a_cause():
    rng = np.random.default_rng(0)
    second = rng.random(3000) < 0.4
    x = rng.normal(size=(3000, 2))
    data = tm.GroupedData(x, x[:, 0] + 2.0 * second, np.where(second, "b", "a"))
    inputs = tm.preview(*data.split(0.4)).inputs
    world = populations(inputs, ("base rate",))["base rate"]
    assert abs(moments(world.train, 0)[2] - moments(world.train, 1)[2]) < 0.02


def test_columns_are_standardised_once(inputs):
    seen = columns(inputs.train.x).standardised(inputs.train.x)
    assert np.abs(seen.mean(0)).max() < 1e-9
    assert np.abs(seen.std(0) - 1).max() < 1e-9
