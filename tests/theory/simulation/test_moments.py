"""Exact finite-d moments: against the chain, against the theory at large d, and what they refuse."""

import numpy as np
import pytest

from tiltmeter import SGD, predict, simulate, teacher_mixture
from tiltmeter.schedules import Cosine, PowerDecay
from tiltmeter.theory.problem.optimisers import Adam
from tiltmeter.theory.problem.starts import Overlaps, Random
from tiltmeter.theory.simulation.moments import moments

GENERAL = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
CENTRED = teacher_mixture(0.75, 0.0, (0.5, 1.5), 0.7)
BOTH = teacher_mixture(0.7, 0.0, (0.5, 1.2), 1.0)
EVERYTHING = SGD(
    lr=0.8, batch=3, weight_decay=0.3, train_bias=True, weights={"+": 0.6, "-": 1.8},
    proportions={"+": 0.4, "-": 0.6}, start=Overlaps(R={"+": 0.5, "-": 0.3}, Q=1.0, bias=0.3),
)  # fmt: skip
CASES = {
    "general": (GENERAL, SGD(lr=0.5, start=Random(1.0))),
    "centred": (CENTRED, SGD(lr=0.5, start=Random(1.0))),
    "no shift, equal teachers": (BOTH, SGD(lr=0.5)),
    "everything": (GENERAL, EVERYTHING),
    "schedules": (GENERAL, SGD(lr=Cosine(0.9, 2.0, 0.2), weights={"-": PowerDecay(2.0, 1.0)})),
}


def deviations(problem, sgd, d, seeds, times):
    """Means and variances over chain runs minus the exact ones, in standard errors."""
    exact, runs = moments(problem, sgd, times, d), simulate(problem, sgd, times, d, seeds)
    found = []
    for name, curve in exact.items():
        sample = runs[name.removesuffix("_variance")]
        middle, spread = sample.mean("seed"), sample.var("seed", ddof=1)
        if name.endswith("_variance"):
            fourth = ((sample - middle) ** 4).mean("seed")
            error, value = np.sqrt((fourth - spread**2) / seeds), spread
        else:
            error, value = np.sqrt(spread / seeds), middle
        off, error = (value - curve).values, np.broadcast_to(error.values, curve.shape)
        assert np.abs(off[error < 1e-12]).max(initial=0.0) < 1e-10
        found.append((off / np.where(error < 1e-12, 1.0, error)).ravel())
    return np.concatenate(found)


@pytest.mark.parametrize("d", [20, 100])
@pytest.mark.parametrize("case", CASES)
def test_moments_are_those_of_the_chain(case, d):
    z = deviations(*CASES[case], d=d, seeds=2500, times=[0.5, 1.0, 4.0])
    assert np.abs(z).max() < 4.0
    assert np.sqrt(np.mean(z**2)) < 1.8


@pytest.mark.slow
@pytest.mark.parametrize("d", [20, 100])
@pytest.mark.parametrize("case", CASES)
def test_moments_are_those_of_the_chain_to_more_digits(case, d):
    z = deviations(*CASES[case], d=d, seeds=30_000, times=[0.5, 1.0, 4.0])
    assert np.abs(z).max() < 4.0


@pytest.mark.parametrize("case", CASES)
def test_moments_approach_the_theory(case):
    problem, sgd = CASES[case]
    times = [0.5, 1.0, 4.0]
    theory = predict(problem, sgd, times)

    def distance(d):
        exact = moments(problem, sgd, times, d)
        return max(float(np.abs(exact[name] - theory[name]).max()) for name in theory if name in exact)

    near, far = distance(1000), distance(100)
    assert near < 0.01
    assert 5 < far / near < 20  # an error of order 1/d


def test_variances_are_of_order_one_over_d():
    spread = [moments(GENERAL, SGD(lr=0.5), [2.0], d)["M_variance"].values[0, 0] for d in (1000, 10_000)]
    assert spread[0] / spread[1] == pytest.approx(10.0, rel=0.02)


def test_powers_of_the_map_are_its_steps():
    constant = moments(GENERAL, SGD(lr=0.5, train_bias=True), [1.0, 7.0], 50)
    stepwise = moments(GENERAL, SGD(lr=lambda t: 0.5, weights={"+": lambda t: 1.0}, train_bias=True), [1.0, 7.0], 50)
    by_rate = moments(GENERAL, SGD(lr=lambda t: 0.5, train_bias=True), [1.0, 7.0], 50)
    for name in constant:
        np.testing.assert_allclose(constant[name], stepwise[name], atol=1e-12)
        np.testing.assert_allclose(constant[name], by_rate[name], atol=1e-12)


def test_a_million_dimensions_cost_nothing():
    found = moments(GENERAL, SGD(lr=0.5), [200.0], 1_000_000)
    assert float(np.abs(found["loss"] - predict(GENERAL, SGD(lr=0.5), [200.0])["loss"]).max()) < 1e-5


@pytest.mark.parametrize(
    ("sgd", "d", "error", "message"),
    [
        (SGD(lr=0.1, momentum=0.5), 50, ValueError, r"`moments` has no closed form with momentum. Use `simulate`"),
        (SGD(lr=0.1, clip=1.0), 50, ValueError, r"`moments` has no closed form with clip. Use `simulate`"),
        (SGD(lr=0.1, weights={("+", 1): 2.0}), 50, ValueError, r"`weights` per \(group, label\).* use `simulate`"),
        (Adam(lr=0.1), 50, TypeError, r"`moments` is for SGD\(lr=...\). Found Adam: use `simulate` with Direct\(\)"),
        (SGD(lr=5.0), 50, ValueError, r"`lr` is too large: the mean square of the student grows without bound"),
        (SGD(lr=0.1), 3, ValueError, r"`d` should be at least 4: means and teachers span 3 dimensions. Found d = 3"),
        (SGD(lr=0.1), 50.0, TypeError, r"`d` should be an integer"),
    ],
)
def test_what_moments_refuse(sgd, d, error, message):
    with pytest.raises(error, match=message):
        moments(GENERAL, sgd, [100.0], d)
