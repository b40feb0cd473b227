"""The spectrum of the training set: known edges and outliers."""

import numpy as np
import pytest

from tiltmeter import Fixed, Flow, predict, teacher_mixture
from tiltmeter.theory.dynamics.fixed_set.spectrum import spectrum
from tiltmeter.theory.problem.fixed import fixed_parameters

GENERAL = teacher_mixture(
    rho=0.7, shift=1.5, variance=(0.5, 1.2), overlap=0.6, shift_overlap=(0.5, -0.3), label_bias=(0.2, -0.4)
)


class TestSpectrum:
    def test_marchenko_and_pastur(self):
        for alpha in (0.3, 1.0, 4.0):
            found = spectrum(fixed_parameters(teacher_mixture(variance=(2.0, 2.0)), Flow(1.0), Fixed(alpha)))
            assert found.low.item() == pytest.approx(2.0 * (np.sqrt(alpha) - 1.0) ** 2, abs=1e-9)
            assert found.edge.item() == pytest.approx(2.0 * (np.sqrt(alpha) + 1.0) ** 2, abs=1e-9)

    def test_the_outlier_of_the_means(self):
        assert spectrum(fixed_parameters(GENERAL, Flow(1.0), Fixed(2.0))).top.item() == pytest.approx(5.614, abs=1e-3)
        biased = fixed_parameters(GENERAL, Flow(1.0, train_bias=True), Fixed(2.0))
        assert spectrum(biased).top.item() == pytest.approx(5.782, abs=1e-3)

    def test_a_group_of_weight_zero_has_no_part_in_it(self):
        flow = Flow(1.0, weights={"+": 1.0, "-": 0.0})
        half = predict(teacher_mixture(rho=0.5, variance=(1.0, 2.0)), flow, [1.0], data=Fixed(2.0))
        assert np.isfinite(half["loss"].values).all()
        assert (half["training_loss"].values > 0).all()
