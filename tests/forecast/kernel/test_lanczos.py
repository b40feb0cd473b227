"""Lanczos against the full eigendecomposition, and its own word about its error."""

import numpy as np
import pytest

from tiltmeter.forecast.kernel.solvers.convex import features
from tiltmeter.forecast.kernel.solvers.square import TOLERANCE, lanczos, square_course
from tiltmeter.recipe.plain_sgd import PlainSGD


def kernel(size=400, decay=1.2, seed=0):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    return (basis * (size * np.arange(1.0, size + 1) ** -decay)) @ basis.T


@pytest.mark.parametrize("columns", [1, 3])
def test_same_as_eigh_at_all_steps(columns):
    matrix, rng = kernel(), np.random.default_rng(1)
    distance, cross = rng.normal(size=(400, columns)), rng.normal(size=(50, 400))
    evaluations = np.array([0, 1, 10, 100, 1000, 10_000])
    share = rng.uniform(0.5, 1.5, 400) / 400
    course = square_course(matrix, cross, distance, np.zeros((50, columns)), share, PlainSGD(0.5, 10_000), evaluations)
    root = np.sqrt(share)[:, None]
    values, vectors = np.linalg.eigh(root * matrix * root.T)
    for step, found in zip(evaluations, course.outputs, strict=True):
        gone = (1 - (1 - 0.5 * values) ** step) / values
        expected = -cross @ (root * (vectors @ (gone[:, None] * (vectors.T @ (root * distance)))))
        # The outputs at other points are products with rows of length 20, the error at the sample times a few.
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max(initial=1.0))
    assert course.error <= 2 * TOLERANCE * np.sqrt((root**2 * distance**2).sum(0)).max()


def test_whole_space_is_exact():
    matrix, start = kernel(60), np.random.default_rng(2).normal(size=(60, 2))
    space = lanczos(lambda v: matrix @ v, start, lambda _: False)
    np.testing.assert_allclose(space.modes()[0], np.linalg.eigvalsh(matrix), rtol=1e-10)
    np.testing.assert_allclose(space.basis.T @ space.basis, np.eye(60), atol=1e-12)
    np.testing.assert_allclose(space.image(), matrix @ space.basis, atol=1e-10)
    function = space.basis @ np.linalg.matrix_power(space.inside, 3) @ space.start
    np.testing.assert_allclose(function, np.linalg.matrix_power(matrix, 3) @ start, rtol=1e-9, atol=1e-5)


def test_low_rank_ends_early():
    rows = np.random.default_rng(0).normal(size=(300, 5))
    space = lanczos(lambda v: rows @ (rows.T @ v), rows[:, :1] * 1.0, lambda _: False)
    assert space.basis.shape[1] <= 6
    assert space.beyond.shape[1] == 0


def test_the_space_before_the_end_knows_what_it_sends_out():
    matrix, start = kernel(100), np.random.default_rng(2).normal(size=(100, 2))
    space = lanczos(lambda v: matrix @ v, start, lambda krylov: krylov.passes >= 8)
    assert space.basis.shape[1] == 16
    np.testing.assert_allclose(space.image(), matrix @ space.basis, atol=1e-9)
    outside = matrix @ space.basis - space.basis @ space.inside
    coefficients = np.random.default_rng(3).normal(size=(16, 4))
    expected = np.linalg.norm(outside @ coefficients, axis=0).max()
    assert space.leak(coefficients) == pytest.approx(expected, rel=1e-8)


def test_features_never_exceed_the_kernel_and_say_what_they_miss():
    matrix, start = kernel(300), np.random.default_rng(2).normal(size=(300, 2))
    found = features(matrix, matrix[:10], start, most=60)
    rest = matrix - found.sample @ found.sample.T
    assert np.linalg.eigvalsh(rest)[0] > -1e-8 * matrix.trace()
    assert found.missing == pytest.approx(rest.trace() / matrix.trace(), rel=1e-6)
    assert 0 < found.missing < 0.5
    np.testing.assert_allclose(found.held_out, found.sample[:10], atol=1e-8)
