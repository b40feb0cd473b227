"""The proximal step: it solves its own equation, for smooth and for kinked losses, at any strength."""

from dataclasses import dataclass

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory.dynamics.averages import corners, proximal

SCORES = np.linspace(-40.0, 40.0, 801)


@dataclass(frozen=True)
class Absolute(tm.losses.Loss):
    """|score - y| : a kink at the label, with slopes on both sides."""

    definition = "absolute error"
    kinks = (1.0,)

    def value(self, score, y):
        return np.abs(score - y)

    def gradient(self, score, y):
        return np.sign(score - y)

    def curvature(self, score, y):
        return np.zeros(np.broadcast(score, y).shape)


@dataclass(frozen=True)
class TwoKinks(tm.losses.Loss):
    """max(0, 1 - margin) + max(0, -margin)."""

    definition = "two hinges"
    kinks = (0.0, 1.0)

    def value(self, score, y):
        return np.maximum(0, 1 - y * score) + np.maximum(0, -y * score)

    def gradient(self, score, y):
        return -1.0 * y * ((y * score < 1).astype(float) + (y * score < 0))

    def curvature(self, score, y):
        return np.zeros(np.broadcast(score, y).shape)


@pytest.mark.parametrize("loss", [tm.Square(), tm.Logistic(), tm.losses.Hinge(), Absolute(), TwoKinks()])
@pytest.mark.parametrize("strength", [0.0, 1e-6, 0.3, 5.0, 300.0, 1e6])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_it_is_the_minimiser(loss, strength, y):
    u = proximal(loss, SCORES, y, strength)

    def objective(at):
        return 0.5 * (at - SCORES) ** 2 + strength * loss.value(at, y)

    best = objective(u)
    slack = 1e-9 * (1.0 + strength)
    for move in (1e-4, 1e-2, 1.0):
        assert (best <= objective(u + move) + slack).all()
        assert (best <= objective(u - move) + slack).all()
    smooth = np.all([u != kink * y for kink in loss.kinks], axis=0) if loss.kinks else np.full(u.shape, True)
    miss = u - SCORES + strength * loss.gradient(u, y)
    assert np.abs(miss[smooth]).max(initial=0.0) < 1e-10 * (1.0 + strength)


def test_square_has_a_closed_form():
    np.testing.assert_allclose(proximal(tm.Square(), SCORES, 1.0, 0.7), (SCORES + 0.7) / 1.7, atol=1e-13)


def test_hinge_has_a_closed_form():
    s = 0.8
    expected = np.where(SCORES >= 1, SCORES, np.where(1 - s >= SCORES, SCORES + s, 1.0))
    np.testing.assert_allclose(proximal(tm.losses.Hinge(), SCORES, 1.0, s), expected, atol=1e-12)


def test_corners_of_the_hinge():
    np.testing.assert_allclose(
        corners(tm.losses.Hinge(), np.array([1.0, -1.0]), np.array([0.5, 2.0])), [[0.5, 1.0], [-1.0, 1.0]]
    )
    assert corners(tm.Logistic(), np.array([1.0]), np.array([0.5])) is None
