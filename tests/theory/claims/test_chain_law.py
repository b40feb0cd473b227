"""The chain has the law of the direct d-dimensional run: means, variances and whole distributions of all overlaps.

Every comparison of one overlap at one time gives three p-values: of the means, of the variances (with the standard
error that the fourth moment gives) and of the Kolmogorov-Smirnov distance. The smallest of all p-values of this file
must not fall below 1e-3 over their number, once per speed (quick and slow)."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm

from tiltmeter import SGD, simulate, teacher_mixture
from tiltmeter.theory.problem.starts import Random
from tiltmeter.theory.problem.students import Erf, Linear, Network, ReLU
from tiltmeter.theory.simulation.direct_method import Direct

LEVEL = 1e-3
GEOMETRIES = {
    "general": teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4)),
    "no shift": teacher_mixture(0.75, 0.0, (0.5, 1.5), 0.7, (0.0, 0.0), (0.2, 0.0)),
    "equal teachers": teacher_mixture(0.6, 1.0, (0.5, 1.2), 1.0, (0.4, 0.4)),
    "both": teacher_mixture(0.7, 0.0, (0.5, 1.2), 1.0, (0.0, 0.0), (0.3, -0.2)),
}
RANKS = {"general": 3, "no shift": 2, "equal teachers": 2, "both": 1}
PLAIN = SGD(lr=0.5, start=Random(1.0))
LOADED = SGD(lr=0.4, batch=3, momentum=0.5, weight_decay=0.3, start=Random(0.8))
STUDENTS = {
    "linear": (Linear(), PLAIN),
    "erf": (Network(2, Erf(), second_layer=(1.0, 0.6)), LOADED),
    "relu": (Network(2, ReLU(), second_layer=(1.0, -0.6)), LOADED),
}
CASES = [(geometry, student) for geometry in GEOMETRIES for student in STUDENTS]


def overlaps(trajectory):
    """Every overlap that varies over seeds, at every time, once each; shape (number, seeds)."""
    parts = [trajectory[name].transpose("seed", ...).values for name in ("M", "R", "Q")]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1).T


def p_values(one, two):
    found = []
    for x, y in zip(one, two, strict=True):
        if x.std() < 1e-12 and y.std() < 1e-12:
            assert abs(x.mean() - y.mean()) < 1e-12
            continue
        spread = [sample.var(ddof=1) for sample in (x, y)]
        means = (x.mean() - y.mean()) / np.sqrt(spread[0] / len(x) + spread[1] / len(y))
        fourth = [np.mean((s - s.mean()) ** 4) for s in (x, y)]
        errors = [(f - v**2) / len(s) for f, v, s in zip(fourth, spread, (x, y), strict=True)]
        variances = (spread[0] - spread[1]) / np.sqrt(sum(errors))
        found += [2 * norm.sf(abs(means)), 2 * norm.sf(abs(variances)), ks_2samp(x, y, method="asymp").pvalue]
    return np.array(found)


def compare(geometry, student, d, times, chain_seeds, direct_seeds):
    who, sgd = STUDENTS[student]
    problem, chosen = GEOMETRIES[geometry], {"student": who, "curves": ("M", "R", "Q")}
    chain = simulate(problem, sgd, times, d, chain_seeds, **chosen)
    direct = simulate(problem, sgd, times, d, direct_seeds, method=Direct(), **chosen)
    return p_values(overlaps(chain), overlaps(direct))


def least_allowed(count):
    """What the smallest of `count` p-values per case may be, all cases of one speed together."""
    return LEVEL / (count * len(CASES))


#: The special geometries are checked among the slow tests.
SPEEDS = [case if case[0] == "general" else pytest.param(*case, marks=pytest.mark.slow) for case in CASES]


@pytest.mark.parametrize(("geometry", "student"), SPEEDS)
def test_the_chain_has_the_law_of_the_direct_run_in_twenty_dimensions(geometry, student):
    p = compare(geometry, student, 20, [0.5, 3.0], 3000, 3000)
    assert len(p) >= 8
    assert p.min() > least_allowed(len(p))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "chain_seeds", "direct_seeds"), [(20, 20_000, 20_000), (100, 10_000, 4000), (1000, 2000, 240)]
)
@pytest.mark.parametrize(("geometry", "student"), CASES)
def test_the_chain_has_the_law_of_the_direct_run(geometry, student, d, chain_seeds, direct_seeds):
    p = compare(geometry, student, d, [0.5, 1.0, 3.0], chain_seeds, direct_seeds)
    assert p.min() > least_allowed(3 * len(p))


def test_one_degree_of_freedom_too_few_would_be_noticed(monkeypatch):
    """The negative control: a chain that takes the rank for one more than it is fails the same test."""
    from tiltmeter.theory.simulation import compiled_linear

    right = compiled_linear.advance_linear

    def wrong(*given):
        *rest, d = given
        right(*rest, d - 1)

    monkeypatch.setattr(compiled_linear, "advance_linear", wrong)
    p = compare("no shift", "linear", 20, [0.5, 3.0], 3000, 3000)
    assert p.min() < 1e-2 * least_allowed(len(p))


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_the_rank_is_that_of_the_geometry(geometry):
    from tiltmeter.theory.problem.geometry import factor

    gram = GEOMETRIES[geometry].gram.values
    found = factor(gram)
    assert found.shape == (4, RANKS[geometry])
    np.testing.assert_allclose(found @ found.T, gram, atol=1e-12)
