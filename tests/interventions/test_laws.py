"""Laws of groups as values: JSON, bad input, and the exact tests of each law by itself."""

import json
from dataclasses import dataclass, fields

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.interventions import KINDS, LAWS
from tiltmeter.interventions.capped_shares import capped_shares
from tiltmeter.interventions.group_law import GroupLaw, Seen
from tiltmeter.interventions.pulls import changed, gram_pulls, pulls
from tiltmeter.interventions.stored import intervention_from_json, law_named

I = tm.interventions
EXAMPLES = {
    "Balanced": I.Balanced(0.5, by="draws"),
    "PullSchedule": I.PullSchedule({"+": tm.schedules.Steps((0.0, 3.0), (0.3, 0.6)), "-": 0.7}, by="draws"),
    "GroupDRO": I.GroupDRO(5.0, 10.0, adjust={"+": 0.1, "-": 0.2}, floor=0.05, begin="shares", memory=20, every=10),
    "DualAscent": I.DualAscent({"+": float("inf"), "-": 0.3}, 2.0),
    "VREx": I.VREx(4.0, positive=True, by="draws"),
    "Tilted": I.Tilted(-1.0),
    "ChiSquareDRO": I.ChiSquareDRO(2.0),
    "GroupCVaR": I.GroupCVaR(0.4, 50.0),
    "NormalisedGradient": I.NormalisedGradient(0.5),
    "UPGrad": I.UPGrad(),
    "GroupClipping": I.GroupClipping(0.5),
    "JacobianDescent": I.JacobianDescent("MGDA"),
}


def seen(shares, losses, gram=None, sizes=None, groups=("+", "-"), time=0.0):
    return Seen(time, groups[: len(shares)], np.asarray(shares, float), np.asarray(losses, float), sizes, gram)


def test_every_law_of_groups_has_an_example_here():
    assert set(EXAMPLES) == {name for name in LAWS if issubclass(law_named(name), GroupLaw)}


@pytest.mark.parametrize("law", EXAMPLES.values(), ids=EXAMPLES)
class TestEveryLaw:
    def test_json_both_ways(self, law):
        assert intervention_from_json(json.loads(json.dumps(law.to_json()))) == law
        sgd = tm.SGD(lr=0.1, interventions=(law,))
        assert tm.SGD.from_json(json.loads(json.dumps(sgd.to_json()))) == sgd
        assert hash(sgd) == hash(tm.SGD.from_json(sgd.to_json()))
        assert sgd != tm.SGD(lr=0.1)

    def test_says_what_it_needs_costs_and_cannot(self, law):
        assert law.needs == "training groups"
        assert law.cannot
        assert law.cost(groups=3) == (4.0 if law.sees_gram else 1.0)
        assert law.routes[0] == ("simulate" if law.sees_gram else "predict")

    def test_pulls_every_row_by_itself(self, law):
        shares, losses = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]), np.array([[0.4, 0.5], [0.5, 0.1], [0.3, 0.3]])
        gram = np.array([[[2.0, -0.5], [-0.5, 1.0]], [[1.0, 0.2], [0.2, 3.0]], [[1.0, 0.0], [0.0, 1.0]]])
        together = pulls(
            law, law.start(shares), seen(shares, losses, gram).__class__(0.0, ("+", "-"), shares, losses, None, gram)
        )
        for i in range(3):
            alone = pulls(law, law.start(shares[i]), seen(shares[i], losses[i], gram[i]))
            np.testing.assert_array_equal(together[i], alone)

    def test_is_frozen(self, law):
        with pytest.raises(AttributeError):
            law.memory = 1.0


class TestBadInput:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: I.GroupDRO(by="luck"), '`by` should be "weights" or "draws". Found by = \'luck\'.'),
            (lambda: I.GroupDRO(memory=-1), "`memory` should be a number of points, at least 0"),
            (lambda: I.GroupDRO(every=0), "`every` should be a whole number of steps, at least 1"),
            (lambda: I.GroupDRO(rate=-1.0), "`rate` should be at least 0. Found rate = -1."),
            (lambda: I.GroupDRO(floor=1.0), r"`floor` should lie in \[0, 1\). Found floor = 1.0."),
            (lambda: I.GroupDRO(begin="now"), '`begin` should be "equal" or "shares"'),
            (lambda: I.DualAscent(0.0), "`bound` should be above 0. Found bound = 0."),
            (lambda: I.DualAscent({"+": -0.1}), r"`bound\['\+'\]` should be above 0"),
            (lambda: I.VREx(by="draws"), "A group cannot be drawn a negative number of times"),
            (lambda: I.VREx(-1.0), "`beta` should be at least 0"),
            (lambda: I.Tilted(np.inf), "`strength` should be a number"),
            (lambda: I.Balanced(np.nan), "`power` should be a number"),
            (lambda: I.ChiSquareDRO(0.0), "`strength` should be above 0"),
            (lambda: I.GroupCVaR(0.0), r"`alpha` should lie in \(0, 1\]"),
            (lambda: I.UPGrad(by="draws"), "UPGrad weighs gradients of a batch that is drawn"),
            (lambda: I.PullSchedule({"+": -1.0}), r"`pulls\['\+'\]` should be a schedule or a number of at least 0"),
        ],
    )
    def test_values(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()

    @pytest.mark.parametrize("make", [lambda: I.DualAscent("low"), lambda: I.PullSchedule(0.5)])
    def test_types(self, make):
        with pytest.raises(TypeError, match="should"):
            make()

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (I.GroupDRO(), r"write interventions=\(GroupDRO\(...\),\)"),
            ((I.GroupDRO,), "Found the class GroupDRO: call it"),
            (("GroupDRO",), "should hold interventions, as GroupDRO"),
            ("GroupDRO", "should be a tuple of interventions"),
            (3, "should be a tuple of interventions. Found int"),
        ],
    )
    def test_interventions_of_an_sgd(self, given, message):
        with pytest.raises(TypeError, match=message):
            tm.SGD(lr=0.1, interventions=given)

    def test_two_laws_of_groups(self):
        with pytest.raises(ValueError, match=r"at most one GroupLaw. Found GroupDRO, Tilted"):
            tm.SGD(lr=0.1, interventions=[I.GroupDRO(), I.Tilted()])

    def test_a_group_that_the_law_does_not_name(self):
        problem = tm.teacher_mixture(rho=0.7)
        for law, name in ((I.DualAscent({"+": 0.3}), "bound"), (I.GroupDRO(1.0, adjust={"+": 0.3}), "adjust")):
            with pytest.raises(
                KeyError, match=rf"`{name}` of {type(law).__name__} should name every group; '-' is missing"
            ):
                tm.predict(problem, tm.SGD(lr=0.1, interventions=(law,)), [1.0])
        with pytest.raises(KeyError, match=r"names the unknown group 'x'. There are: '\+', '-'"):
            tm.predict(problem, tm.SGD(lr=0.1, interventions=(I.DualAscent({"x": 0.3, "+": 1, "-": 1}),)), [1.0])

    def test_an_adjustment_needs_sizes(self):
        sgd = tm.SGD(lr=0.1, interventions=(I.GroupDRO(1.0, adjust=2.0),))
        with pytest.raises(ValueError, match="fresh data have no such number: give the adjustment by group"):
            tm.predict(tm.teacher_mixture(rho=0.7), sgd, [1.0])

    def test_a_floor_for_too_many_groups(self):
        with pytest.raises(ValueError, match="`floor` should lie below 1 / 2 for 2 groups"):
            tm.predict(tm.teacher_mixture(), tm.SGD(lr=0.1, interventions=(I.GroupDRO(1.0, floor=0.5),)), [1.0])

    def test_a_group_that_is_never_drawn_cannot_be_weighed(self):
        sgd = tm.SGD(lr=0.1, proportions={"+": 1.0, "-": 0.0}, interventions=(I.Balanced(),))
        with pytest.raises(ValueError, match="Group '-' is never drawn, so Balanced cannot weigh it"):
            tm.predict(tm.teacher_mixture(), sgd, [1.0])

    def test_names_and_files(self):
        with pytest.raises(KeyError, match=r"There is no law 'GrupDRO'. Did you mean GroupDRO"):
            law_named("GrupDRO")
        with pytest.raises(KeyError, match="GroupDRO has no field 'speed'"):
            intervention_from_json({"law": "GroupDRO", "speed": 1})
        with pytest.raises(KeyError, match="should have a key `law`"):
            intervention_from_json({"rate": 1})

    def test_a_pull_of_another_shape(self):
        @dataclass(frozen=True)
        class Odd(GroupLaw):
            def pull(self, z, seen):  # noqa: ARG002
                return np.ones(3)

        with pytest.raises(ValueError, match="`pull` of Odd should give one number per group"):
            tm.predict(tm.teacher_mixture(), tm.SGD(lr=0.1, interventions=(Odd(),)), [1.0])


def test_an_own_law_is_stored_by_name_and_not_rebuilt():
    @dataclass(frozen=True)
    class Tilted(GroupLaw):  # the name of one of ours
        def pull(self, z, seen):  # noqa: ARG002
            return seen.shares

    stored = tm.SGD(lr=0.1, interventions=(Tilted(),)).to_json()
    assert stored["interventions"][0]["law"].endswith("Tilted")
    assert stored["interventions"][0]["law"] != "Tilted"
    with pytest.raises(ValueError, match="is not part of tiltmeter and cannot be rebuilt"):
        tm.SGD.from_json(stored)


def test_kinds_are_abstract_and_say_what_they_change():
    for name in KINDS:
        kind = getattr(I, name)
        if name.endswith("Law"):
            with pytest.raises(TypeError, match="abstract"):
                kind()
            assert kind.changes
            assert kind.needs in ("training groups", "held-out groups", "no groups")
    assert [field.name for field in fields(I.DataLaw)] == ["scout"]


def descend(law, losses, slopes, steps, lr, clock=1.0):
    """Gradient descent on the sum of P_g loss_g of one number w, the law one step behind."""
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
        from tiltmeter.simulation.compiled_memory import remember

        known = np.array([[0.4, 0.7]])
        remember(known, np.array([[1.0, 0.0]]), np.array([[2.0, 0.0]]), 0.0)
        np.testing.assert_array_equal(known, [[0.5, 0.7]])


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
