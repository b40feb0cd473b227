"""Principal components against the singular values of the inputs."""

import numpy as np
import pytest

from tiltmeter.data.principal_components import principal_components


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(40, 5)) * [5, 3, 2, 1, 0.5] + 7.0


def test_components_are_the_singular_vectors(x):
    found = principal_components(x)
    _, sizes, rows = np.linalg.svd(x - x.mean(0), full_matrices=False)
    assert found.variances == pytest.approx(sizes**2 / len(x))
    assert np.abs((found.directions * rows).sum(1)) == pytest.approx(1.0)


def test_truncation_keeps_the_leading_variance_only(x):
    found = principal_components(x)
    for kept in range(6):
        lost = ((found.truncate(x, kept) - x) ** 2).sum(1).mean()
        assert lost == pytest.approx(found.variances[kept:].sum(), abs=1e-10)


def test_moments_about_zero_without_centring(x):
    found = principal_components(x, centre=False)
    assert found.variances.sum() == pytest.approx((x**2).sum(1).mean())
    assert not found.mean.any()


def test_directions_without_variance_are_left_out(x):
    x[:, 2] = 3.0
    assert len(principal_components(x)) == 4


@pytest.mark.parametrize("same", [np.full((5, 3), 2.3), np.zeros((4, 2)), np.ones((1, 6))])
def test_inputs_all_alike_are_refused(same):
    with pytest.raises(ValueError, match="Inputs should vary"):
        principal_components(same)
