"""Equilibrium: the theory against finite-size minimisation, and against the small-lr limit of the SGD theory."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory.dynamics.equilibrium import at_equilibrium
from tiltmeter.theory.problem.objective import Objective
from trained_sets import train_to_equilibrium

PAPER = {
    "rho": 0.75,
    "shift": 1.0,
    "variance": (0.5, 1.2),
    "overlap": 0.6,
    "shift_overlap": (0.4, 0.2),
    "label_bias": (0.2, -0.1),
}
WEIGHTS = {("+", 1): 0.5, ("+", -1): 1.5, ("-", 1): 2.0, ("-", -1): 3.0}
BY_GROUP = {"+": 0.7, "-": 1.8}


def two_groups():
    return tm.teacher_mixture(**PAPER)


def three_groups():
    return tm.theory.Mixture.from_vectors(
        weight={"a": 0.5, "b": 0.3, "c": 0.2},
        variance={"a": 0.6, "b": 1.0, "c": 1.5},
        means={"a": [0.8, 0.0, 0.0, 0.0], "b": [-0.3, 0.5, 0.0, 0.0], "c": [0.0, -0.6, 0.2, 0.0]},
        teachers={"a": [0.3, 0.2, 1.0, 0.0], "b": [0.1, 0.0, 0.7, 0.6], "c": [0.0, 0.4, 0.3, -0.8]},
        label_bias={"a": 0.1, "b": -0.2, "c": 0.0},
    )


#: How exactly the finite-size solvers solve; it shows only in training losses that vanish.
SOLVER = 1e-5
THREE_WEIGHTS = {"a": 0.6, "b": 1.0, ("c", 1): 2.5, ("c", -1): 1.5}

# name: problem, loss, samples, ridge, weights, bias, coupling
CASES = {
    "square": (two_groups, tm.Square(), 2.0, 0.5, None, True, None),
    "square, weights": (two_groups, tm.Square(), 2.0, 0.5, WEIGHTS, True, None),
    "square, few samples": (two_groups, tm.Square(), 0.6, 0.1, None, True, None),
    "square, few samples, weights, no bias": (two_groups, tm.Square(), 0.6, 0.1, BY_GROUP, False, None),
    "logistic": (two_groups, tm.Logistic(), 2.0, 0.3, None, True, None),
    "logistic, weights": (two_groups, tm.Logistic(), 1.5, 0.2, WEIGHTS, True, None),
    "logistic, few samples": (two_groups, tm.Logistic(), 0.6, 0.05, None, True, None),
    "logistic, few samples, weights": (two_groups, tm.Logistic(), 0.6, 0.05, BY_GROUP, True, None),
    "hinge": (two_groups, tm.losses.Hinge(), 1.5, 0.5, None, True, None),
    "hinge, weights": (two_groups, tm.losses.Hinge(), 2.0, 0.5, WEIGHTS, True, None),
    "hinge, few samples": (two_groups, tm.losses.Hinge(), 0.6, 0.1, None, True, None),
    "three groups, square": (three_groups, tm.Square(), 2.0, 0.3, THREE_WEIGHTS, True, None),
    "three groups, logistic": (three_groups, tm.Logistic(), 2.0, 0.3, THREE_WEIGHTS, True, None),
    "three groups, hinge": (three_groups, tm.losses.Hinge(), 2.0, 0.5, None, True, None),
    "coupled square": (two_groups, tm.Square(), 2.0, 0.3, None, True, 0.5),
    "coupled square, few samples": (two_groups, tm.Square(), 1.0, 0.2, None, True, 5.0),
    "coupled logistic": (two_groups, tm.Logistic(), 2.0, 0.2, None, True, 0.5),
    "coupled logistic, three groups": (three_groups, tm.Logistic(), 3.0, 0.2, None, True, 0.3),
}


def checked(problem):
    """Every order parameter and rate that the finite-size experiment measures."""
    names = ["M", "R", "Q", "student_bias", "student_overlap", "loss", "training_loss", "risk", "population_error"]
    names += ["error", "positive_rate", "tpr", "fpr", "ppv", "error_gap", "positive_rate_gap", "tpr_gap"]
    return [name for name in names if name in problem]


def against_theory(case, small, seeds_small, large, seeds_large):
    """Deviations in units of what is allowed: 4 standard errors plus c/d, c from the two dimensions."""
    make, loss, samples, ridge, weights, bias, coupling = case
    problem = make()
    theory = at_equilibrium(problem, Objective(loss, samples, ridge, weights, bias, coupling))
    runs = {
        d: train_to_equilibrium(problem, loss, samples, ridge, d, seeds, weights, bias, coupling)
        for d, seeds in ((small, seeds_small), (large, seeds_large))
    }
    report = {}
    for name in checked(theory):
        mean = {d: run[name].mean("seed").values for d, run in runs.items()}
        error = {d: (run[name].std("seed", ddof=1) / np.sqrt(run.sizes["seed"])).values for d, run in runs.items()}
        c = np.abs(mean[small] - mean[large]) / (1.0 / small - 1.0 / large)
        off = np.abs(mean[large] - theory[name].values)
        allowed = 4.0 * error[large] + c / large + SOLVER
        report[name] = (off / allowed).max(), (off / (error[large] + SOLVER)).max(), off.max()
    return report


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_theory_is_the_limit_of_finite_size_minimisers(name):
    report = against_theory(CASES[name], small=100, seeds_small=80, large=400, seeds_large=48)
    used = {
        key: f"{values[0]:.2f} of allowed, z {values[1]:.1f}, off {values[2]:.4f}" for key, values in report.items()
    }
    assert all(values[0] <= 1.0 for values in report.values()), used
    # The allowance must not hide an error: most quantities agree without c/d.
    assert np.median([values[1] for values in report.values()]) < 3.0, used
    print(name, max(values[2] for values in report.values()), max(values[1] for values in report.values()))


@pytest.mark.parametrize("name", ["square, weights", "logistic", "hinge", "coupled square"])
def test_theory_is_near_small_experiments(name):
    report = against_theory(CASES[name], small=40, seeds_small=40, large=120, seeds_large=24)
    assert all(values[0] <= 1.3 for values in report.values()), report


@pytest.mark.parametrize("make", [two_groups, three_groups])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weights", [None, "by group"])
def test_many_samples_and_no_ridge_are_slow_sgd(make, bias, weights):
    problem = make()
    chosen = None if weights is None else {group: 0.6 + 0.7 * i for i, group in enumerate(problem.groups)}
    rest = tm.equilibrium(problem, tm.Square(), samples=1e6, ridge=1e-3, weights=chosen, bias=bias)
    end = tm.theory.asymptotes(problem, tm.SGD(lr=1e-6, weights=chosen, train_bias=bias))
    for name in end:
        np.testing.assert_allclose(rest[name].values, end[name].values, atol=1e-4, err_msg=name)


def test_a_wrong_theory_would_be_caught():
    """The negative control: the same comparison refuses a theory of a slightly different ridge."""
    make, loss, samples, ridge, weights, bias, coupling = CASES["square"]
    runs = train_to_equilibrium(make(), loss, samples, ridge, 120, 24, weights, bias, coupling)
    wrong = tm.equilibrium(make(), loss, samples, 1.3 * ridge)
    z = np.abs(runs.Q.mean() - wrong.Q) / (runs.Q.std(ddof=1) / np.sqrt(24))
    assert z > 6
