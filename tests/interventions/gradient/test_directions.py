"""Interventions of gradients by themselves: which groups a step harms."""

from itertools import product

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.interventions.group_intervention import Seen, gram_pulls

I = tm.interventions


def seen(shares, losses, gram=None, sizes=None, groups=("+", "-"), time=0.0):
    return Seen(time, groups[: len(shares)], np.asarray(shares, float), np.asarray(losses, float), sizes, gram)


def shortest_above(gram, bound):
    """The w >= bound with the least w' gram w: the set of coordinates at their bound whose multipliers are positive."""
    for free in product([False, True], repeat=len(bound)):
        free = np.array(free)
        w = bound.copy()
        if free.any():
            w[free] = -np.linalg.solve(gram[np.ix_(free, free)], gram[np.ix_(free, ~free)] @ bound[~free])
        if (w >= bound - 1e-12).all() and ((gram @ w)[~free] >= -1e-12).all():
            return w
    raise AssertionError("a convex programme has a solution")


class TestGradients:
    def test_no_group_gets_worse_under_upgrad(self):
        rng = np.random.default_rng(0)
        for _ in range(200):
            J = rng.normal(size=(4, 6))
            gram = J @ J.T
            w = I.UPGrad().pull(np.zeros(4), seen(np.full(4, 0.25), np.zeros(4), gram, groups="abcd"))
            assert (gram @ w >= -1e-3 * np.trace(gram)).all()

    def test_upgrad_projects_every_gradient(self):
        """Against the quadratic programme by trial of every set of coordinates that may lie at their bound."""
        rng = np.random.default_rng(3)
        for _ in range(50):
            J = rng.normal(size=(4, 6))
            gram = J @ J.T / np.trace(J @ J.T) + 1e-4 * np.eye(4)
            expected = np.mean([shortest_above(gram, bound) for bound in np.eye(4)], axis=0)
            found = I.UPGrad().pull(np.zeros(4), seen(np.full(4, 0.25), np.zeros(4), J @ J.T, groups="abcd"))
            np.testing.assert_allclose(found, expected, atol=1e-12)

    def test_normalised_descent_lets_both_losses_fall_and_plain_descent_does_not(self):
        rng = np.random.default_rng(0)
        law, shares, harmed, plain = I.NormalisedGradient(), np.array([0.95, 0.05]), 0, 0
        for _ in range(200):
            centres, theta = rng.normal(size=(2, 3)), rng.normal(size=3)
            J = theta - centres
            P = law.pull(np.zeros(2), seen(shares, np.zeros(2), J @ J.T))
            harmed += ((J @ (P @ J)) < -1e-12).any()
            plain += ((J @ (shares @ J)) < 0).any()
        assert harmed == 0
        assert plain > 20

    def test_four_groups_have_no_such_guarantee(self):
        """Independent gradients of five weights conflict in 73.3 of 200 draws on average, with a scatter of 6.8."""
        rng = np.random.default_rng(0)
        harmed = 0
        for _ in range(200):
            J = rng.normal(size=(4, 5))
            P = I.NormalisedGradient().pull(np.zeros(4), seen(np.full(4, 0.25), np.zeros(4), J @ J.T, groups="abcd"))
            harmed += ((J @ (P @ J)) < 0).any()
        assert abs(harmed - 73.3) <= 3 * 6.8

    def test_absent_groups_waste_no_share(self):
        gram = np.diag([1.0, 0.0, 2.0])[None]
        now = Seen(0.0, ("a", "b", "c"), np.full((1, 3), 1 / 3), np.zeros((1, 3)), gram=gram)
        found = gram_pulls(I.UPGrad(), np.zeros((1, 3)), now, np.array([[True, False, True]]))
        np.testing.assert_allclose(found, [[0.5, 0.0, 0.5]])

    def test_a_law_of_gradients_needs_gradients(self):
        with pytest.raises(ValueError, match="needs their Gram matrix"):
            I.UPGrad().pull(np.zeros(2), seen([0.5, 0.5], [0.1, 0.1]))
