"""Boolean sensitivity and spectrum: closed forms of parities, majority and random functions; degenerate models."""

from math import comb

import numpy as np
import pytest
import torch
from scipy.special import comb as binomial

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import transformer
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.boolean import Majority, Parity, RandomFunction, Sparse, boolean_data, cube
from tiltmeter_lab.measures.boolean_sensitivity import BooleanSensitivity, flip_shares
from tiltmeter_lab.measures.boolean_spectrum import BooleanSpectrum, influences, noise_stability, walsh_hadamard


class Answering(torch.nn.Module):
    """A model that answers as a Boolean function does."""

    def __init__(self, function, dtype=torch.float32):
        super().__init__()
        self.function, self.kind = function, torch.nn.Parameter(torch.zeros(1, dtype=dtype))

    def forward(self, x):
        signs = np.where(x.numpy().reshape(len(x), -1) > 0, 1.0, -1.0)
        return torch.as_tensor(self.function(signs), dtype=torch.float32)


def read(function, n, measure):
    return lab.measure(measure, Answering(function), boolean_data(Parity((0,)), n, min(64, 2**n)))


@pytest.mark.parametrize("k", [1, 2, 3, 11])
def test_parity_is_exact(k):
    found = read(Parity(tuple(range(k))), 11, BooleanSensitivity())
    assert found["boolean_sensitivity"] == pytest.approx(k / 11, abs=1e-12)
    assert found["boolean_sensitivity_null"] == pytest.approx(0.5)
    assert found["majority_share"] == 0.5
    assert found["boolean_sensitivity_se"] == 0.0
    np.testing.assert_array_equal(found["bit_sensitivity"], np.arange(11) < k)


def test_majority_is_exact():
    found = read(Majority(), 11, BooleanSensitivity())
    assert found["boolean_sensitivity"] == pytest.approx(comb(10, 5) / 2**10)
    assert found["boolean_sensitivity"] == pytest.approx(0.24609, abs=1e-5)


def test_random_function_meets_its_null():
    # Of 11 * 2^10 independent pairs each flips with chance 1/2: a standard error of .0047; four of them.
    found = read(RandomFunction(3), 11, BooleanSensitivity())
    assert found["boolean_sensitivity"] == pytest.approx(float(found["boolean_sensitivity_null"]), abs=0.019)


def test_a_constant_model_has_none_and_says_so():
    found = read(lambda x: np.ones(len(x)), 6, BooleanSensitivity())
    assert found["boolean_sensitivity"] == 0.0
    assert found["boolean_sensitivity_null"] == 0.0
    assert found["majority_share"] == 1.0


def test_sampling_beyond_sixteen_bits():
    found = read(Majority(), 21, BooleanSensitivity(samples=2000))
    exact = comb(20, 10) / 2**20
    error = float(found["boolean_sensitivity_se"])
    assert 0 < error < 0.02
    assert abs(float(found["boolean_sensitivity"]) - exact) < 4 * error
    parity = read(Parity((2, 9, 20)), 40, BooleanSensitivity(samples=50))
    assert parity["boolean_sensitivity"] == pytest.approx(3 / 40)  # the same at every string: no error at all
    assert parity["boolean_sensitivity_se"] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(parity["bit_sensitivity"]), [2, 9, 20])


def test_sampled_and_exact_agree_on_a_network(monkeypatch):
    torch.manual_seed(0)
    model, data = mlp(10, (32,), 1), boolean_data(Parity((0, 1)), 10)
    exact = lab.measure(BooleanSensitivity(), model, data)
    monkeypatch.setattr("tiltmeter_lab.measures.boolean_sensitivity.EXACT_BITS", 4)
    sampled = lab.measure(BooleanSensitivity(samples=4000), model, data)
    error = float(sampled["boolean_sensitivity_se"])
    assert error > 0
    assert abs(float(sampled["boolean_sensitivity"] - exact["boolean_sensitivity"])) < 4 * error


def test_tokens_of_a_transformer_and_several_outputs():
    torch.manual_seed(0)
    data = boolean_data(Parity((0, 1)), 6)
    tokens = tm.GroupedData((data.x > 0).astype(np.int64), (data.y > 0).astype(np.int64), "label")
    found = lab.measure(BooleanSensitivity(), transformer(6, vocabulary=2, outputs=2), tokens)
    assert np.isfinite(found["boolean_sensitivity"])
    with pytest.raises(ValueError, match=r"needs a single output. Found 2"):
        lab.measure(BooleanSpectrum(), transformer(6, vocabulary=2, outputs=2), tokens)
    images = tm.GroupedData(data.x.reshape(-1, 1, 2, 3), data.y, "label")
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(4, 1))
    assert lab.measure("boolean-sensitivity", model, images)["bit_sensitivity"].sizes == {"bit": 6}


def test_parity_three_and_majority_nine_spectra():
    parity = read(Parity((0, 1, 2)), 5, BooleanSpectrum())
    assert parity["noise_stability"].sel(rho=0.8) == pytest.approx(0.512)
    assert parity["influence"].sum() == pytest.approx(3.0)
    assert parity["degree_weight"].sum() == pytest.approx(1.0)  # Parseval
    assert parity["degree_weight"].sel(degree=3) == pytest.approx(1.0)
    majority = read(Majority(), 9, BooleanSpectrum())
    assert majority["noise_stability"].sel(rho=0.8) == pytest.approx(0.6482, abs=1e-4)
    assert majority["influence"].sum() == pytest.approx(2.4609, abs=1e-4)


def test_influences_are_flip_shares_and_the_transform_is_its_definition():
    x = cube(6)
    values = Sparse((0, 2, 5), seed=4)(x)
    coefficients = walsh_hadamard(values)
    np.testing.assert_allclose(influences(coefficients**2), flip_shares(values), atol=1e-12)
    for place in (0, 5, 37, 63):
        members = [i for i in range(6) if place >> i & 1]
        assert coefficients[place] == pytest.approx(np.mean(values * np.prod(x[:, members], axis=1)))


def test_noise_stability_is_the_correlation_of_noisy_copies():
    rng = np.random.default_rng(0)
    function, rho = Majority(), 0.6
    x = rng.choice([-1.0, 1.0], (40_000, 9))
    other = np.where(rng.random(x.shape) < 1 - rho, rng.choice([-1.0, 1.0], x.shape), x)
    drawn = function(x) * function(other)
    exact = noise_stability(walsh_hadamard(function(cube(9))) ** 2, (rho,))[0]
    assert abs(drawn.mean() - exact) < 4 * drawn.std() / np.sqrt(len(x))


def test_nulls_of_the_spectrum_are_those_of_random_functions():
    many = [read(RandomFunction(seed), 6, BooleanSpectrum()) for seed in range(40)]
    for name in ("noise_stability", "influence", "degree_weight"):
        mean = np.mean([found[name].values for found in many], axis=0)
        null = np.mean([found[name + "_null"].values for found in many], axis=0)
        error = np.std([found[name].values - found[name + "_null"].values for found in many], axis=0) / np.sqrt(39)
        assert (np.abs(mean - null) < 4 * error + 1e-12).all(), name
    assert many[0]["degree_weight_null"][3] / many[0]["degree_weight_null"][1] == pytest.approx(
        binomial(6, 3) / binomial(6, 1)
    )


def test_a_score_of_zero_and_any_scale():
    zero = torch.nn.Linear(5, 1)
    torch.nn.init.zeros_(zero.weight)
    torch.nn.init.zeros_(zero.bias)
    data = boolean_data(Parity((0,)), 5)
    assert (lab.measure(BooleanSpectrum(decided=False), zero, data)["degree_weight"] == 0).all()
    model = torch.nn.Linear(5, 1)
    once = lab.measure(BooleanSpectrum(decided=False), model, data)["influence"]
    model.weight.data *= 7
    model.bias.data *= 7
    np.testing.assert_allclose(lab.measure(BooleanSpectrum(decided=False), model, data)["influence"], once, atol=1e-6)


def test_bad_inputs_are_refused():
    numbers = tm.GroupedData(np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2, "label")
    with pytest.raises(ValueError, match=r"features have two values, such as -1 and .1. Found 180 values"):
        lab.measure(BooleanSensitivity(), torch.nn.Linear(3, 1), numbers)
    constant = tm.GroupedData(np.ones((60, 3)), np.arange(60) % 2, "label")
    with pytest.raises(ValueError, match=r"Found 1 value\."):
        lab.measure(BooleanSensitivity(), torch.nn.Linear(3, 1), constant)
    with pytest.raises(ValueError, match=r"evaluated for up to 16 bits. Found 21"):
        read(Majority(), 21, BooleanSpectrum())
    with pytest.raises(ValueError, match="`samples` should be at least 2"):
        BooleanSensitivity(samples=1)
    with pytest.raises(ValueError, match="`rho` should contain correlations"):
        BooleanSpectrum(rho=(1.5,))
    with pytest.raises(ValueError, match=r"2\^n decisions. Found 3"):
        flip_shares(np.zeros(3))
    with pytest.raises(ValueError, match=r"2\^n values. Found 3"):
        walsh_hadamard(np.zeros(3))
    snapshot = tm.Probe(torch.nn.Linear(3, 1), numbers, budget=None).snapshot()
    bare = type(snapshot)(snapshot.data, snapshot.task, "")
    with pytest.raises(TypeError, match="needs the model itself"):
        BooleanSensitivity()(bare)


def test_cost_is_told():
    data = boolean_data(Parity((0,)), 6)
    snapshot = tm.Probe(mlp(6, (4,), 1), data, budget=None).snapshot()
    assert BooleanSensitivity().passes(snapshot) == 1.0
    assert BooleanSpectrum().passes(snapshot) == 1.0
    assert BooleanSensitivity.example(0)[2].sizes == {-1.0: 128, 1.0: 128}
    assert lab.measure(*BooleanSpectrum.example(0))["influence"].sizes == {"bit": 7}


def test_learning_a_parity_lands_on_its_sensitivity():
    """MLPs on half the cube: from well below chance to 2/11 (three seeds)."""
    for seed in range(3):
        torch.manual_seed(seed)
        train = boolean_data(Parity((3, 7)), 11, points=1024, seed=seed)
        model = mlp(11, (64,), 1)
        run = tm.train(
            model, train, train, tm.Recipe(lambda p: torch.optim.Adam(p, 2e-2), steps=60, batch=1024), watch=tm.Watch(when=tm.record.at([0, 60]), measures=(BooleanSensitivity(),)), seed=seed)  # fmt: skip
        sensitivity = run["boolean_sensitivity"]
        assert sensitivity[0] < 0.6 * run["boolean_sensitivity_null"][0]
        assert float(sensitivity[-1]) == pytest.approx(2 / 11, abs=0.005)
