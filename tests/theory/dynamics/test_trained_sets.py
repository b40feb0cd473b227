"""The finite-size experiment: its solvers against scikit-learn and linear algebra, its data against the mixture."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.record.origin import Origin
from tiltmeter.theory.problem.geometry import factor
from tiltmeter.theory.problem.objective import Objective, flatten
from trained_sets import draw, minimise, train_to_equilibrium

PROBLEM = tm.teacher_mixture(0.75, 1.0, (0.5, 1.2), 0.6, (0.4, 0.2), (0.2, -0.1))
WEIGHTS = {("+", 1): 0.5, ("+", -1): 1.5, "-": 2.0}


def training_set(objective, d=40, seed=0):
    point = flatten(PROBLEM, objective).points[0]
    return point, draw(point, d, round(point.samples * d), np.random.default_rng(seed))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_logistic_is_scikit_learns_with_c_one_over_ridge(weights):
    from sklearn.linear_model import LogisticRegression

    point, data = training_set(Objective(tm.Logistic(), 3.0, 0.3, weights))
    W, bias = minimise(tm.Logistic(), point, data)
    model = LogisticRegression(C=1 / 0.3, tol=1e-10, max_iter=10_000)
    model.fit(data.inputs, data.y, sample_weight=data.weight)
    np.testing.assert_allclose(W, model.coef_, atol=1e-4)
    np.testing.assert_allclose(bias, model.intercept_, atol=1e-4)


@pytest.mark.parametrize("samples", [0.5, 3.0])
def test_square_is_ridge_regression(samples):
    from sklearn.linear_model import Ridge

    point, data = training_set(Objective(tm.Square(), samples, 0.3, WEIGHTS))
    W, bias = minimise(tm.Square(), point, data)
    model = Ridge(alpha=0.3).fit(data.inputs, data.y, sample_weight=data.weight)
    np.testing.assert_allclose(W[0], model.coef_, atol=1e-8)
    np.testing.assert_allclose(bias[0], model.intercept_, atol=1e-8)


@pytest.mark.parametrize("bias", [True, False])
def test_hinge_has_no_better_neighbour(bias):
    loss = tm.losses.Hinge()
    point, data = training_set(Objective(loss, 2.0, 0.3, WEIGHTS, bias))
    W, offset = minimise(loss, point, data)

    def objective(w, b):
        return data.weight @ loss.value(data.inputs @ w + b, data.y) + 0.15 * (w @ w)

    best = objective(W[0], offset[0])
    generator = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(50):
            move, lift = size * generator.standard_normal(W.shape[1]), size * generator.standard_normal()
            assert objective(W[0] + move, offset[0] + (lift if bias else 0.0)) > best - 1e-6
    assert bias or offset[0] == 0.0


@pytest.mark.parametrize("loss", [tm.Square(), tm.Logistic()])
def test_coupled_students_have_no_slope(loss):
    point, data = training_set(Objective(loss, 3.0, 0.3, None, True, coupling=0.7))
    W, bias = minimise(loss, point, data)
    for k in range(2):
        rows = data.group == k
        force = loss.gradient(data.inputs[rows] @ W[k] + bias[k], data.y[rows])
        slope = data.inputs[rows].T @ force + 0.3 * W[k] + 0.7 * (W[k] - W[1 - k])
        assert np.abs(slope).max() < 1e-8
        assert abs(force.sum()) < 1e-8


def test_the_data_have_the_geometry_of_the_mixture():
    point, data = training_set(Objective(tm.Square(), 2000.0, 1.0), d=20)
    place = factor(point.gram)
    np.testing.assert_allclose(place @ place.T, point.gram, atol=1e-12)
    x = data.inputs * np.sqrt(20)
    for g in range(2):
        rows = data.group == g
        assert rows.mean() == pytest.approx(point.p[g], abs=0.01)
        np.testing.assert_allclose(x[rows].mean(0)[: place.shape[1]], place[g], atol=0.05)
        assert x[rows][:, 10:].var() == pytest.approx(point.D[g], rel=0.02)
        assert (data.y[rows] > 0).mean() == pytest.approx([0.8019, 0.3921][g], abs=0.01)


def test_a_test_set_and_the_formula_agree():
    args = (PROBLEM, tm.Logistic(), 2.0, 0.3, 60, 3)
    formula, counted = train_to_equilibrium(*args), train_to_equilibrium(*args, test=40_000)
    for name in ("M", "R", "Q", "student_bias", "training_loss"):
        np.testing.assert_array_equal(formula[name].values, counted[name].values)
    for name in ("loss", "error", "positive_rate", "tpr", "fpr", "ppv", "tpr_gap", "risk"):
        assert not np.array_equal(formula[name].values, counted[name].values)
        np.testing.assert_allclose(formula[name].values, counted[name].values, atol=0.02, err_msg=name)


def test_seeds_are_reproducible_and_different():
    one = train_to_equilibrium(PROBLEM, tm.Square(), 2.0, 0.3, 30, 3)
    two = train_to_equilibrium(PROBLEM, tm.Square(), 2.0, 0.3, 30, [2, 0])
    np.testing.assert_array_equal(one.Q.sel(seed=[2, 0]).values, two.Q.values)
    assert len(np.unique(one.Q.values)) == 3
    assert Origin.from_json(two.attrs["origin"]).seeds == (2, 0)


def test_grids_and_names_are_those_of_the_theory():
    grid = ("samples", [0.5, 2.0])
    run = train_to_equilibrium(PROBLEM, tm.Square(), grid, 0.3, 30, 2)
    theory = tm.equilibrium(PROBLEM, tm.Square(), grid, 0.3)
    assert set(run) == set(theory)
    for name in theory:
        assert set(run[name].dims) == {*theory[name].dims, "seed"}
        assert run[name].attrs == theory[name].attrs
    coupled = train_to_equilibrium(PROBLEM, tm.Square(), 2.0, 0.3, 30, 2, coupling=0.5)
    assert set(coupled) == set(tm.equilibrium(PROBLEM, tm.Square(), 2.0, 0.3, coupling=0.5))


def test_centred_and_equal_teachers_run():
    problem = tm.teacher_mixture(0.8, 0.0, (0.5, 1.5), 1.0)
    run = train_to_equilibrium(problem, tm.Logistic(), 2.0, 0.3, 20, 2)
    np.testing.assert_allclose(run.M.values, 0.0, atol=1e-12)


BAD = [
    ({"d": 2}, ValueError, "`d` should be at least 4, to hold all means and teachers. Found d = 2."),
    ({"d": 20.5}, TypeError, "`d` should be a whole number of dimensions. Found d = 20.5."),
    ({"seeds": 0}, ValueError, "`seeds` should lie between 1 and 100,000,000. Found seeds = 0."),
    (
        {"seeds": 2.5},
        TypeError,
        "`seeds` should be how many, or a list of different whole numbers from 0. Found seeds = 2.5.",
    ),
    ({"samples": 0.01}, ValueError, "`samples` * d should be at least 2 examples. Found samples = 0.01 with d = 20."),
    ({"samples": -1.0}, ValueError, "`samples` should be positive. Found samples = -1."),
    ({"test": -1}, ValueError, "`test` should be a number of examples, or 0 for none. Found test = -1."),
    (
        {"loss": tm.losses.Hinge(), "coupling": 1.0},
        ValueError,
        "There is no finite-size solver for coupled students with Hinge().",
    ),
    (
        {"loss": tm.losses.Hinge(), "ridge": 0.0},
        ValueError,
        "The finite-size solver for Hinge() needs a positive ridge.",
    ),
]


@pytest.mark.parametrize(("change", "kind", "sentence"), BAD)
def test_bad_input_is_named(change, kind, sentence):
    given = {"loss": tm.Square(), "samples": 2.0, "ridge": 0.1, "d": 20, "seeds": 2, **change}
    with pytest.raises(kind) as error:
        train_to_equilibrium(PROBLEM, **given)
    assert sentence in error.value.args[0]


def test_kinked_losses_have_no_solver_here():
    class Twice(tm.losses.Loss):
        definition, kinks = "squared hinge", (1.0,)

        def value(self, score, y):
            return np.maximum(0, 1 - y * score) ** 2

        def gradient(self, score, y):
            return -2 * y * np.maximum(0, 1 - y * score)

        def curvature(self, score, y):
            return 2.0 * (y * score < 1)

    with pytest.raises(ValueError, match="There is no finite-size solver for Twice"):
        train_to_equilibrium(PROBLEM, Twice(), 2.0, 0.1, 20, 1)
