"""Equilibrium: second routes, invariances, degenerate geometry, grids, and what is refused."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

import tiltmeter as tm
from tiltmeter.record.origin import Origin
from tiltmeter.theory.dynamics.averages import averages, corners, general_averages
from tiltmeter.theory.dynamics.fixed_point import TOLERANCE, solve
from tiltmeter.theory.population.channel import channel, score_intervention
from tiltmeter.theory.population.labelled_curves import EVERY
from tiltmeter.theory.problem.objective import Objective, flatten

PAPER = tm.teacher_mixture(0.75, 1.0, (0.5, 1.2), 0.6, (0.4, 0.2), (0.2, -0.1))
LOSSES = [tm.Square(), tm.Logistic(), tm.losses.Hinge()]
ORDER = ("M", "R", "Q", "student_bias")


def same(a, b, atol=1e-8, skip=()):
    for name in a:
        if name not in skip:
            np.testing.assert_allclose(a[name].values, b[name].values, atol=atol, err_msg=name)


def test_reference_numbers():
    """The settings of the notes; finite-size experiments agree with them (tests/claims)."""
    found = tm.equilibrium(PAPER, tm.Logistic(), 2.0, 0.3)
    assert found.Q.item() == pytest.approx(1.23149, abs=1e-4)
    np.testing.assert_allclose(found.R.values, [0.7816, 0.6458], atol=1e-4)
    np.testing.assert_allclose(found.M.values, [0.4966, -0.4966], atol=1e-4)
    assert found.student_bias.item() == pytest.approx(0.8345, abs=1e-4)


@pytest.mark.parametrize(("samples", "ridge"), [(2.0, 0.5), (0.6, 0.1), (10.0, 1e-2)])
@pytest.mark.parametrize("bias", [True, False])
def test_square_loss_by_its_closed_form(samples, ridge, bias):
    """Second route: for the square loss all averages are known, and the equations can be iterated directly."""
    p, D, a = np.array([0.75, 0.25]), np.array([0.5, 1.2]), np.array([0.6, -0.3]) / np.sqrt([0.5, 1.2])
    m, g, c = 2 * norm.cdf(a) - 1, 2 * norm.pdf(a), np.array([1.0, -1.0])
    gram = np.array([[1.0, 0.4, 0.2], [0.4, 1.0, 0.6], [0.2, 0.6, 1.0]])
    lam, M, R, Q, b = 1.0, 0.0, np.zeros(2), 0.1, 0.0
    for _ in range(600):
        k = 1.0 / (1.0 + D / (ridge + lam))
        miss = m - c * M - b
        square = k**2 * (1 + (c * M + b) ** 2 + D * Q - 2 * (m * (c * M + b) + np.sqrt(D) * R * g))
        h = samples * np.array([(p * c * k * miss).sum(), *(p * np.sqrt(D) * k * g)])
        chi = samples * (p * D * square).sum()
        new = samples * (p * D * k).sum()
        lam += 0.5 * (new - lam)
        overlaps = gram @ h / (ridge + lam)
        M += 0.5 * (overlaps[0] - M)
        R = R + 0.5 * (overlaps[1:] - R)
        Q += 0.5 * ((h @ gram @ h + chi) / (ridge + lam) ** 2 - Q)
        b += 0.5 * (p * k * miss).sum() / (p * k).sum() if bias else 0.0
    found = tm.equilibrium(PAPER, tm.Square(), samples, ridge, bias=bias)
    np.testing.assert_allclose(found.M.values, [M, -M], atol=1e-7)
    np.testing.assert_allclose(found.R.values, R, atol=1e-7)
    assert found.Q.item() == pytest.approx(Q, abs=1e-7)
    assert ("student_bias" in found) == bias
    if bias:
        assert found.student_bias.item() == pytest.approx(b, abs=1e-7)


def test_averages_are_those_of_adaptive_quadrature():
    point = flatten(PAPER, Objective(tm.Logistic(), 2.0, 0.3, {("+", 1): 0.5, "-": 2.0})).points[0]
    found = solve(tm.Logistic(), point)
    mean = averages(tm.Logistic(), point, found.M, found.R, found.Q, found.bias, found.V)
    for g in range(2):
        r = found.R[g] / np.sqrt(found.Q[g])
        scale, V = np.sqrt(point.D[g] * found.Q[g]), found.V[g]

        def force(omega, y, s, V=V):
            u = omega
            for _ in range(60):
                u -= (u - omega - V * s * y * expit(-y * u)) / (1 + V * s * expit(u) * expit(-u))
            return s * y * expit(-y * u)

        def integrand(xi, y, s, power, g=g, r=r, scale=scale, force=force):
            weight = norm.pdf(xi) * norm.cdf(y * (point.a[g] + r * xi) / np.sqrt(1 - r * r))
            return weight * force(found.M[g] + found.bias[g] + scale * xi, y, s) ** power

        for power, expected in ((1, mean.f[g]), (2, mean.square[g])):
            total = sum(quad(integrand, -9, 9, args=(y, point.s[g, i], power))[0] for i, y in enumerate((1.0, -1.0)))
            assert expected == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_of_the_averages_are_consistent(loss):
    """Gaussian integration by parts ties the four averages together: scale E[df] = E[xi f] - r E[df/dnu]."""
    point = flatten(PAPER, Objective(loss, 2.0, 0.3)).points[0]
    found = solve(loss, point)
    h = 1e-5
    args = found.M, found.R, found.Q
    up = averages(loss, point, *args, found.bias + h, found.V)
    down = averages(loss, point, *args, found.bias - h, found.V)
    mid = averages(loss, point, *args, found.bias, found.V)
    np.testing.assert_allclose((up.f - down.f) / (2 * h), mid.slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_and_ridge_scale_together(loss):
    one = tm.equilibrium(PAPER, loss, 2.0, 0.3, weights={"+": 0.5, "-": 2.0})
    two = tm.equilibrium(PAPER, loss, 2.0, 0.9, weights={"+": 1.5, "-": 6.0})
    same(one, two, 1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_group_of_weight_zero_is_a_smaller_sample(loss):
    both = tm.equilibrium(PAPER, loss, 2.0, 0.3, weights={"-": 0.0})
    alone = tm.theory.Mixture({"+": 1.0}, {"+": 0.5}, [[1.0, 0.4], [0.4, 1.0]], {"+": 0.2})
    single = tm.equilibrium(alone, loss, 1.5, 0.3)
    for name in ORDER:
        left = both[name].sel(group="+") if "group" in both[name].dims else both[name]
        np.testing.assert_allclose(np.ravel(left), np.ravel(single[name]), atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_two_halves_are_one_group(loss):
    """Equal teachers, equal means: the Gram matrix is degenerate, and the answer that of one group."""
    halves = tm.theory.Mixture(
        {"a": 0.3, "b": 0.7}, {"a": 0.8, "b": 0.8}, np.array([[1, 1, 0.4, 0.4]] * 2 + [[0.4, 0.4, 1, 1]] * 2)
    )
    one = tm.theory.Mixture({"a": 1.0}, {"a": 0.8}, [[1.0, 0.4], [0.4, 1.0]])
    split, whole = tm.equilibrium(halves, loss, 1.5, 0.2), tm.equilibrium(one, loss, 1.5, 0.2)
    np.testing.assert_allclose(split.error.values, whole.error.values.repeat(2), atol=1e-8)
    np.testing.assert_allclose(split.error_gap.values, 0.0, atol=1e-9)
    assert whole.error_gap.size == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_order_of_the_groups_does_not_matter(loss):
    swapped = tm.theory.Mixture(
        {"-": 0.25, "+": 0.75}, {"-": 1.2, "+": 0.5},
        PAPER.gram.values[np.ix_([1, 0, 3, 2], [1, 0, 3, 2])], {"-": -0.1, "+": 0.2},
    )  # fmt: skip
    one, two = tm.equilibrium(PAPER, loss, 2.0, 0.3), tm.equilibrium(swapped, loss, 2.0, 0.3)
    np.testing.assert_allclose(one.error.values, two.error.sel(group=["+", "-"]).values, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "problem",
    [
        tm.teacher_mixture(0.8, 0.0, (0.5, 1.5), 1.0),
        tm.teacher_mixture(0.8, 0.0, (0.5, 1.5), -1.0),
        tm.teacher_mixture(0.8, 1.0, (0.5, 1.5), 1.0, (1.0, 1.0)),
        tm.teacher_mixture(0.5, 0.0, (1.0, 1.0), 0.0),
    ],
)
def test_degenerate_geometry_has_an_equilibrium(loss, problem):
    found = tm.equilibrium(problem, loss, ("samples", [0.5, 3.0]), 0.05)
    assert all(np.isfinite(found[name].values).all() for name in found)


def test_equal_groups_have_no_bias():
    """The negative control: teachers differ, nothing else does."""
    for loss in LOSSES:
        found = tm.equilibrium(tm.teacher_mixture(0.5, 0.0, (1.0, 1.0), 0.5), loss, 2.0, 0.1)
        for name in ("error_gap", "tpr_gap", "positive_rate_gap", "loss_gap"):
            assert abs(found[name].item()) < 1e-9
        assert found.disparate_impact.item() == pytest.approx(1.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_strong_coupling_is_joint_training_without_bias(loss):
    stiff = tm.equilibrium(PAPER, loss, 2.0, 0.3, coupling=1e7, bias=False)
    joint = tm.equilibrium(PAPER, loss, 2.0, 0.6, bias=False)  # two students pay the ridge twice
    same(joint, stiff, 1e-5, skip=("Q",))
    np.testing.assert_allclose(stiff.Q.values, joint.Q.item(), atol=1e-5)
    np.testing.assert_allclose(stiff.student_overlap.values, joint.Q.item(), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_coupling_is_separate_training(loss):
    free = tm.equilibrium(PAPER, loss, 2.0, 0.3, coupling=0.0)
    alone = tm.theory.Mixture({"+": 1.0}, {"+": 0.5}, [[1.0, 0.4], [0.4, 1.0]], {"+": 0.2})
    single = tm.equilibrium(alone, loss, 1.5, 0.3)
    for name in (*ORDER, "error", "training_loss"):
        np.testing.assert_allclose(free[name].sel(group="+").values, np.ravel(single[name])[0], atol=1e-7)


def test_training_loss_is_below_the_loss_and_meets_it_with_many_samples():
    found = tm.equilibrium(PAPER, tm.Logistic(), ("samples", [0.5, 5.0, 1e5]), 0.1)
    assert (found.training_loss < found.loss).all()
    np.testing.assert_allclose(found.training_loss.isel(samples=-1), found.loss.isel(samples=-1), atol=2e-4)


def test_a_grid_is_its_points():
    problem = tm.teacher_mixture(("rho", [0.3, 0.6, 0.9]), 0.5, (0.5, ("variance", [0.7, 2.0])), 0.5, (0.3, 0.1))
    found = tm.equilibrium(
        problem, tm.Logistic(), ("samples", [0.5, 2.0]), ("ridge", [0.3]), {"+": 1.0, "-": ("w", [1.0, 3.0])}
    )
    assert dict(found.error.sizes) == {"group": 2, "rho": 3, "variance": 2, "samples": 2, "ridge": 1, "w": 2}
    cell = {"rho": 0.9, "variance": 2.0, "samples": 0.5, "ridge": 0.3, "w": 1}
    one = tm.teacher_mixture(0.9, 0.5, (0.5, 2.0), 0.5, (0.3, 0.1))
    same(tm.equilibrium(one, tm.Logistic(), 0.5, 0.3, {"+": 1.0, "-": 3.0}), found.sel(cell), 1e-7)


def test_warm_starts_do_not_change_the_answer():
    ridges = np.geomspace(10, 1e-5, 8)
    down = tm.equilibrium(PAPER, tm.Logistic(), 0.8, ("ridge", ridges))
    up = tm.equilibrium(PAPER, tm.Logistic(), 0.8, ("ridge", ridges[::-1]))
    same(down, up.sel(ridge=ridges), 1e-6)


def test_small_ridge_on_separable_data_is_the_maximum_margin():
    """Logistic and hinge meet where both find the separating direction of largest margin (up to 1/log corrections)."""
    hinge = tm.equilibrium(PAPER, tm.losses.Hinge(), 0.5, ("ridge", np.geomspace(0.3, 1e-2, 4)), bias=False).isel(
        ridge=-1
    )
    logistic = tm.equilibrium(PAPER, tm.Logistic(), 0.5, ("ridge", np.geomspace(0.3, 1e-7, 9)), bias=False).isel(
        ridge=-1
    )
    cosine = [float(found.R.sel(group="+") / np.sqrt(found.Q)) for found in (hinge, logistic)]
    assert cosine[0] == pytest.approx(cosine[1], abs=0.02)
    assert hinge.training_loss.max() < 1e-3


@dataclass(frozen=True)
class Huber(tm.losses.Loss):
    """A user's own loss in one small class: the square up to a distance of 1/2 from the label, then linear."""

    definition = "Huber loss"
    kinks = (0.5, 1.5)

    def value(self, score, y):
        off = np.abs(score - y)
        return np.where(off < 0.5, 0.5 * off**2, 0.5 * off - 0.125)

    def gradient(self, score, y):
        return np.clip(score - y, -0.5, 0.5)

    def curvature(self, score, y):
        return (np.abs(score - y) < 0.5).astype(float)


def test_a_users_loss_is_one_small_class():
    found = tm.equilibrium(PAPER, Huber(), 2.0, 0.5)
    assert found.loss.attrs["definition"] == "Huber loss"
    assert Origin.from_json(found.attrs["origin"]).settings["objective"]["loss"]["definition"] == "Huber loss"
    assert 0.1 < found.error.min() < found.error.max() < 0.4
    run = tm.equilibrium(PAPER, tm.Square(), 2.0, 0.5)
    assert abs(run.error - found.error).max() < 0.05


def test_observables_are_those_of_predict():
    found = tm.equilibrium(PAPER, tm.Square(), 2.0, 0.5)
    assert set(EVERY) <= set(found)
    assert found.error.attrs["better"] == "lower"
    assert found.loss.attrs["definition"] == "half squared error"
    assert tm.equilibrium(PAPER, tm.Logistic(), 2.0, 0.5).loss.attrs["definition"] == "logistic loss"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ridge", [3.0, 1e-3])
def test_the_compiled_averages_are_the_general_ones(loss, ridge):
    point = flatten(PAPER, Objective(loss, 2.0, ridge, {("+", 1): 0.5, "-": 2.0})).points[0]
    found = solve(loss, point)
    law = channel(
        *score_intervention(found.M, found.R, found.Q, found.bias, point.D),
        point.a,
        corners(loss, np.array([[1.0, -1.0]]), found.V[:, None] * point.s),
    )
    fast = averages(loss, point, found.M, found.R, found.Q, found.bias, found.V)
    slow = general_averages(loss, law, point.s, found.V)
    for name in ("f", "square", "slope", "turn", "training_loss"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-12, err_msg=name)


def test_it_can_be_saved_and_loaded(tmp_path):
    found = tm.equilibrium(PAPER, tm.Square(), ("samples", [1.0, 2.0]), 0.5, coupling=0.3)
    tm.save(found, tmp_path / "run")
    assert tm.load(tmp_path / "run").identical(found)


def test_the_origin_rebuilds_the_result():
    found = tm.equilibrium(PAPER, tm.losses.Hinge(), ("samples", [1.0, 2.0]), 0.5, {"+": 0.5})
    origin = Origin.from_json(found.attrs["origin"])
    again = Objective.from_json(origin.settings["objective"])
    rebuilt = tm.equilibrium(
        tm.theory.Mixture.from_json(origin.problem), again.loss, again.samples, again.ridge, again.weights, again.bias
    )
    assert rebuilt.identical(found)


@pytest.mark.parametrize("loss", [tm.Logistic(), tm.losses.Hinge()])
def test_separable_data_need_a_ridge(loss):
    limit = tm.theory.separability(PAPER).item()
    with pytest.raises(ValueError, match=r"With ridge = 0 there is no single minimiser: .* up to samples = 5\.568"):
        tm.equilibrium(PAPER, loss, 0.95 * limit, 0.0)
    found = tm.equilibrium(PAPER, loss, 1.5 * limit, 0.0)
    near = tm.equilibrium(PAPER, loss, 1.5 * limit, 1e-8)
    same(found, near, 1e-4)


def test_the_grid_point_without_minimiser_is_named():
    with pytest.raises(ValueError, match="no single minimiser at samples = 1, ridge = 0: the data"):
        tm.equilibrium(PAPER, tm.Logistic(), ("samples", [10.0, 1.0]), ("ridge", [0.0]))


def test_square_without_ridge_needs_more_samples_than_dimensions():
    with pytest.raises(ValueError, match=r"With ridge = 0 and 0.9 examples per dimension many students fit"):
        tm.equilibrium(PAPER, tm.Square(), 0.9, 0.0)
    with pytest.raises(ValueError, match=r"With ridge = 0 and 0.9 examples per dimension many students fit"):
        tm.equilibrium(PAPER, tm.Square(), 1.2, 0.0, weights={"-": 0.0})
    free, near = (tm.equilibrium(PAPER, tm.Square(), 1.5, ridge) for ridge in (0.0, 1e-9))
    same(free, near, 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_label_alone_needs_no_student(loss):
    with pytest.raises(ValueError, match=r"examples of one label only, which its bias alone fits. Give both labels"):
        tm.equilibrium(PAPER, loss, 2.0, 0.1, weights={("+", 1): 0.0, ("-", 1): 0.0})
    assert (
        tm.equilibrium(PAPER, loss, 2.0, 0.1, weights={("+", 1): 0.0, ("-", 1): 0.0}, bias=False).error.notnull().all()
    )


def test_what_was_not_found_is_reported_with_its_residual(monkeypatch):
    monkeypatch.setattr("tiltmeter.theory.dynamics.fixed_point.PATIENCE", 1)
    monkeypatch.setattr("tiltmeter.theory.dynamics.fixed_point.WALK", np.array([]))
    with pytest.raises(
        ValueError, match=r"not found: the residual is .* Try a larger ridge, or reach this point along"
    ):
        tm.equilibrium(PAPER, tm.Logistic(), 2.0, 1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("samples", [0.2, 8.0, 1e3])
@pytest.mark.parametrize("ridge", [1e-2, 1.0])
@pytest.mark.parametrize("coupling", [None, 0.5])
def test_the_fixed_point_is_found_from_nothing(loss, samples, ridge, coupling):
    point = flatten(PAPER, Objective(loss, samples, ridge, coupling=coupling)).points[0]
    assert solve(loss, point).residual < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("samples", [0.2, 1.0, 8.0, 1e3])
@pytest.mark.parametrize("ridge", [1e-6, 1e-4, 1e-1, 1e2])
@pytest.mark.parametrize("coupling", [None, 0.5])
def test_even_hard_fixed_points_are_found_from_nothing(loss, samples, ridge, coupling):
    """Separable data with hardly any ridge; a ridge so strong that all scores are alike."""
    point = flatten(PAPER, Objective(loss, samples, ridge, coupling=coupling)).points[0]
    assert solve(loss, point).residual < TOLERANCE
