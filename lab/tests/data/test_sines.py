"""Sums of sines: what they hold and how points are spread."""

import numpy as np
import pytest

from tiltmeter_lab.data.sines import Sines, random_phases, sines


def test_every_frequency_lies_in_its_own_bin():
    target = Sines((1, 3, 7), (1.0, 2.0, 0.5), random_phases((1, 3, 7), 3))
    sizes = 2 * np.abs(np.fft.rfft(target(target.grid(64)))) / 64
    assert sizes[[1, 3, 7]] == pytest.approx([1.0, 2.0, 0.5])
    assert np.delete(sizes, [1, 3, 7]).max() < 1e-12


def test_points_follow_the_densities():
    data = sines(points=700, densities=(1, 2, 4))
    assert list(data.sizes.values()) == [100, 200, 400]
    assert (np.diff(data.x[:, 0]) > 0).all()
    assert data.y == pytest.approx(Sines()(data.x[:, 0]))


def test_even_points_are_a_grid_without_its_end():
    data = sines(points=128)
    assert data.x[:, 0] == pytest.approx(Sines().grid(128))
    assert data.x.max() < 1.0


def test_random_points_stay_in_their_region_and_repeat():
    data = sines(points=200, densities=(3, 1), seed=1)
    assert (data.x[data.of_group("region 1")] <= 0).all()
    assert np.array_equal(data.x, sines(points=200, densities=(3, 1), seed=1).x)
    assert not np.array_equal(data.x, sines(points=200, densities=(3, 1), seed=2).x)


def test_the_circle_goes_round_once():
    data = sines(points=64, circle=True)
    assert np.linalg.norm(data.x, axis=1) == pytest.approx(1.0)
    angle = np.unwrap(np.arctan2(data.x[:, 1], data.x[:, 0]))
    assert angle[-1] - angle[0] == pytest.approx(2 * np.pi * 63 / 64)


def test_whole_numbers_may_be_given_as_floats():
    assert Sines((2.0, 4.0)) == Sines((2, 4))
    assert all(isinstance(k, int) for k in Sines((2.0, 4.0)).frequencies)


def test_impossible_sines_are_refused():
    with pytest.raises(ValueError, match="`frequencies` should be whole numbers from 1"):
        Sines((0, 1))
    with pytest.raises(ValueError, match="`phases` should have one number per frequency"):
        Sines((1, 2), phases=(0.5,))
    with pytest.raises(ValueError, match="`low` should lie below `high`"):
        Sines(low=1.0, high=1.0)
    with pytest.raises(ValueError, match="`densities` should be positive"):
        sines(densities=(1, 0))
    with pytest.raises(ValueError, match="at least one per region"):
        sines(points=1, densities=(1, 1))
