"""The channel: averages over score and label by a second route."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import tiltmeter as tm
from tiltmeter.theory.population.channel import channel, score_intervention
from tiltmeter.theory.population.trained_students import TrainedStudents, by_formula


@pytest.mark.parametrize("r", [0.0, 0.5, -0.9, 0.999, 1.0 - 1e-7])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_averages_are_those_of_adaptive_quadrature(r, scale):
    mean, a, rest = 0.3, -0.4, np.sqrt((1 - r) * (1 + r))
    law = channel(*(np.array([x]) for x in (mean, scale, r, rest, a)))
    loss = tm.Logistic()

    def integrand(xi, y):
        p = norm.cdf(y * (a + r * xi) / rest)
        return norm.pdf(xi) * p * loss.value(np.array(mean + scale * xi), np.array(y))

    turn = [-a / r + k * rest for k in (-7, -2, 0, 2, 7)] if abs(r) > 0.3 else None
    expected = sum(quad(integrand, -9, 9, args=(y,), points=turn, limit=400, epsabs=1e-12)[0] for y in (1.0, -1.0))
    assert law.mean(loss.value(law.score, law.label)).item() == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("r", [0.3, -0.7, 0.98])
def test_slope_is_the_derivative_with_the_threshold(r):
    def average(a):
        law = channel(*(np.array([x]) for x in (0.3, 1.4, r, np.sqrt(1 - r * r), a)))
        return law.mean(np.tanh(law.score) * law.label).item(), law.response(np.tanh(law.score) * law.label).item()

    h = 1e-5
    assert average(0.2)[1] == pytest.approx((average(0.2 + h)[0] - average(0.2 - h)[0]) / (2 * h), rel=1e-6)


def test_corners_are_cut():
    law = channel(*(np.array([x]) for x in (0.3, 1.4, 0.6, 0.8, 0.2)), cuts=np.array([[[1.0], [-1.0]]]))
    value = law.mean(tm.losses.Hinge().value(law.score, law.label)).item()
    fine = channel(*(np.array([x]) for x in (0.3, 1.4, 0.6, 0.8, 0.2)), fineness=200)
    assert value == pytest.approx(fine.mean(tm.losses.Hinge().value(fine.score, fine.label)).item(), abs=1e-6)
    assert value == pytest.approx(law.mean(tm.losses.Hinge().value(law.score, law.label)).item(), abs=1e-12)


def test_square_loss_is_that_of_the_dynamics():
    problem, sgd = tm.teacher_mixture(0.7, 1.0, (0.5, 1.5), 0.5, (0.3, 0.1), (0.2, 0.0)), tm.SGD(lr=0.1)
    end = tm.theory.asymptotes(problem, sgd)
    a = (np.array([0.3, -0.1]) + np.array([0.2, 0.0])) / np.sqrt([0.5, 1.5])
    one = np.ones((1, 2))
    rest = TrainedStudents(
        np.array([[0.7, 0.3]]), np.array([[0.5, 1.5]]), a[None], end.M.values[None], end.R.values[None],
        end.Q.item() * one, 0.0 * one,
    )  # fmt: skip
    found = by_formula(rest, tm.Square())
    for name in found:
        np.testing.assert_allclose(found[name][0], end[name].values, atol=1e-10, err_msg=name)


def test_a_student_of_length_zero_has_a_law():
    zero = np.zeros(1)
    mean, scale, r, rest = score_intervention(zero, zero, zero, zero + 0.2, np.ones(1))
    assert (mean.item(), r.item(), rest.item()) == (0.2, 0.0, 1.0)
    law = channel(mean, scale, r, rest, zero)
    assert law.mean(law.score).item() == pytest.approx(0.2)
