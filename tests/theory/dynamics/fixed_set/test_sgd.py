"""SGD on a fixed training set, with replacement and shuffled: pinned numbers, limits, stability."""

import numpy as np
import pytest

from tiltmeter import SGD, Fixed, Flow, predict, teacher_mixture
from tiltmeter.theory import Descent
from tiltmeter.theory.dynamics.fixed_set.spectrum import spectrum
from tiltmeter.theory.dynamics.fixed_set.stochastic import two_times
from tiltmeter.theory.dynamics.stability import stability_limit
from tiltmeter.theory.problem.fixed import fixed_parameters
from tiltmeter.theory.problem.starts import Overlaps

CENTRED = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
GENERAL = teacher_mixture(
    rho=0.7, shift=1.5, variance=(0.5, 1.2), overlap=0.6, shift_overlap=(0.5, -0.3), label_bias=(0.2, -0.4)
)
NOISY = teacher_mixture(
    rho=0.75, shift=1.0, variance=(0.5, 1.2), overlap=0.6, shift_overlap=(0.4, 0.2), label_bias=(0.2, -0.1)
)
WEIGHTS, FLIPS = {"+": 0.7, "-": 1.9}, {"+": 0.1, "-": 0.25}


class TestSGD:
    def test_pinned_with_replacement(self):
        found = predict(GENERAL, SGD(lr=0.5), [2.0, 8.0], data=Fixed(2.0, replace=True))
        np.testing.assert_allclose(found["Q"].values, [0.3470174, 0.784466], atol=1e-7)
        residuals = [[0.4392383, 0.6299052], [0.3171766, 0.4026933]]
        np.testing.assert_allclose(2.0 * found["training_loss"].values, residuals, atol=1e-7)

    def test_pinned_shuffled(self):
        found = predict(GENERAL, SGD(lr=0.5), [2.0, 8.0], data=Fixed(2.0))
        np.testing.assert_allclose(found["Q"].values, [0.33060, 0.77249], atol=5e-5)
        residuals = [[0.38484, 0.42458], [0.29337, 0.26203]]
        np.testing.assert_allclose(2.0 * found["training_loss"].values, residuals, atol=7e-5)
        np.testing.assert_allclose(found["R"].values[1], [0.57688, 0.39395], atol=2e-5)

    def test_the_first_epoch_of_a_shuffle_is_online(self):
        times = np.linspace(0.2, 2.0, 10)
        sgd = SGD(lr=0.5, weights=WEIGHTS, weight_decay=0.1, start=Overlaps(R={"+": 0.2}, Q=0.5))
        online = predict(NOISY, sgd, times)
        shuffled = predict(NOISY, sgd, times, data=Fixed(2.0))
        for curve in ("M", "R", "Q", "loss", "error"):
            np.testing.assert_allclose(shuffled[curve].values, online[curve].values, atol=4e-5, err_msg=curve)
        drawn = predict(NOISY, sgd, times, data=Fixed(2.0, replace=True))
        assert float(np.abs(drawn["Q"] - online["Q"]).max()) > 0.01  # drawing again is not online

    def test_both_equations_agree_on_drawing_with_replacement(self):
        fixed = fixed_parameters(NOISY, SGD(lr=0.5, weights=WEIGHTS), Fixed(1.3, FLIPS, replace=True))
        coarse, middle, fine = (two_times(fixed, 0, cells, 3, replace=True) for cells in (12, 24, 48))
        found = predict(NOISY, SGD(lr=0.5, weights=WEIGHTS), [3.9], data=Fixed(1.3, FLIPS, replace=True))
        for part, value in ((2, found["Q"].values[0]), (3, 2.0 * found["training_loss"].values[0])):
            end = (8.0 * fine[part][-1] - 6.0 * middle[part][-1] + coarse[part][-1]) / 3.0
            np.testing.assert_allclose(end, value, atol=1e-4)

    def test_without_noise_it_is_flow(self):
        times = [1.0, 4.0]
        flow = predict(NOISY, Flow(lr=0.5), times, data=Fixed(1.3, FLIPS))
        large = predict(NOISY, SGD(lr=0.5, batch=10**6), times, data=Fixed(1.3, FLIPS, replace=True))
        np.testing.assert_allclose(large["loss"].values, flow["loss"].values, atol=1e-5)
        assert float(large["batch_noise"].max()) < 1e-5
        small = predict(NOISY, SGD(lr=0.5), times, data=Fixed(1.3, FLIPS, replace=True))
        assert float(small["batch_noise"].min()) > 0.01
        np.testing.assert_allclose((small["loss"] - flow["loss"]).values, small["batch_noise"].values, atol=1e-12)

    def test_the_noise_of_replacement_is_like_one_over_the_batch_at_first(self):
        one, four = (
            predict(CENTRED, SGD(lr=0.1, batch=b), [1.0], data=Fixed(2.0, replace=True))["batch_noise"].values
            for b in (1, 4)
        )
        np.testing.assert_allclose(one / four, 4.0, rtol=0.05)

    @pytest.mark.parametrize(("alpha", "limit"), [(0.5, 1.462), (2.0, 1.754), (5.0, 1.968), (50.0, 2.135)])
    def test_the_limit_of_drawing_with_replacement(self, alpha, limit):
        found = stability_limit(CENTRED, SGD(lr=0.1), Fixed(alpha, replace=True))
        assert found.item() == pytest.approx(limit, abs=6e-4)
        batch = stability_limit(CENTRED, SGD(lr=0.1, batch=3), Fixed(alpha, replace=True))
        assert batch.item() == pytest.approx(3.0 * found.item())

    def test_shuffling_is_stabler(self):
        shuffled = stability_limit(CENTRED, SGD(lr=0.1), Fixed(2.0)).item()
        assert 1.9 < shuffled < stability_limit(CENTRED, SGD(lr=0.1)).item()

    def test_the_limit_of_descent_is_where_the_fastest_direction_turns_round(self):
        top = spectrum(fixed_parameters(GENERAL, Flow(1.0), Fixed(2.0))).top.item()
        limit = stability_limit(GENERAL, Descent(lr=0.1, momentum=0.5), Fixed(2.0)).item()
        assert limit == pytest.approx(2.0 * 1.5 * 2.0 / top)
        almost = predict(GENERAL, Descent(0.98 * limit, momentum=0.5), [10, 400], data=Fixed(2.0), curves=("Q",))
        assert np.isfinite(almost["Q"].values).all()
        assert almost["Q"].values[1] < 10.0
        assert stability_limit(GENERAL, Flow(lr=1.0), Fixed(2.0)).item() == np.inf
