"""The estimate from two batch sizes against the moments of the gradients written out."""

import numpy as np
import pytest
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.gradient_noise import GradientNoise, two_sizes


def linear_data(points=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(points, 4))
    return tm.GroupedData(
        x, 2.0 * x[:, 0] + rng.normal(size=points), np.where(np.arange(points) % 4 == 0, "few", "many")
    )


def start():
    model = nn.Linear(4, 1, bias=False)
    nn.init.zeros_(model.weight)
    return model


def test_single_points_give_the_sample_moments_exactly():
    data = linear_data()
    readings = lab.measure(GradientNoise(small=1), start(), data)
    each = -data.y[:, None] * data.x
    for group in data.groups:
        own = each[data.of_group(group)]
        noise = own.var(0, ddof=1).sum()
        signal = (own.mean(0) ** 2).sum() - noise / len(own)
        assert float(readings["group_gradient_noise"].sel(group=group)) == pytest.approx(noise, rel=1e-4)
        assert float(readings["group_gradient_signal"].sel(group=group)) == pytest.approx(signal, rel=1e-4)
        assert float(readings["group_gradient_noise_scale"].sel(group=group)) == pytest.approx(noise / signal, rel=1e-3)


def test_it_is_unbiased_over_draws_of_the_points():
    """E of y x is (2, 0, 0, 0); the variance of one gradient is E y^2 x^2 - 4 = 3 (2^2) + 1 + 3 (4 + 1) - 4 = 24."""
    found = []
    for seed in range(40):
        readings = lab.measure(GradientNoise(small=8), start(), linear_data(160, seed))
        found.append([float(readings[name]) for name in ("gradient_signal", "gradient_noise")])
    mean, error = np.mean(found, 0), np.std(found, 0, ddof=1) / np.sqrt(40)
    assert np.all(error < [0.3, 2.0])
    assert np.all(np.abs(mean - [4.0, 24.0]) < 3.5 * error)


def test_shuffled_labels_have_no_signal():
    readings = lab.measure(GradientNoise(small=8), start(), linear_data(4000))
    assert float(readings["gradient_signal"]) == pytest.approx(4.0, abs=0.6)
    assert abs(float(readings["gradient_signal_null"])) < 0.05
    assert float(readings["gradient_noise_scale"]) == pytest.approx(6.0, abs=1.2)


def test_points_that_are_all_alike_have_no_noise():
    data, model = tm.GroupedData(np.ones((64, 4)), np.zeros(64), np.arange(64) % 2), start()
    nn.init.ones_(model.weight)
    readings = lab.measure(GradientNoise(), model, data, tm.Square())
    assert readings["group_gradient_noise_scale"].values == pytest.approx([0.0, 0.0], abs=1e-5)


def test_small_groups_and_bad_choices():
    with pytest.warns(UserWarning, match="fewer than 30"):
        data = tm.GroupedData(
            np.random.default_rng(0).normal(size=(21, 4)), np.arange(21.0), ["a"] * 17 + ["b"] * 3 + ["c"]
        )
    readings = lab.measure(GradientNoise(), start(), data)
    assert np.isfinite(readings["group_gradient_noise"].sel(group=["a", "b"])).all()
    assert np.isnan(readings["group_gradient_noise"].sel(group="c"))
    assert np.isfinite(readings["gradient_noise"])
    with pytest.raises(ValueError, match="`small` should be at least 1"):
        GradientNoise(small=0)
    assert two_sizes(5.0, 1, 5.0, 100) == (5.0, 0.0)
    with pytest.raises(ValueError, match="needs two points of some group"):
        lab.measure(GradientNoise(), start(), data.take([0]))
