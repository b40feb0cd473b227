"""Laws of gradients by themselves: which groups a step harms."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.interventions.group_law import Seen
from tiltmeter.interventions.pulls import gram_pulls

I = tm.interventions


def seen(shares, losses, gram=None, sizes=None, groups=("+", "-"), time=0.0):
    return Seen(time, groups[: len(shares)], np.asarray(shares, float), np.asarray(losses, float), sizes, gram)


class TestGradients:
    def test_no_group_gets_worse_under_upgrad(self):
        rng = np.random.default_rng(0)
        for _ in range(200):
            J = rng.normal(size=(4, 6))
            gram = J @ J.T
            w = I.UPGrad().pull(np.zeros(4), seen(np.full(4, 0.25), np.zeros(4), gram, groups="abcd"))
            assert (gram @ w >= -1e-3 * np.trace(gram)).all()

    def test_upgrad_projects_every_gradient(self):
        """Against the projection by quadratic programming, one gradient at a time."""
        from scipy.optimize import minimize

        rng = np.random.default_rng(3)
        for _ in range(5):
            J = rng.normal(size=(3, 5))
            gram = J @ J.T
            gram = gram / np.trace(gram) + 1e-4 * np.eye(3)
            rows = [
                minimize(lambda w, gram=gram: w @ gram @ w, e, jac=lambda w, gram=gram: 2 * gram @ w, bounds=[(b, None) for b in e],
                         method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12}).x
                for e in np.eye(3)
            ]  # fmt: skip
            found = I.UPGrad().pull(np.zeros(3), seen(np.full(3, 1 / 3), np.zeros(3), J @ J.T, groups="abc"))
            np.testing.assert_allclose(found, np.mean(rows, axis=0), atol=1e-5)

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
        rng = np.random.default_rng(0)
        harmed = 0
        for _ in range(200):
            J = rng.normal(size=3) - rng.normal(size=(4, 3))
            P = I.NormalisedGradient().pull(np.zeros(4), seen(np.full(4, 0.25), np.zeros(4), J @ J.T, groups="abcd"))
            harmed += ((J @ (P @ J)) < 0).any()
        assert harmed >= 10

    def test_absent_groups_waste_no_share(self):
        gram = np.diag([1.0, 0.0, 2.0])[None]
        now = Seen(0.0, ("a", "b", "c"), np.full((1, 3), 1 / 3), np.zeros((1, 3)), gram=gram)
        found = gram_pulls(I.UPGrad(), np.zeros((1, 3)), now, np.array([[True, False, True]]))
        np.testing.assert_allclose(found, [[0.5, 0.0, 0.5]])

    def test_a_law_of_gradients_needs_gradients(self):
        with pytest.raises(ValueError, match="needs their Gram matrix"):
            I.UPGrad().pull(np.zeros(2), seen([0.5, 0.5], [0.1, 0.1]))
