"""Sum of exponentials = published closed form = integrated equations of motion."""

import numpy as np
import pytest

from tiltmeter import SGD, predict, teacher_mixture
from tiltmeter.theory import Mixture
from tiltmeter.theory.dynamics.closed_form import closed_form
from tiltmeter.theory.dynamics.limits import initial_rates
from tiltmeter.theory.dynamics.ode import integrate
from tiltmeter.theory.dynamics.stability import stability_limit
from tiltmeter.theory.problem.starts import Overlaps, Random, Zero

CURVES = ("loss", "M", "R", "Q")
TIMES = np.concatenate([[0.0], np.geomspace(1e-3, 300.0, 60)])


def random_two_groups(rng):
    """A feasible two-group problem, from random vectors."""
    v, plus, minus = rng.normal(size=(3, 4)) * [[rng.uniform(0, 1)], [1], [1]]
    plus, minus = plus / np.linalg.norm(plus), minus / np.linalg.norm(minus)
    return teacher_mixture(
        rho=rng.uniform(0.05, 0.95), shift=v @ v, variance=tuple(rng.uniform(0.1, 3.0, 2)), overlap=plus @ minus,
        shift_overlap=(v @ plus, v @ minus), label_bias=tuple(rng.normal(0, 0.5, 2)),
    )  # fmt: skip


def random_groups(rng, number):
    groups = [f"g{i}" for i in range(number)]
    weight = rng.dirichlet(np.full(number, 3.0))
    weight = dict(zip(groups, weight / weight.sum(), strict=True))
    vectors = rng.normal(size=(2, number, number + 2)) * 0.6
    return Mixture.from_vectors(
        weight, dict(zip(groups, rng.uniform(0.2, 2.0, number), strict=True)),
        dict(zip(groups, vectors[0], strict=True)), dict(zip(groups, vectors[1], strict=True)),
        dict(zip(groups, rng.normal(0, 0.4, number), strict=True)),
    )  # fmt: skip


def distance(trajectory, other):
    """Largest difference relative to max(1, |value|)."""
    return max(
        float((abs(trajectory[name].values - other[name]) / np.maximum(1.0, np.abs(other[name]))).max())
        for name in CURVES
    )


def by_ode(problem, sgd, times=TIMES):
    _, found = integrate(problem, sgd, times, rtol=1e-12, atol=1e-14)
    return {name: getattr(found, name)[0] for name in CURVES}


def by_closed_form(problem, sgd, times=TIMES):
    found = closed_form(problem, sgd, times)
    return {name: found[name].values for name in CURVES}


@pytest.mark.parametrize("seed", range(12))
def test_two_groups(seed):
    rng = np.random.default_rng(seed)
    problem = random_two_groups(rng)
    start = [Zero(), Random(0.8)][seed % 2]
    sgd = SGD(lr=rng.uniform(0.05, 0.9) * stability_limit(problem, SGD(lr=0.1)).item(), start=start)
    theory = predict(problem, sgd, TIMES, CURVES)
    assert distance(theory, by_closed_form(problem, sgd)) < 1e-11
    assert distance(theory, by_ode(problem, sgd)) < 1e-8


@pytest.mark.parametrize("shift", [0.0, 1.5])
@pytest.mark.parametrize("nudge", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, -1e-10])
def test_the_resonance_at_half_the_stability_limit(shift, nudge):
    problem = teacher_mixture(0.7, shift, (0.5, 1.2), 0.6, (0.5, -0.3) if shift else (0.0, 0.0))
    lr = 0.5 * stability_limit(problem, SGD(lr=0.1)).item()
    sgd = SGD(lr=lr * (1.0 + nudge))
    theory = predict(problem, sgd, TIMES, CURVES)
    assert distance(theory, by_closed_form(problem, sgd)) < 1e-11
    assert distance(theory, by_ode(problem, sgd)) < 1e-8


@pytest.mark.parametrize("meets", ["kappa", "2 kappa"])
def test_the_other_resonances(meets):
    # q = kappa at lr = (D - v) / D2, q = 2 kappa never (q < 2 gamma <= 2 kappa): both rates stay well behaved.
    problem = teacher_mixture(0.5, 0.4, (1.0, 1.0), 0.5, (0.2, 0.1))
    lr = 0.6 if meets == "kappa" else 1e-3
    times = TIMES if meets == "kappa" else np.geomspace(1.0, 1e5, 50)
    sgd = SGD(lr=lr)
    theory = predict(problem, sgd, times, CURVES)
    assert distance(theory, by_closed_form(problem, sgd, times)) < 1e-11
    assert distance(theory, by_ode(problem, sgd, times)) < 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_many_groups_with_all_options(seed):
    rng = np.random.default_rng(100 + seed)
    problem = random_groups(rng, number=3 + seed % 2)
    shares = rng.dirichlet(np.full(len(problem.groups), 3.0))
    settings = {
        "batch": int(rng.integers(1, 8)),
        "weight_decay": rng.uniform(0, 0.5),
        "train_bias": bool(seed % 2),
        "weights": dict(zip(problem.groups, rng.uniform(0.3, 2.0, len(problem.groups)), strict=True)),
        "proportions": dict(zip(problem.groups, shares / shares.sum(), strict=True)),
        "start": Overlaps(Q=rng.uniform(0, 1), bias=rng.normal()) if seed % 3 else Random(0.5),
    }
    limit = stability_limit(problem, SGD(lr=0.1, **settings)).item()
    sgd = SGD(lr=rng.uniform(0.1, 0.8) * limit, **settings)
    assert distance(predict(problem, sgd, TIMES, CURVES), by_ode(problem, sgd)) < 1e-8


def test_a_warm_start_continues_the_same_curves():
    rng = np.random.default_rng(7)
    problem = random_two_groups(rng)
    whole = predict(problem, SGD(lr=0.2), [3.0, 5.0, 20.0], CURVES)
    half = {name: whole[name].sel(time=3.0) for name in CURVES}
    start = Overlaps(
        M=dict(zip("+-", half["M"].values, strict=True)),
        R=dict(zip("+-", half["R"].values, strict=True)),
        Q=half["Q"].item(),
    )
    later = predict(problem, SGD(lr=0.2, start=start), [2.0, 17.0], CURVES)
    for name in CURVES:
        np.testing.assert_allclose(later[name].values, whole[name].values[1:], atol=1e-12)


def test_initial_rates_equal_their_formula_and_the_slope():
    rng = np.random.default_rng(3)
    for _ in range(300):
        problem = random_two_groups(rng)
        eta = rng.uniform(0.01, 0.5)
        found = initial_rates(problem, SGD(lr=eta)).loss.values
        sign, A, v = np.array([1.0, -1.0]), problem.gram.values[0, 2:], problem.gram.values[0, 0]
        p, D = problem.weight.values, problem.variance.values
        a = (sign * A + problem.label_bias.values) / np.sqrt(D)
        from scipy.special import erf

        m, g, T = erf(a / np.sqrt(2)), np.sqrt(2 / np.pi) * np.exp(-(a**2) / 2), problem.gram.values[2:, 2:]
        c1 = eta * np.sum(p * (sign * v * m + np.sqrt(D) * A * g))
        c3 = eta * (A * np.sum(p * sign * m) + (p * np.sqrt(D) * g) @ T)
        c6 = eta**2 * (p @ D)
        assert found == pytest.approx(0.5 * D * c6 - sign * m * c1 - np.sqrt(D) * g * c3, abs=1e-12)
    step = 1e-6
    loss = predict(problem, SGD(lr=eta), [step], ("loss",))["loss"].values[0]
    assert (loss - 0.5) / step == pytest.approx(found, abs=1e-5)


def test_the_centred_initial_rate_of_the_slides_with_its_half():
    problem, eta = teacher_mixture(0.8, variance=(0.5, 1.5), overlap=0.5), 0.1
    D, Dmix = problem.variance.values, float(problem.weight.values @ problem.variance.values)
    a, b = 0.8 * np.sqrt(0.5), 0.2 * np.sqrt(1.5)
    Rinf = np.sqrt(2 / np.pi) * np.array([a + 0.5 * b, 0.5 * a + b]) / Dmix
    expected = -(eta**2) * Dmix * D * (np.sqrt(2 / (np.pi * D)) * Rinf / eta - 0.5)
    assert initial_rates(problem, SGD(lr=eta)).loss.values == pytest.approx(expected, abs=1e-15)


def test_the_stability_limit_with_weights_decay_and_batch():
    """Just below the limit Q decays to its asymptote, just above it the equations of motion blow up."""
    problem = teacher_mixture(0.6, 1.0, (0.5, 1.2), 0.6, (0.3, 0.2))
    settings = {"batch": 3, "weight_decay": 0.4, "weights": {"+": 0.7, "-": 1.6}}
    p, D, s = np.array([0.6, 0.4]), np.array([0.5, 1.2]), np.array([0.7, 1.6])
    limit = 2 * 3 * (np.sum(p * s * D) + 0.4) / np.sum(p * s**2 * D**2)
    assert stability_limit(problem, SGD(lr=0.1, **settings)).item() == pytest.approx(limit)
    times = np.array([0.0, 4.0, 8.0])
    below = by_ode(problem, SGD(lr=0.98 * limit, **settings), times)["Q"]
    above = by_ode(problem, SGD(lr=1.02 * limit, **settings), times)["Q"]
    assert below[2] - below[1] < below[1] - below[0]
    assert above[2] - above[1] > 2 * (above[1] - above[0])
