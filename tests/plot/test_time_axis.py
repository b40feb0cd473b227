"""The time axis: ticks, labels, thinning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltmeter.plot.time_axis import log_ticks, thinned, tick_labels, time_domain


@given(st.floats(1e-8, 1e8), st.floats(1.001, 1e9))
def test_ticks_lie_on_the_axis_and_increase(low: float, factor: float) -> None:
    ticks = log_ticks(low, low * factor)
    assert 2 <= len(ticks) <= 9
    assert all(low * (1 - 1e-8) <= tick <= low * factor * (1 + 1e-8) for tick in ticks)
    assert (np.diff(ticks) > 0).all()


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1.0, 1000.0, [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]),
        (3.0, 40.0, [3.0, 10.0, 30.0]),
        (2.1, 5.2, [3.0, 4.0, 5.0]),
        (990.0, 999.0, [990.0, 999.0]),
        (5.0, 5.0, [5.0]),
    ],
)
def test_ticks(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high) == ticks


def test_millions_are_abbreviated() -> None:
    assert "'~s'" in tick_labels([1.0, 1e6])
    assert "'~s'" not in tick_labels([0.01, 100.0])


@given(st.integers(2, 5_000), st.integers(2, 600))
def test_thinning_keeps_the_ends_and_the_order(number: int, most: int) -> None:
    times = np.arange(number, dtype=float)
    kept = thinned(times, most)
    assert kept[0] == 1
    assert kept[-1] == number - 1
    assert len(kept) <= max(most, 1)
    assert (np.diff(kept) > 0).all()


def test_thinning_spreads_in_log_time() -> None:
    kept = thinned(np.arange(100_001), 501)
    per_decade = [((kept >= 10**k) & (kept < 10 ** (k + 1))).sum() for k in (3, 4)]
    assert per_decade == [100, 100]


def test_domain_needs_a_positive_time() -> None:
    assert time_domain(np.array([0.0, 2.0, 8.0])) == (2.0, 8.0)
    assert time_domain(np.array([0.0, 4.0])) == (2.0, 8.0)
    with pytest.raises(ValueError, match="needs a time after 0"):
        time_domain(np.array([0.0]))
