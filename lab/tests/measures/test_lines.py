"""Lines between inputs: whom they join, and how far they go."""

import numpy as np
import pytest

from tiltmeter_lab.measures.line_spectrum import line_ends

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(50, 4)), RNG.integers(0, 3, 50)


def places(ends):
    return np.array([int(np.flatnonzero((end == X).all(1))[0]) for end in ends])


@pytest.mark.parametrize("path", ["within", "between"])
def test_partners_are_as_asked_for(path):
    start, end = (places(side) for side in line_ends(X, Y, path, 2000, None, 0))
    assert (start != end).all()
    assert ((Y[start] == Y[end]) == (path == "within")).all()


@pytest.mark.parametrize("path", ["within", "between"])
def test_every_partner_is_equally_likely(path):
    start, end = (places(side) for side in line_ends(X, Y, path, 60_000, None, 0))
    counts = np.bincount(end[start == 0], minlength=50)
    able = (Y[0] == Y) == (path == "within")
    able[0] = False
    assert not counts[~able].any()
    expected = counts.sum() / able.sum()
    # Five standard errors of a count.
    assert np.abs(counts[able] - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize("path", ["within", "between", "random"])
def test_lines_are_as_long_as_asked_for(path):
    start, end = line_ends(X, Y, path, 20, 0.7, 0)
    assert np.linalg.norm(end - start, axis=1) == pytest.approx(0.7)
    assert len(places(start)) == 20


def test_random_lines_are_as_long_as_points_are_apart():
    start, end = line_ends(X, Y, "random", 500, None, 0)
    far = np.linalg.norm(end - start, axis=1)
    assert far == pytest.approx(far[0])
    every = np.linalg.norm(X[:, None] - X[None], axis=2)[~np.eye(50, dtype=bool)]
    assert far[0] == pytest.approx(every.mean(), abs=5 * every.std() / np.sqrt(500))


def test_points_without_partners_are_refused():
    with pytest.raises(ValueError, match="two points of one class"):
        line_ends(X[:1], Y[:1], "within", 4, None, 0)
    with pytest.raises(ValueError, match="points of two classes"):
        line_ends(X[:3], np.zeros(3), "between", 4, None, 0)
    with pytest.raises(ValueError, match="`length` should be given"):
        line_ends(np.ones((5, 2)), np.zeros(5), "random", 4, None, 0)
    start, end = line_ends(np.ones((5, 2)), np.zeros(5), "within", 4, 1.0, 0)
    assert np.array_equal(start, end)
