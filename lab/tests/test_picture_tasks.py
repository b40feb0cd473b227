"""Tasks of pictures: rotation, label rates, random tasks, and every refusal."""

import numpy as np
import pytest

from tiltmeter import GroupedData
from tiltmeter_lab.shared.picture_tasks import imbalanced, random_task, rotated

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2000, 6, 6)), np.arange(2000) % 10
PAIR = GroupedData(np.arange(800.0)[:, None], np.arange(800) % 2, np.where(np.arange(800) % 8 < 2, "b", "a"))


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


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_label_rates_are_met_in_the_named_group_alone(rate):
    data = imbalanced(PAIR, {"a": rate}, seed=1)
    assert data.label_rates["a"][1] == pytest.approx(rate, abs=0.005)
    assert data.sizes["b"] == PAIR.sizes["b"]
    assert data.label_rates["b"] == PAIR.label_rates["b"]


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
        (lambda: rotated(X, float("nan")), ValueError, "`degrees` should be a finite number. Found degrees = nan."),
        (lambda: imbalanced(PAIR, {"a": 1.0}), ValueError, "`rates` should lie strictly between 0 and 1. Found 1.0 for group 'a'."),
        (lambda: imbalanced(PAIR, {"c": 0.5}), KeyError, "No group 'c'."),
        (lambda: imbalanced(GroupedData(X, Y, "label"), {0: 0.5}), ValueError, "Two labels are needed. Found 10."),
        (lambda: random_task(X, Y, RNG, 1.0), ValueError, "`rho` should lie strictly between 0 and 1. Found rho = 1.0."),
        (lambda: random_task(X, Y % 7, RNG, 0.5), ValueError, "Two groups of four classes need eight. Found 7."),
    ],
)  # fmt: skip
def test_sentences(make, kind, sentence):
    with pytest.raises(kind) as error:
        make()
    assert sentence in str(error.value.args[0])
