"""Prior knowledge: pinned numbers, every statement on random problems, refusals, and what must not happen."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter_lab.theory.centred_pair import centred_pair
from tiltmeter_lab.theory.one_after_the_other import better_order, forgetting, one_after_the_other
from tiltmeter_lab.theory.pretraining import critical_length, gap_coefficients, gap_parabola

#: Every statement on a few random problems in the fast suite, on 2,000 in the slow one.
MANY = pytest.mark.parametrize("problems", [60, pytest.param(2000, marks=pytest.mark.slow)])
CENTRED = tm.teacher_mixture(0.8, variance=(0.5, 1.5), overlap=0.5)
SIZE = {"d": 1000, "seeds": range(1000, 1300)}


def random_centred(rng, small=False):
    """A random centred problem and a stable learning rate."""
    rho, T = rng.uniform(0.1, 0.9), rng.uniform(-1.0, 1.0)
    D = np.exp(rng.uniform(np.log(0.2), np.log(4.0), 2))
    p = np.array([rho, 1 - rho])
    lr = 1e-4 if small else rng.uniform(0.01, 0.95) * 2 * (p @ D) / (p @ D**2)
    return tm.teacher_mixture(rho, variance=tuple(D), overlap=T), lr


def random_start(rng, T):
    """Overlaps of a random student, with a random part that knows neither teacher."""
    w = rng.normal(size=2) * rng.choice([0.3, 1.0, 2.0])
    teachers = np.array([[1.0, 0.0], [T, np.sqrt(1 - T**2)]])
    R = teachers @ w
    return tm.theory.starts.Overlaps(R={"+": R[0], "-": R[1]}, Q=float(w @ w + rng.exponential(0.5)))


def counted(gap):
    """Changes of sign of values that are not rounding."""
    sign = np.sign(np.where(np.abs(gap) > 1e-11, gap, 0.0))
    sign = sign[sign != 0]
    return int((sign[1:] != sign[:-1]).sum())


def gap_of(problem, sgd, times):
    loss = tm.predict(problem, sgd, times, curves=("loss",))["loss"].values
    return loss[:, 0] - loss[:, 1]


class TestPinnedNumbers:
    def test_critical_length(self):
        for lr, expected in ((1e-4, 0.055104), (0.1, 0.022788)):
            assert critical_length(CENTRED, tm.SGD(lr=lr)).length == pytest.approx(expected, abs=6e-7)
        assert critical_length(CENTRED, tm.SGD(lr=1e-9)).length == pytest.approx(0.055144, abs=6e-7)

    def test_critical_length_of_the_parabola(self):
        p = gap_parabola(CENTRED, tm.SGD(lr=1e-4))
        slow = p.linear
        # From zero the gap starts at 0, and irrelevant length adds (D+ - D-)/2 to the coefficient of x^2.
        assert p.end + p.linear + p.quadratic == pytest.approx(0.0, abs=1e-15)
        short = (slow - 2 * abs(p.end)) ** 2 / (2 * abs(p.end) * 1.0)
        assert short == pytest.approx(0.055144, abs=6e-7)

    def test_the_counts_on_both_sides_of_it(self):
        found = critical_length(CENTRED, tm.SGD(lr=0.1))
        times = np.geomspace(1e-2, 400.0, 400)
        for Q, count, at in ((0.0, 1, [5.643]), (0.015, 2, [1.356, 4.631]), (0.06, 0, [])):
            sgd = tm.SGD(lr=0.1, start=tm.theory.starts.Overlaps(Q=Q))
            crossings = tm.leaders(tm.predict(CENTRED, sgd, times), "loss")
            assert len(crossings.changes) == count == found.crossings(Q)
            np.testing.assert_allclose([c.time for c in crossings.changes], at, rtol=1e-3)

    def test_forgetting(self):
        equal = tm.teacher_mixture(0.5, variance=(1.0, 1.0), overlap=0.4)
        assert forgetting(equal, tm.SGD(lr=1e-9), "+", "-").critical_overlap == pytest.approx(0.5)
        wide = tm.teacher_mixture(0.5, variance=(2.0, 0.5), overlap=1.0)
        found = forgetting(wide, tm.SGD(lr=1e-9), "+", "-")
        assert found.critical_overlap == pytest.approx(1.0, abs=1e-8)
        assert found.loss == pytest.approx(0.5, abs=1e-8)
        assert found.error == pytest.approx(0.0, abs=1e-4)


class TestSecondRoutes:
    def test_general_coefficients_are_those_of_the_short_formulas(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            problem, lr = random_centred(rng)
            sgd = tm.SGD(lr=lr, start=random_start(rng, float(problem.gram[2, 3])))
            pair = centred_pair(problem, sgd, "test")
            if abs(pair.q / pair.gamma - 1) < 1e-3:
                continue
            end, slow, fast, _ = gap_coefficients(pair)
            bound = tm.theory.crossing_bound(problem, sgd)
            found = {round(r / lr, 9): c for r, c in zip(bound.rates, bound.coefficients, strict=True)}
            scale = max(map(abs, found.values()))
            for rate, value in ((0.0, end), (pair.gamma, slow), (pair.q, fast)):
                assert found[round(rate / lr, 9)] == pytest.approx(value, abs=1e-10 * max(scale, 1))

    def test_parabola_is_the_limit_of_small_learning_rates(self):
        start = tm.theory.starts.Overlaps(R={"+": 0.5, "-": 0.1}, Q=0.9)
        times = np.linspace(0.0, 4.0, 20)
        exact = gap_of(CENTRED, tm.SGD(lr=1e-6, start=start), times / 1e-6)
        parabola = gap_parabola(CENTRED, tm.SGD(lr=0.1, start=start))
        np.testing.assert_allclose(parabola.gap(times), exact, atol=5e-6)
        assert len(parabola.crossings) == counted(exact)

    @pytest.mark.parametrize("order", [("+", "-"), ("-", "+")])
    def test_phases_in_closed_form_are_those_of_predict_with_a_schedule(self, order):
        durations = dict(zip(order, (7.0, 3.0), strict=True))
        start = tm.theory.starts.Overlaps(R={"+": 0.3, "-": -0.2}, Q=1.0)
        sgd = tm.SGD(lr=0.4, start=start)
        found = one_after_the_other(CENTRED, sgd, durations)
        turn = tm.SGD(lr=0.4, start=start, proportions=tm.schedules.in_turn(durations))
        end = tm.predict(CENTRED, turn, [7.0, 10.0])
        for name in ("loss", "error"):
            for group in "+-":
                exact = float(end[name].sel(time=10.0, group=group))
                assert getattr(found, name)[group] == pytest.approx(exact, abs=1e-9)
        assert found.risk == pytest.approx(float(end["risk"].sel(time=10.0)), abs=1e-9)

    def test_forgetting_is_the_end_of_a_long_phase(self):
        sgd = tm.SGD(lr=0.3)
        found = forgetting(CENTRED, sgd, "+", after="-")
        end = one_after_the_other(CENTRED, sgd, {"+": 5.0, "-": np.inf})
        assert (found.loss, found.error) == (pytest.approx(end.loss["+"]), pytest.approx(end.error["+"]))
        assert found.worse_than_untrained == (found.loss > 0.5)

    def test_only_the_loss_of_a_group_at_the_start_matters_for_that_group_alone(self):
        starts = [tm.theory.starts.Overlaps(R={"+": 0.5, "-": r}, Q=1.0) for r in (0.1, 0.4)]
        ends = [one_after_the_other(CENTRED, tm.SGD(lr=0.3, start=s), {"+": 2.0}) for s in starts]
        assert ends[0].loss["+"] == pytest.approx(ends[1].loss["+"], abs=1e-14)
        assert abs(ends[0].loss["-"] - ends[1].loss["-"]) > 0.05


class TestRandomProblems:
    TIMES = np.concatenate([[0.0], np.geomspace(1e-4, 60.0, 1500)])

    @MANY
    def test_irrelevant_pretraining(self, problems):
        rng = np.random.default_rng(4)
        critical = 0
        for _ in range(problems):
            problem, lr = random_centred(rng)
            found = critical_length(problem, tm.SGD(lr=lr))
            finite = np.isfinite(found.length)
            Q = found.length * rng.choice([0.3, 0.9, 1.1, 3.0]) if finite else rng.exponential(1.0)
            sgd = tm.SGD(lr=lr, start=tm.theory.starts.Overlaps(Q=float(Q)))
            assert counted(gap_of(problem, sgd, self.TIMES / lr)) == found.crossings(Q)
            critical += finite
        assert critical > problems / 40

    @MANY
    def test_the_better_order(self, problems):
        rng = np.random.default_rng(5)
        for _ in range(problems):
            problem, lr = random_centred(rng, small=True)
            found = better_order(problem, tm.SGD(lr=lr))
            p, D = problem.weight.values, problem.variance.values
            risk, worst = p * D, D
            if abs(risk[0] / risk[1] - 1) > 1e-2 and abs(float(problem.gram[2, 3])) < 0.999:
                assert found.last_for_risk == "+-"[risk.argmax()]
            if abs(D[0] / D[1] - 1) > 1e-2:
                assert found.last_for_worst == "+-"[worst.argmax()]

    def test_finite_phases_follow_the_rule_of_the_midpoint(self):
        """At small learning rates: + first is better iff Delta.((w + w')/2 - winf) < 0."""
        rng = np.random.default_rng(6)
        wrong = 0
        for _ in range(60):
            problem, lr = random_centred(rng, small=True)
            tau = dict(zip("+-", rng.uniform(0.2, 3.0, 2) / lr, strict=True))
            found = better_order(problem, tm.SGD(lr=lr), tau)
            p, D, T = problem.weight.values, problem.variance.values, float(problem.gram[2, 3])
            best = np.sqrt(2 / np.pi / D)[:, None] * np.array([[1.0, 0.0], [T, np.sqrt(1 - T**2)]])
            e = np.exp(-lr * D * np.array([tau["+"], tau["-"]]))
            first = best[1] + e[1] * (best[0] * (1 - e[0]) - best[1])
            back = best[0] + e[0] * (best[1] * (1 - e[1]) - best[0])
            rule = (best[1] - best[0]) @ ((first + back) / 2 - (p * D) @ best / (p @ D))
            if abs(rule) > 1e-3:
                wrong += (rule < 0) != (found.last_for_risk == "-")
        assert wrong == 0


class TestControls:
    def test_irrelevant_pretraining_cannot_matter_at_equal_variances(self):
        found = critical_length(tm.teacher_mixture(0.7, overlap=0.3), tm.SGD(lr=0.2))
        assert found.length == np.inf
        assert "no critical length" in str(found)

    def test_relevant_pretraining_of_the_same_length_does_not_remove_the_crossing(self):
        """Length alone does not do it: the same length along the disagreement of the groups leaves one crossing."""
        away = tm.theory.starts.Overlaps(R={"+": 0.0, "-": np.sqrt(0.06 * 0.75)}, Q=0.06)
        assert (
            len(
                tm.leaders(
                    tm.predict(CENTRED, tm.SGD(lr=0.1, start=away), np.geomspace(1e-4, 400, 500)), "loss"
                ).changes
            )
            == 1
        )


class TestRefusals:
    @pytest.mark.parametrize("function", [critical_length, gap_parabola, better_order])
    def test_only_centred_pairs_and_plain_sgd(self, function):
        name = function.__name__
        shifted = tm.teacher_mixture(0.7, 1.0)
        with pytest.raises(ValueError, match=f"`{name}` is for centred groups.*`predict`"):
            function(shifted, tm.SGD(lr=0.1))
        with pytest.raises(ValueError, match=f"`{name}` is for plain SGD, without weight_decay"):
            function(CENTRED, tm.SGD(lr=0.1, weight_decay=0.1))
        with pytest.raises(ValueError, match=r"constant learning rate"):
            function(CENTRED, tm.SGD(lr=tm.schedules.Cosine(0.1, 10.0)))
        three = tm.theory.Mixture(dict.fromkeys("abc", 1 / 3), dict.fromkeys("abc", 1.0), np.diag([0, 0, 0, 1, 1, 1]))
        with pytest.raises(ValueError, match=r"is for two groups. Found 3"):
            function(three, tm.SGD(lr=0.1))
        with pytest.raises(ValueError, match=r"stability limit 2.15"):
            function(CENTRED, tm.SGD(lr=3.0))

    def test_other_refusals(self):
        with pytest.raises(ValueError, match=r"`group` and `after` should differ"):
            forgetting(CENTRED, tm.SGD(lr=0.1), "+", "+")
        with pytest.raises(KeyError, match=r"No group 'x'"):
            forgetting(CENTRED, tm.SGD(lr=0.1), "x", "+")
        with pytest.raises(ValueError, match=r"should lie below 1.33333, the limit of - alone"):
            forgetting(CENTRED, tm.SGD(lr=1.5), "+", "-")
        with pytest.raises(ValueError, match=r"varies the start itself"):
            critical_length(CENTRED, tm.SGD(lr=0.1, start=tm.theory.starts.Random(1.0)))
        with pytest.raises(KeyError, match=r"unknown group 'x'"):
            one_after_the_other(CENTRED, tm.SGD(lr=0.1), {"x": 1.0})
        with pytest.raises(ValueError, match=r"should be positive. Found -1"):
            one_after_the_other(CENTRED, tm.SGD(lr=0.1), {"+": -1.0})
        with pytest.raises(ValueError, match=r"squared length"):
            critical_length(CENTRED, tm.SGD(lr=0.1)).crossings(-1.0)


CALLS = {
    "forgetting": lambda sgd: forgetting(CENTRED, sgd, "+", after="-"),
    "one_after_the_other": lambda sgd: one_after_the_other(CENTRED, sgd, {"+": 1.0, "-": 2.0}),
    "better_order": lambda sgd: better_order(CENTRED, sgd),
    "critical_length": lambda sgd: critical_length(CENTRED, sgd),
    "gap_parabola": lambda sgd: gap_parabola(CENTRED, sgd),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("law", [tm.interventions.GroupDRO(5.0, by="draws"), tm.interventions.Balanced()])
def test_interventions_are_refused_by_name(name, law):
    with pytest.raises(ValueError, match=f"`{name}` is for plain SGD, without {type(law).__name__}. Use `predict`"):
        CALLS[name](tm.SGD(lr=0.2, interventions=(law,)))


def over(values):
    """Mean over seeds and its standard error."""
    return values.mean("seed").values, values.std("seed", ddof=1).values / np.sqrt(values.sizes["seed"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [CENTRED, tm.teacher_mixture(0.6, variance=(1.0, 1.0), overlap=0.3)], ids=["centred", "equal variances"]
)
@pytest.mark.parametrize("order", [("+", "-"), ("-", "+")])
def test_groups_one_after_the_other(problem, order):
    """Losses after the first and after the second phase are those of the closed form (reference notes 3.3)."""
    durations = dict(zip(order, (15.0, 10.0), strict=True))
    sgd = tm.SGD(lr=0.1, proportions=tm.schedules.in_turn(durations))
    runs = tm.simulate(problem, sgd, [15.0, 25.0], curves=("loss",), **SIZE)["loss"]
    ends = (
        one_after_the_other(problem, tm.SGD(lr=0.1), {order[0]: 15.0}),
        one_after_the_other(problem, tm.SGD(lr=0.1), durations),
    )
    for i, end in enumerate(ends):
        for group in "+-":
            mean, error = over(runs.isel(time=i).sel(group=group))
            assert abs(mean - end.loss[group]) < 4.0 * error, (i, group)


@pytest.mark.slow
def test_control_the_other_order_is_another_end():
    """Taking the closed form of the wrong order misses the runs by far more than four standard errors."""
    sgd = tm.SGD(lr=0.1, proportions=tm.schedules.in_turn({"+": 15.0, "-": 10.0}))
    mean, error = over(tm.simulate(CENTRED, sgd, [25.0], curves=("loss",), **SIZE)["loss"].isel(time=0))
    wrong = one_after_the_other(CENTRED, tm.SGD(lr=0.1), {"-": 10.0, "+": 15.0}).loss
    assert (np.abs(mean - [wrong[g] for g in "+-"]) / error).max() > 40.0
