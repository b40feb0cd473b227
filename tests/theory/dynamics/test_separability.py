"""The separability threshold: Cover's two per dimension where nothing can be learnt, and linear programming
elsewhere."""

import numpy as np
import pytest
from scipy.optimize import linprog

import tiltmeter as tm
from tiltmeter.theory.problem.objective import Objective, flatten
from trained_sets import draw


def test_labels_that_carry_no_information_separate_up_to_two_per_dimension():
    """Opposite teachers on equal groups: as good as coin flips (Cover 1965)."""
    assert tm.theory.separability(tm.teacher_mixture(overlap=-1.0)).item() == pytest.approx(2.0, abs=1e-6)


def test_one_teacher_is_always_separable():
    assert tm.theory.separability(tm.teacher_mixture(overlap=1.0)).item() == np.inf


def test_a_grid_and_weights():
    problem = tm.teacher_mixture(overlap=("overlap", [-1.0, 0.0, 0.5]))
    found = tm.theory.separability(problem)
    assert (np.diff(found.values) > 0).all()
    assert np.isinf(tm.theory.separability(problem, weights={"-": 0.0})).all()


@pytest.mark.slow
def test_linear_programming_agrees():
    problem = tm.teacher_mixture(0.75, 1.0, (0.5, 1.2), 0.6, (0.4, 0.2), (0.2, -0.1))
    limit, d = tm.theory.separability(problem).item(), 120
    shares = []
    for factor in (0.8, 1.25):
        point = flatten(problem, Objective(tm.Square(), factor * limit, 1.0)).points[0]
        separable = []
        for seed in range(12):
            data = draw(point, d, round(point.samples * d), np.random.default_rng(seed))
            design = np.column_stack([data.inputs, np.ones(len(data.y))]) * data.y[:, None]
            done = linprog(np.zeros(d + 1), A_ub=-design, b_ub=-np.ones(len(data.y)), bounds=(None, None))
            separable.append(done.status == 0)
        shares.append(np.mean(separable))
    assert shares[0] > 0.9
    assert shares[1] < 0.1
