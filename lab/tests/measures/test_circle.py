"""The kernel on the circle: eigenvalues, density, and the frequencies that a network without bias cannot learn."""

import numpy as np
import pytest
from scipy.integrate import quad

from tiltmeter_lab.measures.circle import circle_eigenvalues, circle_kernel, region_half_times


def test_odd_frequencies_with_bias_follow_an_exact_law():
    k = np.arange(3, 60, 2)
    assert circle_eigenvalues(60)[k] * k**2 == pytest.approx(1 / (2 * np.pi**2), rel=2e-3)
    assert circle_eigenvalues(60, points=2**16)[k] * k**2 == pytest.approx(1 / (2 * np.pi**2), rel=1e-5)


def test_even_frequencies_approach_the_same_law_from_above():
    lam = circle_eigenvalues(60) * np.arange(61) ** 2
    assert lam[[4, 6, 8, 10]] == pytest.approx([0.0612, 0.0551, 0.0531, 0.0522], abs=6e-5)
    assert (np.diff(lam[4:60:2]) < 0).all()
    assert (lam[4:60:2] > 1 / (2 * np.pi**2)).all()


def test_low_frequencies_come_first():
    assert (np.diff(circle_eigenvalues(60)) < 0).all()


@pytest.mark.parametrize("bias", [True, False])
def test_eigenvalues_are_the_integrals_of_the_kernel(bias):
    for k in range(8):
        integral = quad(lambda a, k=k: float(circle_kernel(a, bias)) * np.cos(k * a) / np.pi, 0, np.pi)[0]
        assert circle_eigenvalues(8, bias, points=2**14)[k] == pytest.approx(integral, abs=1e-7)


def test_without_bias_odd_frequencies_are_never_learned():
    lam = circle_eigenvalues(41, bias=False)
    assert np.abs(lam[3::2]).max() < 1e-6
    k = np.arange(2, 41, 2)
    assert (lam[k] * k**2 > 1 / np.pi**2).all()
    assert region_half_times(3, (1.0,), points=200, bias=False)[0] == np.inf
    assert np.isfinite(region_half_times(4, (1.0,), points=200, bias=False)[0])


def test_a_region_four_times_as_dense_is_learned_four_times_as_fast():
    times = np.array([region_half_times(k) for k in (6, 10, 14)])
    # 1 %: the half times of an even grid of 1,000 points against those of 2,000 differ by 0.3 %.
    assert times[:, 0] == pytest.approx([289, 837, 1658], rel=0.01)
    assert times[:, 1] / times[:, 0] == pytest.approx([3.82, 3.96, 3.97], rel=0.01)
    assert times[:, 0] / np.array([6, 10, 14]) ** 2 == pytest.approx([8.0, 8.4, 8.5], rel=0.01)


def test_even_density_has_one_time():
    first, second = region_half_times(6, (1.0, 1.0), points=400)
    assert first == pytest.approx(second, rel=1e-6)
    assert first == pytest.approx(np.log(2) / circle_eigenvalues(6)[6], rel=0.01)


def test_impossible_requests_are_refused():
    with pytest.raises(ValueError, match="`highest` should lie below half"):
        circle_eigenvalues(32, points=64)
    with pytest.raises(ValueError, match="`densities` should be positive"):
        region_half_times(3, (1.0, -1.0))
    with pytest.raises(ValueError, match="`border` should be shorter"):
        region_half_times(3, border=2.0)
    with pytest.raises(ValueError, match="use more points"):
        region_half_times(3, (1.0, 1000.0), points=100)
