"""The bivariate normal distribution function against 50 digits, SciPy and its own identities."""

import itertools
import subprocess
import sys
import tracemalloc

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath.calculus.quadrature import GaussLegendre
from numba.core.caching import NullCache
from scipy.special import ndtr, owens_t
from scipy.stats import multivariate_normal

from tiltmeter.theory.dynamics.fixed_set.training_curves import bivariate_normal_cdf
from tiltmeter.theory.population import compiled_normal

DIGITS = 50


# The oracle: Owen (Tables for computing bivariate normal probabilities, Ann. Math. Stat. 1956) at 50 digits.


def exact_normal(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def exact_owen(h, a):
    """T(h, a) = ∫₀ᵃ exp(-h² (1 + x²) / 2) / (1 + x²) dx / (2π)."""
    if a < 0:
        return -exact_owen(h, -a)
    if a > 1:
        h = abs(h)
        both = exact_normal(h), exact_normal(a * h)
        return (both[0] + both[1]) / 2 - both[0] * both[1] - exact_owen(a * h, 1 / a)
    points = ((a * (1 + x) / 2, w) for x, w in NODES)
    total = sum(w * mpmath.exp(-h * h * (1 + x * x) / 2) / (1 + x * x) for x, w in points)
    return a * total / (4 * mpmath.pi)


def exact_bivariate(h, k, r):
    h, k, r = mpmath.mpf(h), mpmath.mpf(k), mpmath.mpf(r)
    if h == k == 0:
        return mpmath.mpf(1) / 4 + mpmath.asin(r) / (2 * mpmath.pi)
    root = mpmath.sqrt((1 - r) * (1 + r))

    def owen(x, y):
        return mpmath.sign(y) / 4 if x == 0 else exact_owen(x, (y - r * x) / (x * root))

    same_side = h * k > 0 or (h * k == 0 and h + k >= 0)
    return (exact_normal(h) + exact_normal(k) - (0 if same_side else 1)) / 2 - owen(h, k) - owen(k, h)


with mpmath.workdps(DIGITS):
    NODES = GaussLegendre(mpmath.mp).calc_nodes(5, mpmath.mp.prec)  # 48 of them


@pytest.fixture(scope="module")
def oracle():
    """Points on every branch, with the exact value as a sum of two doubles."""
    levels = (-9.0, -4.7, -1.8, 0.0, 0.6, 2.3)
    pairs = list(itertools.combinations_with_replacement(levels, 2))
    pairs += [(x, -x) for x in (-9.0, -4.7, -1.8, -0.4)]
    pairs += [(x, s * x + d) for x in (-7.0, -1.1) for s in (-1, 1) for d in (-1e-3, 1e-6)]
    near_one = [1 - 10.0**-e for e in (3, 6, 12)]
    r = np.array([0.03, 0.4, 0.8499, 0.8501, 0.95, *near_one])
    points = [(h, k, x) for h, k in pairs for x in (*-r, 0.0, *r)]
    with mpmath.workdps(DIGITS):
        exact = [exact_bivariate(*point) for point in points]
        high = np.array([float(x) for x in exact])
        rest = np.array([float(x - y) for x, y in zip(exact, high.tolist(), strict=True)])
    return *np.array(points).T, high, rest


def test_absolute_error_against_50_digits(oracle):
    h, k, r, high, rest = oracle
    error = np.abs(bivariate_normal_cdf(h, k, r) - high - rest)
    assert error.max() < 5e-16


def test_error_relative_to_the_smaller_marginal(oracle):
    h, k, r, high, rest = oracle
    error = np.abs(bivariate_normal_cdf(h, k, r) - high - rest)
    lower = np.minimum(h, k)
    assert (error / ndtr(lower) / (1 + np.minimum(lower, 0) ** 2)).max() < 5e-16


def test_leading_digits_in_the_lower_tail(oracle):
    h, k, r, high, rest = oracle
    kept = (r > -1 + 1e-5) & (high > 1e-35)  # the oracle itself has 50 digits after the point
    error = np.abs(bivariate_normal_cdf(h, k, r) - high - rest)
    assert (error[kept] / high[kept]).max() < 1e-12
    assert high[kept].min() < 1e-30


@pytest.mark.parametrize(
    ("h", "k", "r", "exact"),
    [  # by ∫ φ(x) Φ((k - rx) / √(1 - r²)) dx over x ≤ h, in Gauss-Legendre panels at 50 digits
        (-12.0, -12.0, 0.25, 1.6292854700235839346e-53),
        (-30.0, -29.0, 0.9375, 3.8713096234433017728e-200),
        (-20.0, -19.5, 0.9990234375, 2.7536241186062336951e-89),
        (-5.0, -6.0, -0.8125, 2.3511750644926821347e-74),
        (-10.0, 7.5, -0.953125, 2.2946532588640320322e-35),
        (-37.0, -3.0, 0.125, 5.4371504831848190063e-300),
        (-14.0, 12.0, -0.5, 7.7935367793865376991e-45),
        (2.0, -15.0, -0.5, 3.1456545920077709046e-61),
        (-3.0, -3.0, -0.9375, 5.6866142864201001376e-67),
        (-25.0, 24.0, -0.96875, 4.6625604507285222621e-139),
        (-7.0, -6.5, 0.875, 3.8823606245685202945e-13),
        (-9.5, 20.0, -0.5, 1.0494515075362607493e-21),
        (-35.0, 35.0, -0.9375, 1.1249107061180996447e-268),
        (-9.25, -9.25, 1 - 2.0**-50, 1.122463182559742098e-20),
        (-11.0, -11.0, 1 - 2.0**-30, 1.9102947625659617117e-28),
    ],
)
def test_far_tails(h, k, r, exact):
    assert bivariate_normal_cdf(h, k, r) == pytest.approx(exact, rel=1e-12, abs=0)


def test_owens_identity_by_scipy():
    rng = np.random.default_rng(5)
    h, k = rng.normal(scale=1.5, size=(2, 3000))
    r = rng.uniform(-1, 1, 3000)
    root = np.sqrt((1 - r) * (1 + r))
    other = (ndtr(h) + ndtr(k) - (h * k < 0)) / 2
    other -= owens_t(h, (k / h - r) / root) + owens_t(k, (h / k - r) / root)
    np.testing.assert_allclose(bivariate_normal_cdf(h, k, r), other, rtol=0, atol=2e-15)


def test_multivariate_normal_of_scipy():
    for h, k, r in [(0.3, -0.4, 0.2), (1.0, 2.0, -0.7), (-1.5, -0.5, 0.9), (2.0, 2.1, 0.99), (-0.2, 0.4, -0.97)]:
        other = multivariate_normal.cdf([h, k], cov=[[1, r], [r, 1]])
        assert bivariate_normal_cdf(h, k, r) == pytest.approx(other, abs=1e-13)


def test_orthant_probability():
    r = np.linspace(-1, 1, 401)
    np.testing.assert_allclose(bivariate_normal_cdf(0.0, 0.0, r), 0.25 + np.arcsin(r) / (2 * np.pi), rtol=0, atol=3e-16)


# Identities. Levels beyond ±40 are as good as infinite; r near ±1 is where the branches differ most.

level = st.one_of(st.floats(-40, 40), st.floats(-3, 3), st.sampled_from([-np.inf, np.inf]))
gap = st.floats(0, 12).map(lambda e: 10.0**-e)
correlation = st.one_of(st.floats(-1, 1), gap.map(lambda x: 1 - x), gap.map(lambda x: x - 1))
many_cases = settings(max_examples=80, deadline=None)


@many_cases
@given(level, level, correlation)
def test_swapping_the_variables_changes_nothing(h, k, r):
    assert bivariate_normal_cdf(h, k, r) == bivariate_normal_cdf(k, h, r)


@many_cases
@given(level, level, correlation)
def test_both_sides_of_one_level_add_up_to_the_marginal(h, k, r):
    total = bivariate_normal_cdf(h, k, r) + bivariate_normal_cdf(h, -k, -r)
    assert total == pytest.approx(ndtr(h), rel=2e-15 * (1 + min(h * h, 1600.0)), abs=1e-300)


@many_cases
@given(level, level, correlation)
def test_mirror_image(h, k, r):
    mirrored = ndtr(h) - ndtr(-k) + bivariate_normal_cdf(-h, -k, r)
    assert bivariate_normal_cdf(h, k, r) == pytest.approx(mirrored, rel=0, abs=8e-16)


@many_cases
@given(level, level, correlation)
def test_between_the_extreme_couplings(h, k, r):
    value = bivariate_normal_cdf(h, k, r)
    least, most = bivariate_normal_cdf(h, k, [-1.0, 1.0])
    assert 0 <= value <= most
    assert value >= least - 2e-16


@many_cases
@given(level, level, correlation, correlation)
def test_increases_with_the_correlation(h, k, r, s):
    low, high = bivariate_normal_cdf(h, k, sorted((r, s)))
    assert low <= high + 3e-16


@many_cases
@given(level, level)
def test_independence(h, k):
    assert bivariate_normal_cdf(h, k, 0.0) == pytest.approx(ndtr(h) * ndtr(k), rel=1e-12, abs=1e-300)


# Limits, shapes, threads and errors.


@pytest.mark.parametrize("r", [-1.0, -0.9, -0.3, 0.0, 0.5, 0.99, 1.0])
def test_infinite_levels(r):
    x = np.array([-np.inf, -45.0, -3.0, 0.0, 0.7, 12.0, np.inf])
    np.testing.assert_array_equal(bivariate_normal_cdf(x, -np.inf, r), 0)
    np.testing.assert_allclose(bivariate_normal_cdf(x, np.inf, r), ndtr(x), rtol=3e-14, atol=0)
    np.testing.assert_array_equal(bivariate_normal_cdf(1e300, x, r), bivariate_normal_cdf(np.inf, x, r))


def test_perfect_correlation():
    h, k = np.random.default_rng(0).normal(size=(2, 500))
    np.testing.assert_allclose(bivariate_normal_cdf(h, k, 1.0), ndtr(np.minimum(h, k)), rtol=3e-15)
    np.testing.assert_allclose(bivariate_normal_cdf(h, k, -1.0), np.maximum(0, ndtr(h) - ndtr(-k)), rtol=0, atol=2e-16)
    np.testing.assert_array_equal(bivariate_normal_cdf(h, -h, -1.0), 0)


def test_nan_gives_nan_and_nothing_else_does():
    x = np.array([0.5, np.nan])
    value = bivariate_normal_cdf(x[:, None, None], x[:, None], x)
    np.testing.assert_array_equal(np.isnan(value).ravel(), [False] + [True] * 7)
    assert np.isnan(bivariate_normal_cdf(np.nan, [-np.inf, np.inf, 50.0, -50.0], 0.2)).all()
    assert np.isnan(bivariate_normal_cdf([-np.inf, np.inf, 50.0, -50.0], 1.0, np.nan)).all()
    extremes = np.array([-np.inf, -1e300, -39.0, -9.0, -1e-300, 0.0, 1e-300, 9.0, 39.0, 1e300, np.inf])
    r = np.array([-1.0, np.nextafter(-1, 0), -0.85, 0.0, 1e-300, 0.85, np.nextafter(1, 0), 1.0])
    assert np.isfinite(bivariate_normal_cdf(extremes[:, None, None], extremes[:, None], r)).all()


def test_rounding_of_the_correlation_is_forgiven():
    h, k = 0.3, -0.2
    for sign in (-1, 1):
        assert bivariate_normal_cdf(h, k, sign * (1 + 9e-13)) == bivariate_normal_cdf(h, k, sign)


@pytest.mark.parametrize("r", [1.5, -1.5, 1 + 2e-12, np.inf, -np.inf])
def test_impossible_correlation(r):
    with pytest.raises(ValueError, match=r"`r` should lie between -1 and 1. Found r = -?(1\.5|1\.000000000002|inf)"):
        bivariate_normal_cdf(0.0, 0.0, [0.1, np.nan, r])


def test_broadcasting_agrees_with_single_calls():
    rng = np.random.default_rng(1)
    h = rng.normal(size=(4, 1, 1))
    k = rng.normal(size=(6, 10))[::2, ::-2]
    r = np.asfortranarray(rng.uniform(-1, 1, size=(4, 3, 5)))
    k.flags.writeable = False
    value = bivariate_normal_cdf(h, k, r)
    assert value.shape == (4, 3, 5)
    for i in np.ndindex(value.shape):
        assert value[i] == bivariate_normal_cdf(h[i[0], 0, 0], k[i[1:]], r[i])
    assert bivariate_normal_cdf(0, 0, 0) == 0.25
    assert bivariate_normal_cdf(np.empty((0, 2)), 0.0, [0.1, 0.2]).shape == (0, 2)
    with pytest.raises(ValueError, match="broadcast"):
        bivariate_normal_cdf([1.0, 2.0], [1.0, 2.0, 3.0], 0.0)


def test_broadcasting_does_not_lay_out_the_whole():
    bivariate_normal_cdf(0.0, 0.0, 0.0)  # compiled outside the measurement
    h, k = np.linspace(-3, 3, 600)[:, None], np.linspace(-3, 3, 700)
    out = np.empty((600, 700))
    tracemalloc.start()
    bivariate_normal_cdf(h, k, 0.3, out=out, threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < out.nbytes / 3


def test_result_does_not_depend_on_threads():
    rng = np.random.default_rng(2)
    n = 7 * 2**14 + 13
    h, k = rng.normal(scale=2, size=(2, n))
    r = rng.uniform(-1, 1, n)
    once = bivariate_normal_cdf(h, k, r, threads=1)
    for threads in (2, 3, 8, None):
        np.testing.assert_array_equal(bivariate_normal_cdf(h, k, r, threads=threads), once)
    some = rng.integers(0, n, 50)
    np.testing.assert_array_equal(once[some], [bivariate_normal_cdf(h[i], k[i], r[i]) for i in some])


def test_out():
    rng = np.random.default_rng(3)
    h, k = rng.normal(size=(2, 5, 8))
    expected = bivariate_normal_cdf(h, k, 0.4)
    out = np.full((8, 10), np.nan)
    assert bivariate_normal_cdf(h, k, 0.4, out=out.T[::2]) is not None
    np.testing.assert_array_equal(out.T[::2], expected)
    assert np.isnan(out.T[1::2]).all()
    reverse = h[::-1]  # overlaps its own argument
    assert bivariate_normal_cdf(h, k, 0.4, out=reverse) is reverse
    np.testing.assert_array_equal(reverse, expected)
    with pytest.raises(
        ValueError, match=r"`out` should be float64 of shape \(5, 8\). Found float64 of shape \(8, 5\)."
    ):
        bivariate_normal_cdf(h, k, 0.4, out=np.empty((8, 5)))
    with pytest.raises(ValueError, match="Found float32"):
        bivariate_normal_cdf(h, k, 0.4, out=np.empty((5, 8), dtype=np.float32))


def test_numba_is_loaded_on_the_first_call_only():
    code = "import sys, tiltmeter.theory.dynamics.fixed_set.training_curves; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rules_that_share_a_name_are_not_cached_by_it():
    # Two processes that fill one cache file at the same time mix them up: 24 nodes in place of 80, errors of 1e-14.
    rules = (compiled_normal._from_zero_8, compiled_normal._from_zero_32, compiled_normal._from_minus_one_80)
    assert all(isinstance(rule._cache, NullCache) for rule in rules)
    assert not isinstance(compiled_normal.bivariate_into._cache, NullCache)
