"""Flow and descent on a fixed training set: pinned numbers, limits known by other routes, controls, grids."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter import SGD, Fixed, Flow, Square, equilibrium, predict, teacher_mixture
from tiltmeter.theory import Descent
from tiltmeter.theory.dynamics.fixed_set import contour
from tiltmeter.theory.problem.starts import Random

CENTRED = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
GENERAL = teacher_mixture(
    rho=0.7, shift=1.5, variance=(0.5, 1.2), overlap=0.6, shift_overlap=(0.5, -0.3), label_bias=(0.2, -0.4)
)
NOISY = teacher_mixture(
    rho=0.75, shift=1.0, variance=(0.5, 1.2), overlap=0.6, shift_overlap=(0.4, 0.2), label_bias=(0.2, -0.1)
)
WEIGHTS, FLIPS = {"+": 0.7, "-": 1.9}, {"+": 0.1, "-": 0.25}
#: problem, flips, alpha, t, then R, Q, loss, error, training loss, training error (reference notes 1.9)
PINNED = {
    "centred, alpha 2": (
        CENTRED, None, 2.0, 0.5, (0.21687562, 0.16116558), 0.09587600, (0.40161003, 0.41441519),
        (0.25299803, 0.32574709), (0.32198184, 0.22066843), (0.09991437, 0.08102805),
    ),
    "centred, alpha .5": (
        CENTRED, None, 0.5, 2.0, (0.35689866, 0.22421616), 0.56575319, (0.44007979, 0.70520974),
        (0.34263079, 0.40364907), (0.04006653, 0.00978581), (0.00003673, 0.0),
    ),
    "wrong labels": (
        CENTRED, {"+": 0.1, "-": 0.3}, 2.0, 2.0, (0.39037298, 0.23752305), 0.42440147, (0.38585600, 0.58619238),
        (0.29547473, 0.38120554), (0.24371880, 0.18717936), (0.12646303, 0.09742332),
    ),
    "general": (
        GENERAL, None, 2.0, 2.0, (0.46378609, 0.28786372), 0.45350308, (0.27324356, 0.56072504),
        (0.17927115, 0.36193834), (0.15489935, 0.17650311), (0.04889599, 0.08837585),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PINNED)
def test_pinned_numbers(name):
    problem, flips, alpha, t, R, Q, loss, error, training_loss, training_error = PINNED[name]
    found = predict(problem, Flow(lr=1.0), [t], data=Fixed(alpha, flips))
    pinned = {"R": R, "Q": Q, "loss": loss, "error": error}
    pinned |= {"training_loss": training_loss, "training_error": training_error}
    for curve, values in pinned.items():
        np.testing.assert_allclose(found[curve].values[0], values, atol=1.1e-8, err_msg=curve)
    if name == "general":
        np.testing.assert_allclose(found["M"].sel(group="+").item(), 0.36196310, atol=1.1e-8)


def test_twice_the_nodes_change_nothing(monkeypatch):
    times = np.geomspace(0.01, 400.0, 20)
    for problem, training, data in (
        (GENERAL, Flow(lr=1.0, train_bias=True, start=Random(0.7)), Fixed(0.5)),
        (NOISY, Flow(lr=1.0, weights=WEIGHTS, weight_decay=0.1), Fixed(1.3, FLIPS)),
    ):
        once = predict(problem, training, times, data=data)
        monkeypatch.setattr(contour, "NODES", 84.0)
        twice = predict(problem, training, times, data=data)
        monkeypatch.undo()
        for curve in ("M", "R", "Q", "loss", "training_loss"):
            np.testing.assert_allclose(once[curve].values, twice[curve].values, atol=3e-11, err_msg=curve)


class TestLimits:
    @pytest.mark.parametrize("alpha", [0.6, 1.3, 2.0])
    @pytest.mark.parametrize("bias", [False, True])
    def test_the_end_is_equilibrium(self, alpha, bias):
        flow = Flow(lr=1.0, weights=WEIGHTS, weight_decay=0.1, train_bias=bias)
        end = predict(NOISY, flow, [3000.0], data=Fixed(alpha))
        rest = equilibrium(NOISY, Square(), samples=alpha, ridge=0.1 * alpha, weights=WEIGHTS, bias=bias)
        for curve in ("M", "R", "Q", "loss", "error", "training_loss"):
            np.testing.assert_allclose(end[curve].isel(time=0).values, rest[curve].values, atol=1e-9, err_msg=curve)

    def test_many_samples_are_online_training_at_small_learning_rates(self):
        times = np.geomspace(0.05, 50.0, 60)
        online = predict(GENERAL, Flow(lr=1.0), times, curves=("loss", "error"))
        slow = predict(GENERAL, SGD(lr=1e-6), times * 1e6, curves=("loss", "error"))
        scaled = {}
        for curve in ("loss", "error"):
            np.testing.assert_allclose(online[curve].values, slow[curve].values, atol=2e-6)
            gaps = [
                alpha
                * np.abs(predict(GENERAL, Flow(lr=1.0), times, (curve,), data=Fixed(alpha))[curve] - online[curve])
                for alpha in (1e3, 1e5)
            ]
            scaled[curve] = [float(gap.max()) for gap in gaps]
            assert scaled[curve][0] == pytest.approx(scaled[curve][1], rel=0.02)
        assert scaled["loss"][1] > 0.1  # it is a real deviation that shrinks like 1/alpha

    def test_the_deviation_times_the_samples_is_constant(self):
        times = np.geomspace(0.05, 400.0, 120)
        online = predict(NOISY, Flow(lr=1.0), times, curves=("loss", "error"))
        for alpha in (1e2, 1e5):
            found = predict(NOISY, Flow(lr=1.0), times, ("loss", "error"), data=Fixed(alpha))
            for curve, pinned in (("loss", 0.56), ("error", 0.36)):
                assert alpha * float(np.abs(found[curve] - online[curve]).max()) == pytest.approx(pinned, abs=0.008)

    @pytest.mark.parametrize("weights", [None, {"+": 0.5, "-": 3.0}])
    def test_interpolation_has_a_closed_form_without_weights(self, weights):
        alpha, p, D = 0.5, np.array([0.8, 0.2]), np.array([0.5, 1.5])
        overlap = np.array([[1.0, 0.5], [0.5, 1.0]])
        share = alpha * p * np.sqrt(2.0 / np.pi / D)
        R = overlap @ share
        Q = (share @ R + alpha * (p * (1.0 - 2.0 * np.sqrt(2.0 * D / np.pi) * R) / D).sum()) / (1.0 - alpha)
        found = predict(CENTRED, Flow(lr=1.0, weights=weights), [1.0, 20000.0], data=Fixed(alpha))
        np.testing.assert_allclose(found["R"].values[-1], R, atol=1e-10)
        np.testing.assert_allclose(found["Q"].values[-1], Q, atol=1e-9)
        assert pytest.approx(Q, abs=1e-8) == 1.25860000
        np.testing.assert_allclose(found["loss"].values[-1], (0.541624, 1.159756), atol=1e-6)
        early = (0.441791, 0.500653) if weights else (0.429259, 0.571312)
        np.testing.assert_allclose(found["loss"].values[0], early, atol=1e-6)
        np.testing.assert_allclose(found["training_loss"].values[-1], 0.0, atol=1e-12)

    def test_the_gap_of_groups_of_equal_variance_is_untouched(self):
        problem = teacher_mixture(rho=0.8, variance=(1.0, 1.0), overlap=0.5)
        found = predict(problem, Flow(lr=1.0), [60000.0], data=Fixed(("samples", [4.0, 2.0, 1.5, 1.05])))
        np.testing.assert_allclose(found["loss_gap"].values.ravel(), found["loss_gap"].values.ravel()[0], atol=1e-8)
        assert float(abs(found["loss_gap"][0, 0, 0])) == pytest.approx(0.1909, abs=5e-4)
        risk = found["risk"].values[0]
        assert risk[-1] > 5.0 * risk[0]

    def test_a_start_is_kept_where_there_are_no_data(self):
        alpha, o = 0.5, 0.8
        plain = predict(CENTRED, Flow(lr=1.0), [20000.0], data=Fixed(alpha))
        warm = predict(CENTRED, Flow(lr=1.0, start=Random(np.sqrt(o))), [20000.0], data=Fixed(alpha))
        extra = (warm["loss"] - plain["loss"]).values[0]
        np.testing.assert_allclose(extra, 0.5 * np.array([0.5, 1.5]) * (1.0 - alpha) * o, atol=1e-9)

    def test_small_steps_of_descent_are_flow(self):
        flow = predict(GENERAL, Flow(lr=1.0), [2.0], data=Fixed(2.0))
        gaps = [
            float(
                np.abs(
                    predict(GENERAL, Descent(lr), [2.0 / lr], data=Fixed(2.0))["loss"].values - flow["loss"].values
                ).max()
            )
            for lr in (0.01, 0.001)
        ]
        assert gaps[0] < 2e-3
        assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.05)

    def test_the_first_loss_rates_do_not_know_the_number_of_examples(self):
        t = 1e-4
        rates = [
            (predict(GENERAL, Flow(lr=1.0), [t], ("loss",), data=Fixed(a))["loss"].values - 0.5) / t for a in (0.5, 8.0)
        ]
        np.testing.assert_allclose(rates[0], rates[1], atol=3e-4)


class TestNegativeControls:
    def test_online_theory_does_not_do_for_a_fixed_set(self):
        fixed = predict(CENTRED, Flow(1.0), [8.0], data=Fixed(2.0))["loss"].values[0]
        apart = fixed - predict(CENTRED, Flow(1.0), [8.0])["loss"].values[0]
        np.testing.assert_allclose(apart, (0.1, 0.4), atol=0.06)

    def test_one_common_variance_does_not_do(self):
        flow, data = Flow(1.0), Fixed(2.0)
        own = predict(CENTRED, flow, [8.0], data=data)["Q"].item()
        common = predict(teacher_mixture(rho=0.8, variance=(0.7, 0.7), overlap=0.5), flow, [8.0], data=data)["Q"].item()
        assert abs(own - common) > 0.05

    def test_replacement_does_not_do_for_shuffled_epochs(self):
        shuffled, drawn = (
            predict(CENTRED, SGD(0.6), np.linspace(0.5, 4.0, 8), data=Fixed(0.5, replace=r)) for r in (False, True)
        )
        assert float(np.abs(shuffled["Q"] - drawn["Q"]).max()) > 0.03
        assert float(np.abs(shuffled["training_loss"] - drawn["training_loss"]).max()) > 0.1

    def test_wrong_labels_are_wrong_in_training_only(self):
        found = predict(CENTRED, Flow(1.0), [2.0], data=Fixed(2.0, {"+": 0.1, "-": 0.3}))
        D, g = np.array([0.5, 1.5]), np.sqrt(2.0 / np.pi) * (1.0 - 2.0 * np.array([0.1, 0.3]))
        flipped = 0.5 * (1.0 + D * found["Q"].item() - 2.0 * np.sqrt(D) * g * found["R"].values[0])
        assert (flipped - found["loss"].values[0] > 0.02).all()


class TestGrids:
    def test_a_grid_is_its_points(self):
        times = [0.5, 5.0]
        grid = teacher_mixture(rho=("rho", [0.3, 0.8]), variance=(0.5, 1.5), overlap=0.5)
        lr = xr.DataArray([0.5, 1.0, 2.0], dims="lr", coords={"lr": [0.5, 1.0, 2.0]})
        flips = {"-": ("noise", [0.0, 0.2])}
        data = Fixed(("samples", [0.5, 2.0]), flips)
        whole = predict(grid, Flow(lr=lr), times, data=data)
        assert dict(whole["loss"].sizes) == {"time": 2, "group": 2, "rho": 2, "lr": 3, "samples": 2, "noise": 2}
        point = predict(
            teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5), Flow(lr=2.0), times, data=Fixed(0.5, {"-": 0.2})
        )
        for curve in ("loss", "error", "training_loss", "training_error", "loss_gap"):
            one = whole[curve].sel(rho=0.8, lr=2.0, samples=0.5).isel(noise=1)
            np.testing.assert_allclose(one.values, point[curve].values, atol=1e-9)

    def test_points_that_diverge_are_told(self):
        with pytest.warns(UserWarning, match="1 of 2 grid points have `lr` at or above"):
            found = predict(CENTRED, SGD(("lr", [0.5, 1.8])), [1.0], data=Fixed(2.0, replace=True))
        assert np.isnan(found["loss"].sel(lr=1.8)).all()
        assert np.isfinite(found["loss"].sel(lr=0.5)).all()
        assert found.diverged is not None

    def test_more_than_two_groups(self):
        from tiltmeter.theory import Mixture

        three = Mixture({"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 1.0, "b": 0.5, "c": 2.0}, np.eye(6))
        rest = equilibrium(three, Square(), samples=1.5, ridge=0.3, bias=True)
        end = predict(three, Flow(1.0, weight_decay=0.2, train_bias=True), [2000.0], data=Fixed(1.5))
        np.testing.assert_allclose(end["loss"].values[0], rest["loss"].values, atol=1e-9)


def test_as_many_examples_as_dimensions_never_settle():
    """alpha = 1 without ridge: every time has its value, but there is no end."""
    found = (
        predict(CENTRED, Flow(1.0), [10.0, 1e3, 1e5], ("loss", "error"), data=Fixed(1.0))["loss"].sel(group="-").values
    )
    assert found[0] < found[1] < found[2]
    assert found[2] > 10.0 * found[0]


def test_nothing_is_learnt_at_time_zero():
    found = predict(GENERAL, Flow(1.0), [0.0, 1.0], data=Fixed(2.0))
    np.testing.assert_allclose(found["training_loss"].values[0], 0.5, atol=1e-12)
    assert found["Q"].values[0] == pytest.approx(0.0, abs=1e-12)
