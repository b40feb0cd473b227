"""Rectangles and the Gaussians with the same two moments."""

import numpy as np
import pytest

from tiltmeter_lab.data.rectangles import rectangles


@pytest.mark.parametrize("angle", [0.0, 30.0])
def test_both_kinds_have_the_same_two_moments_and_other_shapes(angle):
    n = 40_000
    flat, round_ = (rectangles(n, angle=angle, gaussian=g, seed=5) for g in (False, True))
    for label in (-1, 1):
        a, b = flat.x[flat.y == label], round_.x[round_.y == label]
        assert np.allclose(a.mean(0), label, atol=4 * np.sqrt(3 / n * 2))  # variance 36/12, n/2 points
        assert np.allclose(np.cov(a.T), np.cov(b.T), atol=4 * 3 * np.sqrt(2 / (n / 2)))
    turn = np.deg2rad(angle)
    along = (flat.x - flat.y[:, None]) @ [np.cos(turn), np.sin(turn)]
    assert np.abs(along).max() <= 3.0 + 1e-4  # half the longer side
    assert np.abs((round_.x - round_.y[:, None]) @ [np.cos(turn), np.sin(turn)]).max() > 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": 1}, "`points` should be at least 2. Found points = 1."),
        ({"points": 9, "sides": (0.0, 1.0)}, "`sides` should be positive."),
        ({"points": 9, "extra": -1}, "`extra` should not be negative. Found extra = -1."),
    ],
)
def test_bad_input_gets_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        rectangles(**arguments)
