"""Random features: pinned numbers, simulation, limits, refusals."""

import numpy as np
import pytest
from scipy.special import erf

import tiltmeter as tm
from tiltmeter_lab.theory.random_features import random_features as features

CENTRED = tm.teacher_mixture(0.8, variance=(0.5, 1.5), overlap=0.5)
Erf, Identity = tm.theory.students.Erf, tm.theory.students.Identity
ReLU, Tanh = tm.theory.students.ReLU, tm.theory.students.Tanh


def test_pinned():
    found = features(CENTRED, 1.0, samples=2.0, ridge=0.1)
    for name, expected, digits in (
        ("score_overlap", (0.3776975, 0.3416593), 7),
        ("score_variance", (0.352075, 0.6738912), 6),
        ("loss", (0.3746785, 0.5643409), 7),
        ("error", (0.2803645, 0.3633628), 7),
        ("training_loss", (0.1978946, 0.1830526), 7),
    ):
        np.testing.assert_allclose(found[name], expected, atol=0.6 * 10.0**-digits, err_msg=name)


def test_the_gap_grows_while_the_worst_group_improves():
    found = features(CENTRED, [0.5, 1.9, 5.0, 30.0], samples=2.0)
    expected = [[0.343, 0.400], [0.404, 0.462], [0.264, 0.390], [0.231, 0.365]]
    np.testing.assert_allclose(found.error, expected, atol=6e-4)
    weighted = features(CENTRED, [0.5, 30.0], samples=2.0, weights={"-": 4.0})
    np.testing.assert_allclose(weighted.error, [[0.375, 0.398], [0.231, 0.365]], atol=6e-4)


def test_linear_features_of_full_rank_are_the_linear_student():
    """Identity activation and very many features: ridge regression on the inputs, as in `equilibrium`."""
    many = 4000.0
    found = features(CENTRED, many, samples=2.0, ridge=0.5 * many, activation=Identity())
    linear = tm.equilibrium(CENTRED, tm.Square(), samples=2.0, ridge=0.5)
    np.testing.assert_allclose(found.loss, linear.loss, atol=2e-3)
    np.testing.assert_allclose(found.error, linear.error, atol=2e-3)


def test_without_a_difference_between_groups_there_is_no_gap():
    equal = tm.teacher_mixture(0.5, variance=(1.0, 1.0), overlap=0.3)
    found = features(equal, [0.5, 2.0, 10.0], samples=2.0)
    assert float(abs(found.error_gap).max()) < 1e-12


def run_once(rng, d, psi, alpha, lam, weights, flips):
    """One student on one training set, and 4,000 new points of each group."""
    D, teachers = np.array([0.5, 1.5]), np.zeros((2, d))
    teachers[:, 0], teachers[1, 1] = (1.0, 0.5), np.sqrt(0.75)
    F = rng.normal(size=(int(psi * d), d)) / np.sqrt(d)
    g = (rng.random(int(alpha * d)) > 0.8).astype(int)
    x = rng.normal(size=(len(g), d)) * np.sqrt(D[g])[:, None]
    y = np.sign((x * teachers[g]).sum(1)) * np.where(rng.random(len(g)) < np.array(flips)[g], -1.0, 1.0)
    Z, s = erf(x @ F.T / np.sqrt(2.0)), np.array(weights)[g]
    theta = np.linalg.solve((Z * s[:, None]).T @ Z / d + lam * np.eye(len(F)), (Z * s[:, None]).T @ y / d)
    row = []
    for k in (0, 1):
        new = rng.normal(size=(4000, d)) * np.sqrt(D[k])
        label, score = np.sign(new @ teachers[k]), erf(new @ F.T / np.sqrt(2.0)) @ theta
        own, mine = Z[g == k] @ theta, y[g == k]
        row.append([0.5 * np.mean((score - label) ** 2), np.mean(score * label < 0)])
        row[-1] += [0.5 * np.mean((own - mine) ** 2), np.mean(own * mine < 0)]
    return np.array(row)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("psi", "alpha", "lam", "weights", "flips", "d", "seeds"),
    [
        (0.7, 1.0, 0.1, (1.0, 1.0), (0.0, 0.0), 300, 60),
        (1.0, 2.0, 0.1, (1.0, 1.0), (0.0, 0.0), 400, 40),
        (4.0, 3.0, 0.01, (1.0, 3.0), (0.1, 0.2), 200, 40),
        (2.0, 1.0, 1e-3, (1.0, 1.0), (0.2, 0.0), 300, 30),
    ],
)
def test_simulation(psi, alpha, lam, weights, flips, d, seeds):
    rows = np.stack([run_once(np.random.default_rng(i), d, psi, alpha, lam, weights, flips) for i in range(seeds)])
    named = (dict(zip("+-", values, strict=True)) for values in (weights, flips))
    found = features(CENTRED, psi, alpha, lam, *named)
    for i, name in enumerate(("loss", "error", "training_loss", "training_error")):
        mean, error = rows[:, :, i].mean(0), rows[:, :, i].std(0, ddof=1) / np.sqrt(seeds)
        # Training errors near zero are counted: one example of the smaller group in all runs is no deviation.
        least = 1.0 / (0.2 * alpha * d * seeds) if name == "training_error" else 0.0
        assert (abs(mean - found[name].values) < 4.0 * error + least).all(), name


def test_a_wrong_spectrum_would_show():
    """The control: leaving the zeros of F F' out, over-parametrised students would come out otherwise."""
    found = features(CENTRED, [1.0, 4.0], samples=2.0, ridge=0.1)
    assert float(abs(found.error[0] - found.error[1]).min()) > 0.01


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"samples": 0.0}, "`samples` should be positive. Found samples = 0"),
        ({"ridge": 0.0}, "`ridge` should be positive"),
        ({"features": -1.0}, "`features` should be positive numbers"),
        ({"problem": tm.teacher_mixture(0.7, 1.0)}, "centred groups.*use `equilibrium`"),
        ({"activation": ReLU()}, "odd activations"),
        ({"weights": {"x": 1.0}}, "unknown group 'x'"),
        ({"flips": {"+": 0.7}}, r"`flips` should lie in \[0, 0.5\)"),
        ({"weights": {"+": 0.0}}, "`weights` should be positive"),
        ({"problem": tm.teacher_mixture(("rho", [0.2, 0.5]))}, "is for one problem. Found a grid over rho"),
    ],
)
def test_refusals(change, said):
    with pytest.raises((ValueError, KeyError), match=said):
        features(**{"problem": CENTRED, "features": 1.0, "samples": 2.0, **change})


def test_refused_types():
    with pytest.raises(TypeError, match="Mixture of two labels"):
        features(tm.theory.class_mixture(3), 1.0, 2.0)
    with pytest.raises(TypeError, match="`activation` should be"):
        features(CENTRED, 1.0, 2.0, activation=Erf)
    assert features(CENTRED, 1.0, 2.0, activation=Tanh()).error.dims == ("group",)
