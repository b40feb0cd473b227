"""Digits with some wrong labels."""

import numpy as np
import pytest

from tiltmeter.data.public.digits import plain_digits


def test_wrong_labels_are_wrong_and_the_rest_right():
    clean, _ = plain_digits(500, 0.0, seed=3)
    noisy, _ = plain_digits(500, 0.3, seed=3)
    assert np.array_equal(clean.x, noisy.x)
    wrong = noisy.of_group("wrong")
    assert len(wrong) == 150
    assert (clean.y[wrong] != noisy.y[wrong]).all()
    right = noisy.of_group("right")
    assert (clean.y[right] == noisy.y[right]).all()
    # Nine wrong labels, equally likely: no shift by 1 to 9 is missing.
    assert set((noisy.y[wrong] - clean.y[wrong]) % 10) == set(range(1, 10))


def test_what_is_looked_at_does_not_depend_on_what_is_trained_on():
    evaluations = [plain_digits(points, noise, seed=1)[1] for points, noise in ((900, 0.0), (200, 0.2))]
    assert np.array_equal(evaluations[0].x, evaluations[1].x)
    train = plain_digits(900, seed=1)[0]
    seen = {row.tobytes() for row in train.x}
    shared = sum(row.tobytes() in seen for row in evaluations[0].x)
    assert shared <= 2  # the data set itself may repeat an image


def test_impossible_digits_are_refused():
    with pytest.raises(ValueError, match="`points` should lie between 1 and 900"):
        plain_digits(1000)
    with pytest.raises(ValueError, match="`noise` should be a share"):
        plain_digits(noise=1.0)
