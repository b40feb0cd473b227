"""Grouping: classes, rotation, contrast, shares, label rates, attributes, random tasks."""

import numpy as np
import pytest

from tiltmeter import GroupedData
from tiltmeter.data.public.grouping import (
    by_attributes,
    by_classes,
    contrasted,
    imbalanced,
    mixed,
    named_classes,
    random_task,
    rotated,
    set_aside,
)
from tiltmeter.data.public.images import Images

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2000, 6, 6)), np.arange(2000) % 10
PAIR = GroupedData(np.arange(800.0)[:, None], np.arange(800) % 2, np.where(np.arange(800) % 8 < 2, "b", "a"))


def test_classes_get_their_group_and_label():
    data = by_classes(np.arange(2000.0)[:, None], Y, {"b": ([1, 2], [3]), "a": ([5], [0])})
    assert data.groups == ("b", "a")
    kept = data.x[:, 0].astype(int) % 10
    np.testing.assert_array_equal(data.y, np.select([np.isin(kept, [1, 2, 5])], [1], -1))
    np.testing.assert_array_equal(data.codes, np.where(np.isin(kept, [1, 2, 3]), 0, 1))


def test_classes_by_name():
    images = Images(X, Y, tuple("abcdefghij"))
    assert named_classes(images, {"one": (["b", "a"], ["j"])}) == {"one": ((1, 0), (9,))}


def test_rotation_by_any_angle():
    np.testing.assert_array_equal(rotated(X, 180), X[:, ::-1, ::-1])
    np.testing.assert_array_equal(rotated(X, -90), rotated(X, 270))
    bar = np.zeros((1, 21, 21))
    bar[0, 10, 3:18] = 1.0  # a bar through the middle, turned one way
    by_parts = rotated(rotated(bar, 45), 45)
    upright = rotated(bar, 90)
    assert np.corrcoef(by_parts.ravel(), upright.ravel())[0, 1] > 0.8  # two interpolations blur it
    corner = np.zeros((1, 21, 21))
    corner[0, 3:7, 14:18] = 1.0  # top right goes anticlockwise to the top, whichever way it is computed
    rows, columns = np.nonzero(rotated(corner, 45)[0] > 0.5)
    assert rows.mean() < 5
    assert abs(columns.mean() - 10) < 1.5


def test_contrast_changes_the_spread_alone():
    far = contrasted(X, 3.0)
    assert far.mean() == pytest.approx(X.mean())
    assert far.std() == pytest.approx(3 * X.std())


@pytest.mark.parametrize("share", [0.5, 0.75, 0.9, 0.05])
def test_shares_are_met_with_as_many_points_as_there_are(share):
    data = mixed(PAIR, {"a": share, "b": 1 - share}, seed=1)
    assert data.sizes["a"] / len(data) == pytest.approx(share, abs=0.5 / len(data) + 1e-9)
    assert data.sizes["a"] == 600 or data.sizes["b"] == 200
    assert len(np.unique(data.x)) == len(data)
    for group in "ab":
        assert set(data.x[data.of_group(group), 0]) <= set(PAIR.x[PAIR.of_group(group), 0])


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_label_rates_are_met_in_the_named_group_alone(rate):
    data = imbalanced(PAIR, {"a": rate}, seed=1)
    assert data.label_rates["a"][1] == pytest.approx(rate, abs=0.005)
    assert data.sizes["b"] == PAIR.sizes["b"]
    assert data.label_rates["b"] == PAIR.label_rates["b"]


def test_attributes():
    target, attribute = np.arange(200) % 2 == 0, np.arange(200) % 4 == 0
    data = by_attributes(X[:200], target, attribute, "Young")
    assert data.groups == ("Young", "no Young")
    assert data.label_rates == {"Young": {0: 0.0, 1: 1.0}, "no Young": {0: 2 / 3, 1: 1 / 3}}


def test_a_random_task():
    train, held_out = random_task(X, Y, np.random.default_rng(5), rho=0.7, held_out=150)
    assert train.groups == ("a", "b")
    assert held_out.sizes == {"a": 150, "b": 150}
    assert train.sizes["a"] == 650
    assert train.sizes["a"] / len(train) == pytest.approx(0.7, abs=0.001)
    assert train.x.dtype == np.float32
    assert train.x.shape[1:] == (36,)
    points = {tuple(row) for row in np.concatenate([train.x, held_out.x])}
    assert len(points) == len(train) + len(held_out)  # nothing is in both
    for rates in (train.label_rates, held_out.label_rates):
        assert all(0.35 < rate < 0.65 for of in rates.values() for rate in of.values())
    again = random_task(X, Y, np.random.default_rng(5), rho=0.7, held_out=150)[0]
    np.testing.assert_array_equal(again.x, train.x)
    other = random_task(X, Y, np.random.default_rng(6), rho=0.7, held_out=150)[0]
    assert not np.array_equal(other.x[:50], train.x[:50])


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: by_classes(X, Y, {"a": ([1], [2]), "b": ([2], [3])}), ValueError, "Every class should be used once. Found class 2 twice."),
        (lambda: by_classes(X, Y, {"a": ([1],)}), ValueError, "Each group should have classes labelled +1 and classes labelled -1."),
        (lambda: contrasted(X, 0.0), ValueError, "`factor` should be positive and finite. Found factor = 0.0."),
        (lambda: contrasted(X, float("inf")), ValueError, "`factor` should be positive and finite. Found factor = inf."),
        (lambda: rotated(X, float("nan")), ValueError, "`degrees` should be a finite number. Found degrees = nan."),
        (lambda: by_classes(X, Y[1:], {"a": ([1], [2])}), ValueError, f"Lengths should agree. Found {len(X)} in x, {len(X) - 1} in y."),
        (lambda: by_classes(X, Y, {"a": (1, 2)}), ValueError, "Each group should have classes labelled +1 and classes labelled -1."),
        (lambda: by_classes(X, Y, {"a": (["cat"], [2])}), TypeError, "A class should be a whole number (see `named_classes`). Found 'cat'."),
        (lambda: by_classes(X, Y, {"a": ([77], [2])}), ValueError, "Every class should have points. Found none of class 77."),
        (lambda: by_attributes(X, Y % 2, 2 * (Y % 2) - 1), ValueError, "`attribute` should be yes or no: booleans, or 0 and 1. Found -1."),
        (lambda: mixed(PAIR, {"a": 0.5}), KeyError, "`shares` should be given for 'a', 'b'. Found {'a': 0.5}."),
        (lambda: mixed(PAIR, {"a": 0.5, "b": 0.6}), ValueError, "add up to 1. Found {'a': 0.5, 'b': 0.6}."),
        (lambda: mixed(PAIR, {"a": 1.0, "b": 0.0}), ValueError, "`shares` should lie strictly between 0 and 1"),
        (lambda: imbalanced(PAIR, {"a": 1.0}), ValueError, "`rates` should lie strictly between 0 and 1. Found 1.0 for group 'a'."),
        (lambda: imbalanced(PAIR, {"c": 0.5}), KeyError, "No group 'c'."),
        (lambda: imbalanced(GroupedData(X, Y, "label"), {0: 0.5}), ValueError, "Two labels are needed. Found 10."),
        (lambda: random_task(X, Y, RNG, 1.0), ValueError, "`rho` should lie strictly between 0 and 1. Found rho = 1.0."),
        (lambda: random_task(X, Y % 7, RNG, 0.5), ValueError, "Two groups of four classes need eight. Found 7."),
        (lambda: set_aside(PAIR, 200, RNG), ValueError, "`held_out` should leave points of every group. Found 200 of 200 in 'b'."),
    ],
)  # fmt: skip
def test_sentences(make, kind, sentence):
    with pytest.raises(kind) as error:
        make()
    assert sentence in str(error.value.args[0])
