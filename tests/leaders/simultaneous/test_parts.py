"""The parts of a band: balance, exact limits of rates, the gate, and statements of a band."""

import numpy as np
import pytest
from scipy import stats

from tiltmeter.leaders.bands import Band, PermutationGate, balanced, clopper_pearson, limits_of_rates
from tiltmeter.leaders.points import PointCurve, pairs


def test_balance_exceeds_as_often_as_stated_and_every_column_equally_often():
    draws = np.random.default_rng(0).normal(size=(20_000, 3)) * [1.0, 5.0, 0.1]
    over = draws > balanced(draws, 0.05)
    assert over.any(1).mean() == pytest.approx(0.05, abs=0.001)
    np.testing.assert_allclose(over.mean(0), 1 - 0.95 ** (1 / 3), atol=0.002)


def test_balance_of_one_statistic_is_its_quantile():
    draws = np.arange(1000.0)[:, None]
    assert balanced(draws, 0.05)[0] == pytest.approx(950, abs=1)


def test_balance_is_exact_for_exchangeable_rows():
    rng = np.random.default_rng(1)
    hits = [(rows := rng.normal(size=(100, 2)))[0] > balanced(rows, 0.1) for _ in range(2000)]
    assert np.any(hits, 1).mean() <= 0.1 + 3 * (0.09 / 2000) ** 0.5


@pytest.mark.parametrize(("hits", "count"), [(0, 7), (7, 7), (3, 20), (50, 400)])
def test_limits_of_a_share_by_the_binomial_itself(hits, count):
    low, high = clopper_pearson(np.array([hits]), np.array([count]), 0.01)
    exact = stats.binomtest(hits, count).proportion_ci(0.98, "exact")
    assert low[0] == pytest.approx(exact.low, abs=1e-9)
    assert high[0] == pytest.approx(exact.high, abs=1e-9)


def test_limits_of_a_difference_are_those_of_newcombe_with_exact_limits_of_each():
    lower, upper = limits_of_rates(np.array([[[0.7, 0.4]]]), np.array([[50, 200]]), 0.02)
    first, second = (stats.binomtest(hits, count).proportion_ci(0.96, "exact") for hits, count in ((35, 50), (80, 200)))
    assert lower.item() == pytest.approx(0.3 - np.hypot(0.7 - first.low, second.high - 0.4))
    assert upper.item() == pytest.approx(0.3 + np.hypot(first.high - 0.7, 0.4 - second.low))


def test_the_gate_is_exact_even_for_a_small_group_with_heavy_tails():
    passed = 0
    for deal in range(300):
        rng = np.random.default_rng(deal)
        values = np.exp(1.5 * rng.normal(size=(6, 120)))
        codes = rng.permutation(np.repeat([0, 1], [12, 108]))
        loss, tpr = PointCurve("loss", values), PointCurve("tpr", values > 3, rng.random(120) < 0.5)
        gate = PermutationGate([loss, tpr], codes, dict.fromkeys(("loss", "tpr"), pairs(2)), 99, rng)
        both = gate.passed(["loss", "tpr"], 0.1)
        passed += both["loss"].any() or both["tpr"].any()
    assert passed / 300 <= 0.1 + 3 * (0.09 / 300) ** 0.5
    assert passed / 300 >= 0.03


def test_a_band_that_fails_the_gate_includes_no_difference():
    band = Band(np.array([[0.5, -0.5]]), np.array([[0.2, -0.7]]), np.array([[0.8, -0.1]]))
    assert band.shown.tolist() == [[1, -1]]
    closed = band.gated(np.array([[False, True]]))
    assert closed.shown.tolist() == [[0, -1]]
    assert (closed.lower[0, 0], closed.upper[0, 0]) == (0.0, 0.8)
