"""crossing_bound: second routes, bound and parity on random problems, and a refusal."""

import numpy as np
import pytest

import tiltmeter as tm

#: Every statement on a few random problems in the fast suite, on 2,000 in the slow one.
MANY = pytest.mark.parametrize("problems", [60, pytest.param(2000, marks=pytest.mark.slow)])
CENTRED = tm.teacher_mixture(0.8, variance=(0.5, 1.5), overlap=0.5)


def random_centred(rng):
    """A random centred problem and a stable learning rate."""
    rho, T = rng.uniform(0.1, 0.9), rng.uniform(-1.0, 1.0)
    D = np.exp(rng.uniform(np.log(0.2), np.log(4.0), 2))
    p = np.array([rho, 1 - rho])
    lr = rng.uniform(0.01, 0.95) * 2 * (p @ D) / (p @ D**2)
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


class TestSecondRoutes:
    def test_the_sum_of_exponentials_is_the_gap_of_predict(self):
        problem = tm.teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
        times = np.linspace(0.0, 20.0, 50)
        for sgd in (
            tm.SGD(lr=0.3, train_bias=True, weights={"+": 0.7, "-": 1.6}, weight_decay=0.1, batch=2),
            tm.SGD(lr=0.3, start=tm.theory.starts.Random(1.0)),
        ):
            bound = tm.theory.crossing_bound(problem, sgd)
            total = sum(c * np.exp(-r * times) for r, c in zip(bound.rates, bound.coefficients, strict=True))
            np.testing.assert_allclose(total, gap_of(problem, sgd, times), atol=1e-12)


class TestRandomProblems:
    TIMES = np.concatenate([[0.0], np.geomspace(1e-4, 60.0, 1500)])

    @MANY
    def test_centred_from_zero_at_most_one_and_the_bound_says_which(self, problems):
        rng = np.random.default_rng(1)
        seen = np.zeros(3, dtype=int)
        for _ in range(problems):
            problem, lr = random_centred(rng)
            bound = tm.theory.crossing_bound(problem, tm.SGD(lr=lr))
            count = counted(gap_of(problem, tm.SGD(lr=lr), self.TIMES / lr))
            assert count <= bound.most <= 1
            assert count % 2 == int(bound.odd)
            seen[count] += 1
        assert seen[1] > problems / 20

    @MANY
    def test_centred_from_any_start_at_most_two(self, problems):
        rng = np.random.default_rng(2)
        seen = np.zeros(4, dtype=int)
        for _ in range(problems):
            problem, lr = random_centred(rng)
            sgd = tm.SGD(lr=lr, start=random_start(rng, float(problem.gram[2, 3])))
            bound = tm.theory.crossing_bound(problem, sgd)
            count = counted(gap_of(problem, sgd, self.TIMES / lr))
            assert count <= bound.most <= 2
            assert count % 2 == int(bound.odd)
            seen[count] += 1
        assert seen[2] > 0 or problems < 2000  # a rule of one crossing would be wrong here

    @MANY
    def test_shifted_groups_stay_within_their_bound(self, problems):
        rng = np.random.default_rng(3)
        for i in range(problems):
            vectors = rng.normal(size=(3, 3))
            problem = tm.theory.Mixture.from_vectors(
                {"+": 0.6, "-": 0.4},
                dict(zip("+-", np.exp(rng.uniform(-1.5, 1.2, 2)), strict=True)),
                {"+": vectors[0], "-": -vectors[0]},
                {"+": vectors[1], "-": vectors[2]},
                dict(zip("+-", rng.normal(size=2) * 0.5, strict=True)),
            )
            lr = rng.uniform(0.05, 0.9) * float(tm.theory.stability_limit(problem, tm.SGD(lr=0.1)))
            start = tm.theory.starts.Zero() if i % 2 else tm.theory.starts.Random(rng.uniform(0.1, 2.0))
            sgd = tm.SGD(lr=lr, start=start)
            bound = tm.theory.crossing_bound(problem, sgd)
            count = counted(gap_of(problem, sgd, self.TIMES / lr))
            assert count <= bound.most <= (3 if i % 2 else 4)
            assert count % 2 == int(bound.odd)


class TestControls:
    def test_equal_groups_never_differ(self):
        problem, sgd, _ = tm.theory.cases.no_bias()
        assert str(tm.theory.crossing_bound(problem, sgd)) == "The losses of + and - are equal at all times."


def test_schedules_are_refused():
    with pytest.raises(ValueError, match=r"With schedules use `predict` and `leaders`"):
        tm.theory.crossing_bound(CENTRED, tm.SGD(lr=tm.schedules.Cosine(0.1, 10.0)))
