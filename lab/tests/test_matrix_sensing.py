"""Matrix sensing: greedy solutions against the exact ones of a matrix that is seen whole."""

import numpy as np
import pytest

from tiltmeter_lab.shared.matrix_sensing import Sensing, descend, greedy_solutions, sensing


def test_seen_whole_the_greedy_solutions_are_the_leading_eigenvectors():
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    values = np.array([3.0, 2.0, 1.0, 0, 0, 0])
    task = Sensing((vectors * values) @ vectors.T, np.eye(36))
    for rank, found in enumerate(greedy_solutions(task, 3, 0.05, 2000), start=1):
        exact = (vectors[:, :rank] * values[:rank]) @ vectors[:, :rank].T
        assert np.linalg.norm(found - exact) < 1e-6


def test_the_gradient_is_that_of_the_loss():
    task = sensing(4, (2.0, 1.0), 50, 3)
    rng = np.random.default_rng(1)
    point, direction = (one + one.T for one in rng.normal(size=(2, 4, 4)))

    def loss(product):
        error = (product - task.target).ravel()
        return 0.5 * error @ task.operator @ error

    slope = (loss(point + 1e-5 * direction) - loss(point - 1e-5 * direction)) / 2e-5
    assert slope == pytest.approx((task.gradient(point) * direction).sum(), rel=1e-6)


def test_descent_solves_the_task():
    task = sensing(5, (2.0, 1.0), 400, 0)
    *_, last = descend(task, 1e-3 * np.random.default_rng(0).normal(size=(5, 5)), 0.02, 3000, 3000)
    assert np.linalg.norm(last - task.target) < 0.05
