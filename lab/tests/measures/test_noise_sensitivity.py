"""Noise sensitivity: the closed form of a linear classifier, contiguous patches, a standard deviation, and matching."""

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import norm

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import small_cnn, transformer
from tiltmeter.record import Origin, Trajectory
from tiltmeter_lab.measures.matched import at_matched_error
from tiltmeter_lab.measures.noise_sensitivity import NoiseSensitivity, token_masks


def linear_case(points=400):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(points, 20)).astype(np.float32)
    torch.manual_seed(0)
    model = torch.nn.Linear(20, 1)
    return model, tm.GroupedData(x, np.arange(points) % 2, np.arange(points) % 2)


def analytic(model, data, sigma, tokens):
    weight, bias = model.weight.detach().double().numpy()[0], model.bias.item()
    margin = np.abs(data.x @ weight + bias)
    return np.array([norm.cdf(-margin / (sigma * np.linalg.norm(weight[t]))).mean() for t in tokens])


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
def test_linear_classifier(sigma):
    model, data = linear_case()
    measure = NoiseSensitivity(sigma=sigma, patch=5, repeats=20, points=400)
    found = lab.measure(measure, model, data)
    expected = analytic(model, data, sigma, [slice(i, i + 5) for i in range(0, 20, 5)])
    # Given the points, the only error is that of 400 x 20 draws: at most sqrt(p (1 - p) / 8000); four of them.
    error = np.sqrt(expected * (1 - expected) / 8000)
    assert (np.abs(found["token_sensitivity"].values - expected) < 4 * error).all()
    assert found["noise_sensitivity"] == pytest.approx(float(found["token_sensitivity"].mean()))
    assert found["token_sensitivity"].attrs["sigma"] == sigma


def test_sigma_is_a_standard_deviation_and_no_variance():
    model, data = linear_case()
    found = lab.measure(NoiseSensitivity(sigma=0.25, patch=20, repeats=40, points=400), model, data)
    right, wrong = (float(analytic(model, data, size, [slice(0, 20)])[0]) for size in (0.25, 0.5))
    error = np.sqrt(right / 16_000)
    assert abs(float(found["noise_sensitivity"]) - right) < 4 * error < abs(wrong - right) / 2


def test_patches_are_contiguous_squares_that_cover_the_image_once():
    masks = token_masks((3, 10, 8), 4)
    assert len(masks) == 6  # rows of 4, 4 and 2
    assert (masks.sum(0) == 1).all()
    for mask in masks:
        rows, columns = (torch.where(mask[0].any(dim))[0] for dim in (1, 0))
        assert len(rows) == rows[-1] - rows[0] + 1
        assert len(columns) == columns[-1] - columns[0] + 1
        assert int(mask.sum()) == 3 * len(rows) * len(columns)  # a full rectangle, in all channels


def test_only_the_patch_is_touched():
    class Corner(torch.nn.Module):
        """Decides by one pixel of the last patch."""

        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.scale * x[:, 0, 7, 7]

    rng = np.random.default_rng(1)
    data = tm.GroupedData(rng.normal(size=(100, 1, 8, 8)), np.arange(100) % 2, "label")
    found = lab.measure(NoiseSensitivity(sigma=2.0), Corner(), data)["token_sensitivity"].values
    assert (found[:3] == 0).all()
    assert found[3] > 0.2


def test_models_of_every_kind():
    rng = np.random.default_rng(2)
    torch.manual_seed(0)
    images = tm.GroupedData(rng.normal(size=(40, 1, 8, 8)), np.arange(40) % 3, np.arange(40) % 2)
    found = lab.measure("noise-sensitivity", small_cnn(1, 3), images)
    assert found["token_sensitivity"].sizes == {"token": 4}
    sequences = tm.GroupedData(rng.normal(size=(40, 6, 5)), np.arange(40) % 2, np.arange(40) % 2)
    assert lab.measure("noise-sensitivity", transformer(6, 5), sequences)["token_sensitivity"].sizes == {"token": 6}
    tokens = tm.GroupedData(rng.integers(0, 4, (40, 6)), np.arange(40) % 2, np.arange(40) % 2)
    with pytest.raises(TypeError, match="Found integer tokens: measure the model after its embedding"):
        lab.measure("noise-sensitivity", transformer(6, vocabulary=4), tokens)


def test_null_is_chance_and_a_constant_is_not_sensitive():
    model, data = linear_case()
    found = lab.measure(NoiseSensitivity(sigma=1e4, patch=20), model, data)
    # Endless noise erases the input: for a linear model without much bias that is a fair coin.
    assert found["noise_sensitivity"] == pytest.approx(float(found["noise_sensitivity_null"]), abs=0.05)
    torch.nn.init.zeros_(model.weight)
    found = lab.measure(NoiseSensitivity(), model, data)
    assert found["noise_sensitivity"] == found["noise_sensitivity_null"] == 0.0


def test_one_point_is_enough_for_a_finite_number():
    model, _ = linear_case()
    with pytest.warns(UserWarning, match="give unreliable results"):
        one = tm.GroupedData(np.ones((1, 20)), [0], ["a"])
    found = lab.measure(NoiseSensitivity(), model, one)
    assert all(np.isfinite(values).all() for values in found.values())


def test_cost_and_bad_settings():
    model, data = linear_case()
    snapshot = tm.Probe(model, data, budget=None).snapshot()
    assert NoiseSensitivity(patch=5, repeats=2, points=200).passes(snapshot) == 200 * 9 / 400
    for settings, said in (({"sigma": 0.0}, "`sigma` should be positive"), ({"repeats": 0}, "`repeats` should be")):
        with pytest.raises(ValueError, match=said):
            NoiseSensitivity(**settings)
    with pytest.raises(ValueError, match=r"Found points of shape \(2, 2, 2, 2\)"):
        token_masks((2, 2, 2, 2))


def test_matched_error_picks_the_first_look_below_for_every_seed():
    times = {"time": [0, 10, 20, 30]}
    error = xr.DataArray(
        [[[0.5, 0.5], [0.5, 0.5]], [[0.4, 0.0], [0.2, 0.2]], [[0.0, 0.0], [0.3, 0.3]], [[0.0, 0.0], [0.3, 0.3]]],
        dims=("time", "group", "seed"),
        coords={**times, "group": ["a", "b"], "seed": [0, 1]},
    )
    sensitivity = xr.DataArray(
        [[0.0, 0.1], [0.2, 0.3], [0.4, 0.5]], dims=("time", "seed"), coords={"time": [0, 15, 30], "seed": [0, 1]}
    )
    run = Trajectory({"error": error, "noise_sensitivity": sensitivity}, "step", Origin("example"))
    found = at_matched_error(run, "noise_sensitivity", 0.1)
    assert np.isnan(found.sel(seed=0))  # .15 at best
    assert found.sel(seed=1) == 0.3  # reached at 10, first read at 15
    assert found["reached"].sel(seed=1) == 10
    assert at_matched_error(run, "noise_sensitivity", 0.2).values.tolist() == [0.4, 0.3]
    with pytest.raises(ValueError, match="`level` should be an error"):
        at_matched_error(run, "noise_sensitivity", 2.0)


def test_matched_error_goes_by_the_training_error_where_there_is_one():
    times = {"time": [0, 10]}
    curves = {
        "error": xr.DataArray([0.0, 0.0], coords=times),
        "training_error": xr.DataArray([0.5, 0.0], coords=times),
        "noise_sensitivity": xr.DataArray([1.0, 2.0], coords=times),
    }
    assert at_matched_error(Trajectory(curves, "step", Origin("example")), "noise_sensitivity", 0.1) == 2.0
