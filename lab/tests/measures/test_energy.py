"""Energy along lines: tones, ramps and windows, by closed forms."""

import numpy as np
import pytest

from tiltmeter_lab.measures.line_spectrum import FLOOR, energy_ratio, line_energy, mean_frequency

T = np.arange(128) / 128


def test_a_pure_tone_is_one_frequency():
    ratio = energy_ratio(line_energy(np.cos(2 * np.pi * 5 * T)))
    assert ratio[5] == pytest.approx(0.0, abs=1e-12)
    assert np.delete(ratio, 5).max() < -70


def test_a_ramp_leaks():
    ratio = energy_ratio(line_energy(1.0 + 3.0 * T))
    assert ratio[:3] == pytest.approx([-0.06, -3.36, -4.75], abs=0.005)
    assert 1.0 - np.exp(ratio[0]) == pytest.approx(0.057, abs=5e-4)


@pytest.mark.parametrize(("offset", "slope"), [(1.0, 3.0), (0.0, 1.0), (-2.0, 0.5)])
def test_the_leakage_of_a_ramp_has_a_closed_form(offset, slope):
    n, k = len(T), np.arange(1, 65)
    energy = line_energy(offset + slope * T)
    # The transform of n is -N / 2 (1 + i cot(pi k / N)).
    assert energy[1:] == pytest.approx((slope / (2 * n * np.sin(np.pi * k / n))) ** 2)
    assert energy[0] == pytest.approx((offset + slope * (n - 1) / (2 * n)) ** 2)


def test_one_sided_energy_adds_up_to_the_mean_square():
    signal = np.random.default_rng(0).normal(size=(3, 2, 64))
    energy = line_energy(signal)
    assert energy[0] + 2 * energy[1:-1].sum() + energy[-1] == pytest.approx((signal**2).mean())


def test_the_constant_changes_everything():
    energy = line_energy(1.0 + 3.0 * T)
    assert len(energy_ratio(energy, constant=False)) == len(energy) - 1
    assert np.exp(energy_ratio(energy, constant=False)).sum() == pytest.approx(1.0)
    assert energy_ratio(energy, constant=False)[0] > -0.6 > energy_ratio(energy)[1]


def test_detrending_removes_just_what_it_says():
    tone = np.sin(2 * np.pi * 9 * T)
    assert line_energy(tone + 4.0, detrend="mean") == pytest.approx(line_energy(tone), abs=1e-20)
    assert not line_energy(2.0 - 7.0 * T, detrend="linear").any()
    assert line_energy(2.0 - 7.0 * T, detrend="mean")[1] > 0


def test_a_window_suppresses_leakage_far_away():
    off = np.cos(2 * np.pi * 5.5 * T)
    plain, windowed = (energy_ratio(line_energy(off, window=w))[40] for w in ("none", "hann"))
    assert windowed < plain - 8


def test_nothing_varying_is_finite():
    for signal in (np.zeros(16), np.full(16, 3.0)):
        for detrend in ("none", "mean", "linear"):
            energy = line_energy(signal, detrend=detrend)
            assert np.isfinite(energy_ratio(energy)).all()
            assert (energy_ratio(energy, constant=False) == FLOOR).all()
            assert mean_frequency(energy) == 0.0


def test_mean_frequency_is_between_the_tones():
    both = np.sqrt(3.0) * np.cos(2 * np.pi * 4 * T) + np.cos(2 * np.pi * 20 * T)
    assert mean_frequency(line_energy(both)) == pytest.approx(0.75 * 4 + 0.25 * 20)
