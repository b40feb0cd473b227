"""Interventions of groups by themselves: each against a formula or a second route."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.interventions.group_intervention import Seen, changed, pulls
from tiltmeter.interventions.shared.shares import capped_shares

I = tm.interventions


def seen(shares, losses, gram=None, sizes=None, groups=("+", "-"), time=0.0):
    return Seen(time, groups[: len(shares)], np.asarray(shares, float), np.asarray(losses, float), sizes, gram)


def descend(law, losses, slopes, steps, lr, clock=1.0):
    """Gradient descent on the sum of P_g loss_g of one number w, the intervention one step behind."""
    shares = np.array([0.9, 0.1])
    w, z = 0.0, law.start(shares)
    for _ in range(steps):
        now = seen(shares, losses(w))
        w -= lr * float(pulls(law, z, now) @ slopes(w))
        z = changed(law, z, seen(shares, losses(w)), clock)
    return w, z


def parabolas(w):
    return np.array([0.5 * w**2, 0.5 * (w - 1.0) ** 2])


def slopes(w):
    return np.array([w, w - 1.0])


class TestExact:
    def test_group_dro_ends_in_the_middle_whatever_the_shares(self):
        w, _ = descend(I.GroupDRO(0.1), parabolas, slopes, 6000, 0.05)
        assert w == pytest.approx(0.5, abs=1e-6)

    def test_dual_ascent_finds_the_constrained_minimum_and_its_multiplier(self):
        # .9 w^2/2 + .1 (w-1)^2/2 under (w-1)^2/2 <= .08: w = .6, and z from the stationary condition.
        w, z = descend(I.DualAscent({"+": np.inf, "-": 0.08}, 0.1), parabolas, slopes, 6000, 0.05)
        assert w == pytest.approx(0.6, abs=1e-6)
        assert z == pytest.approx([0.0, 1.25], abs=1e-5)

    def test_an_infeasible_bound_ends_at_the_smallest_worst_loss(self):
        w, z = descend(I.DualAscent(0.01, 0.1), parabolas, slopes, 6000, 0.05)
        assert w == pytest.approx(0.5, abs=1e-3)
        assert np.isfinite(z).all()

    def test_integer_weights_are_duplicated_data(self):
        rng = np.random.default_rng(0)
        x, y, group = rng.normal(size=(12, 4)), rng.normal(size=12), np.repeat([0, 1], [9, 3])
        shares = np.array([0.75, 0.25])
        P = pulls(I.Balanced(), np.zeros(2), seen(shares, [0.5, 0.5]))
        weights = (P / shares)[group]
        copies = np.repeat(np.arange(12), np.where(group == 1, 3, 1))
        w, v = np.zeros(4), np.zeros(4)
        for _ in range(200):
            w -= 0.1 * (weights * (x @ w - y)) @ x / 12
            v -= 0.1 * (x[copies] @ v - y[copies]) @ x[copies] / len(copies)
        np.testing.assert_allclose(w, v, atol=1e-12)

    def test_vrex_is_the_gradient_of_its_penalty(self):
        losses, beta, h = np.array([0.3, 0.5, 0.9]), 7.0, 1e-6

        def penalised(L):
            return L.mean() + beta * L.var()

        numeric = [(penalised(losses + h * e) - penalised(losses - h * e)) / (2 * h) for e in np.eye(3)]
        now = Seen(0.0, ("a", "b", "c"), np.full(3, 1 / 3), losses)
        np.testing.assert_allclose(I.VREx(beta).pull(np.zeros(3), now), numeric, atol=1e-8)

    def test_vrex_ends_where_its_penalty_is_smallest(self):
        """The path uses remembered losses; the end is that of the penalty itself."""
        from scipy.optimize import minimize_scalar

        w, _ = descend(I.VREx(3.0), lambda w: parabolas(w) * [1.0, 2.0], lambda w: slopes(w) * [1.0, 2.0], 4000, 0.02)

        def penalised(w):
            return (parabolas(w) * [1.0, 2.0]).mean() + 3.0 * (parabolas(w) * [1.0, 2.0]).var()

        assert w == pytest.approx(minimize_scalar(penalised, (0.0, 1.0), tol=1e-12).x, abs=1e-5)

    def test_vrex_may_pull_negatively_and_positive_does_not(self):
        now = seen([0.5, 0.5], [0.9, 0.1])
        assert I.VREx(10.0).pull(np.zeros(2), now).min() < 0.0
        assert I.VREx(10.0, positive=True).pull(np.zeros(2), now).min() == 0.0

    def test_the_proportional_term_alone_leaves_an_offset(self):
        w, _ = descend(I.GroupDRO(0.0, proportional=4.0), parabolas, slopes, 1000, 0.05)
        assert w == pytest.approx(0.5, abs=1e-9)  # equal groups: by symmetry none,
        uneven = lambda w: parabolas(w) + [0.2, 0.0]  # noqa: E731
        w, _ = descend(I.GroupDRO(0.0, proportional=4.0), uneven, slopes, 1000, 0.05)
        assert abs(np.diff(uneven(w))[0]) > 0.02
        w, _ = descend(I.GroupDRO(0.1, proportional=0.4), uneven, slopes, 5000, 0.05)
        assert abs(np.diff(uneven(w))[0]) < 1e-4  # the integral part closes it

    def test_tilted_is_the_gradient_of_its_risk(self):
        losses, shares, tau, h = np.array([0.3, 0.9]), np.array([0.7, 0.3]), 2.5, 1e-6

        def risk(L):
            return np.log((shares * np.exp(tau * L)).sum()) / tau

        numeric = [(risk(losses + h * e) - risk(losses - h * e)) / (2 * h) for e in np.eye(2)]
        np.testing.assert_allclose(I.Tilted(tau).pull(np.zeros(2), seen(shares, losses)), numeric, atol=1e-8)

    @pytest.mark.parametrize("cap", [np.inf, 2.0, 1.2])
    def test_capped_shares_solve_their_programme(self, cap):
        from scipy.optimize import minimize

        rng = np.random.default_rng(1)
        for _ in range(20):
            p, L, s = rng.dirichlet(np.ones(4)), rng.normal(size=4), 10 ** rng.uniform(-1, 1)
            found = capped_shares(p, L, s, cap)
            assert found.sum() == pytest.approx(1.0)
            assert (found >= -1e-12).all()
            assert (found <= cap * p + 1e-9).all()
            cost = lambda P, p=p, L=L, s=s: -(P @ L) + ((P - p) ** 2 / p).sum() / (2 * s)  # noqa: E731
            best = minimize(
                cost, p, bounds=[(0, min(1, cap * x)) for x in p], constraints={"type": "eq", "fun": lambda P: P.sum() - 1},
                method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
            )  # fmt: skip
            assert cost(found) <= best.fun + 1e-7

    def test_cvar_of_a_large_strength_fills_up_from_the_worst(self):
        now = Seen(0.0, ("a", "b", "c"), np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.5, 0.9]))
        np.testing.assert_allclose(I.GroupCVaR(0.4, 1e6).pull(np.zeros(3), now), [0.0, 0.5, 0.5], atol=1e-5)

    def test_the_adjustment_counts_even_where_one_group_has_none(self):
        # A known slip of published code: one entry of 0 switched the adjustment of all groups off.
        law = I.GroupDRO(1.0, adjust={"+": 0.0, "-": 0.5})
        np.testing.assert_allclose(law.change(np.zeros(2), seen([0.5, 0.5], [0.2, 0.2])), [0.2, 0.7])

    def test_the_adjustment_leaves_the_losses_that_are_shown_alone(self):
        losses = np.array([0.2, 0.2])
        I.GroupDRO(1.0, adjust=1.0).change(np.zeros(2), seen([0.5, 0.5], losses, sizes=np.array([4, 100])))
        np.testing.assert_array_equal(losses, [0.2, 0.2])

    def test_a_group_that_is_absent_keeps_its_loss(self):
        from tiltmeter.theory.simulation.compiled_steered import remember

        known = np.array([[0.4, 0.7]])
        remember(known, np.array([[1.0, 0.0]]), np.array([[2.0, 0.0]]), 0.0)
        np.testing.assert_array_equal(known, [[0.5, 0.7]])
