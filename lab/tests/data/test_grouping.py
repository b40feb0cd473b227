"""Grouping: classes, shares, attributes."""

import numpy as np
import pytest

from tiltmeter import GroupedData
from tiltmeter_lab.data.grouping import (
    by_attributes,
    by_classes,
    mixed,
    named_classes,
    set_aside,
)
from tiltmeter_lab.data.images import Images

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


@pytest.mark.parametrize("share", [0.5, 0.75, 0.9, 0.05])
def test_shares_are_met_with_as_many_points_as_there_are(share):
    data = mixed(PAIR, {"a": share, "b": 1 - share}, seed=1)
    assert data.sizes["a"] / len(data) == pytest.approx(share, abs=0.5 / len(data) + 1e-9)
    assert data.sizes["a"] == 600 or data.sizes["b"] == 200
    assert len(np.unique(data.x)) == len(data)
    for group in "ab":
        assert set(data.x[data.of_group(group), 0]) <= set(PAIR.x[PAIR.of_group(group), 0])


def test_attributes():
    target, attribute = np.arange(200) % 2 == 0, np.arange(200) % 4 == 0
    data = by_attributes(X[:200], target, attribute, "Young")
    assert data.groups == ("Young", "no Young")
    assert data.label_rates == {"Young": {0: 0.0, 1: 1.0}, "no Young": {0: 2 / 3, 1: 1 / 3}}


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: by_classes(X, Y, {"a": ([1], [2]), "b": ([2], [3])}), ValueError, "Every class should be used once. Found class 2 twice."),
        (lambda: by_classes(X, Y, {"a": ([1],)}), ValueError, "Each group should have classes labelled +1 and classes labelled -1."),
        (lambda: by_classes(X, Y[1:], {"a": ([1], [2])}), ValueError, f"Lengths should agree. Found {len(X)} in x, {len(X) - 1} in y."),
        (lambda: by_classes(X, Y, {"a": (1, 2)}), ValueError, "Each group should have classes labelled +1 and classes labelled -1."),
        (lambda: by_classes(X, Y, {"a": (["cat"], [2])}), TypeError, "A class should be a whole number (see `named_classes`). Found 'cat'."),
        (lambda: by_classes(X, Y, {"a": ([77], [2])}), ValueError, "Every class should have points. Found none of class 77."),
        (lambda: by_attributes(X, Y % 2, 2 * (Y % 2) - 1), ValueError, "`attribute` should be yes or no: booleans, or 0 and 1. Found -1."),
        (lambda: mixed(PAIR, {"a": 0.5}), KeyError, "`shares` should be given for 'a', 'b'. Found {'a': 0.5}."),
        (lambda: mixed(PAIR, {"a": 0.5, "b": 0.6}), ValueError, "add up to 1. Found {'a': 0.5, 'b': 0.6}."),
        (lambda: mixed(PAIR, {"a": 1.0, "b": 0.0}), ValueError, "`shares` should lie strictly between 0 and 1"),
        (lambda: set_aside(PAIR, 200, RNG), ValueError, "`held_out` should leave points of every group. Found 200 of 200 in 'b'."),
    ],
)  # fmt: skip
def test_sentences(make, kind, sentence):
    with pytest.raises(kind) as error:
        make()
    assert sentence in str(error.value.args[0])
