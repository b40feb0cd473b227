"""Measures of shortcut reliance: hand-made models with known answers, degenerate input, and every kind of network."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import small_cnn, transformer
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.boolean import cube
from tiltmeter_lab.data.dominoes import dominoes, one_hot_block
from tiltmeter_lab.data.latents import Latents
from tiltmeter_lab.data.moons import moons
from tiltmeter_lab.measures.availability import Availability
from tiltmeter_lab.measures.catalogue import MEASURES, find
from tiltmeter_lab.measures.cue_adoption import CueAdoption
from tiltmeter_lab.measures.feature_variance import FeatureVariance, explained
from tiltmeter_lab.measures.last_layer_probe import LastLayerProbe
from tiltmeter_lab.measures.shared.layer_features import layer_features
from tiltmeter_lab.measures.starvation import Starvation, boundary


def seen(model, data):
    return tm.Probe(model, data, budget=None).snapshot().model


def linear(*weight):
    model = torch.nn.Linear(len(weight), 1, bias=False)
    model.weight.data = torch.tensor([weight], dtype=torch.float32)
    return model


# --- features of a layer


def test_features_are_the_input_of_the_head():
    rng = np.random.default_rng(0)
    data = tm.GroupedData(rng.normal(size=(300, 4)).astype(np.float32), np.arange(300) % 2, "label")
    model = mlp(4, (6, 5), 2)
    found = layer_features(seen(model, data), data.x)
    with torch.no_grad():
        np.testing.assert_allclose(found, model[:-1](torch.as_tensor(data.x)), atol=1e-6)
        named = layer_features(seen(model, data), data.x, layer="3")
        np.testing.assert_allclose(named, model[:3](torch.as_tensor(data.x)), atol=1e-6)
    assert not model[-1]._forward_pre_hooks
    with pytest.raises(KeyError, match=r"No layer 'top'. There are: 0, 1"):
        layer_features(seen(model, data), data.x, layer="top")


def test_features_of_convolutions_and_transformers():
    rng = np.random.default_rng(0)
    images = tm.GroupedData(rng.normal(size=(60, 1, 8, 8)), np.arange(60) % 2, "label")
    assert layer_features(seen(small_cnn(1, 2, 4), images), images.x).shape == (60, 16)
    sequences = tm.GroupedData(rng.normal(size=(60, 6, 5)), np.arange(60) % 2, "label")
    assert layer_features(seen(transformer(6, 5, width=8), sequences), sequences.x).shape == (60, 8)
    convolution = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 8), torch.nn.Flatten())
    with pytest.raises(ValueError, match="calls no Linear layer"):
        layer_features(seen(convolution, images), images.x)
    patches = torch.nn.Sequential(torch.nn.Flatten(0, 1), torch.nn.Linear(5, 1), torch.nn.Unflatten(0, (-1, 6)))
    patches.append(torch.nn.Flatten())
    with pytest.raises(ValueError, match="Found 360 rows for 60 points"):
        layer_features(seen(torch.nn.Sequential(patches, Mean()), sequences), sequences.x)


class Mean(torch.nn.Module):
    def forward(self, x):
        return x.mean(1)


# --- last-layer probe


def test_probe_decodes_what_is_there_and_no_more():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 800)
    clean = tm.GroupedData(np.column_stack([np.eye(4)[y], rng.normal(size=(800, 4))]), y, np.arange(800) % 2)
    keeps, drops = (torch.nn.Sequential(torch.nn.Linear(8, 4, bias=False), torch.nn.Linear(4, 4)) for _ in range(2))
    keeps[0].weight.data = torch.eye(8)[:4]
    drops[0].weight.data = torch.eye(8)[4:]
    assert lab.measure(LastLayerProbe(), keeps, clean)["probe_accuracy"] == 1.0
    found = lab.measure(LastLayerProbe(), drops, clean)
    # Noise holds nothing: 200 scored points, chance 1/4, four standard errors of .031.
    assert found["probe_accuracy"] == pytest.approx(0.25, abs=0.125)
    assert 0.2 < found["probe_accuracy_null"] < 0.35
    small = torch.nn.Sequential(torch.nn.Linear(8, 4, bias=False), torch.nn.Linear(4, 4))
    small[0].weight.data = 1e-3 * torch.eye(8)[:4]
    # Features are divided by their norm: a tiny network is probed like a large one.
    one, other = (lab.measure(LastLayerProbe(C=1.0), net, clean) for net in (keeps, small))
    assert one["probe_scale"] == pytest.approx(float(other["probe_scale"]), rel=1e-3)


def test_probe_of_other_points_and_of_nothing():
    rng = np.random.default_rng(0)
    data = tm.GroupedData(rng.normal(size=(80, 3)), np.arange(80) % 2, "label")
    other = tm.GroupedData(rng.normal(size=(120, 3)), np.arange(120) % 3, "label")
    model = mlp(3, (4,), 2)
    measure = LastLayerProbe(points=other)
    assert measure.passes(tm.Probe(model, data, budget=None).snapshot()) == 1.5
    assert lab.measure(measure, model, data)["probe_accuracy_null"] < 0.6
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    assert np.isfinite(lab.measure("last-layer-probe", model, data)["probe_accuracy"])
    torch.nn.init.constant_(model[1].weight, float("nan"))
    with pytest.raises(ValueError, match="needs finite features"):
        lab.measure("last-layer-probe", model, data)
    torch.nn.init.zeros_(model[1].weight)
    one = data.take([0])
    with pytest.raises(ValueError, match="needs points of two labels"):
        lab.measure(LastLayerProbe(points=one), model, data)
    with pytest.raises(ValueError, match="`C` should be positive"):
        LastLayerProbe(fit=1.0)


# --- cue adoption


def blocks(points=900, seed=0):
    y = np.arange(points) % 3
    return dominoes(one_hot_block(y), y, one_hot_block(y), y, agreement=0.0, cells=True, seed=seed)


def test_cue_adoption_of_models_that_follow_one_cue():
    data = blocks()
    for weights, expected in (((1.0, 0.0), (1.0, 0.0)), ((0.0, 1.0), (0.0, 1.0)), ((0.0, 0.0), None)):
        model = torch.nn.Linear(6, 3)
        model.weight.data = torch.cat([w * torch.eye(3) for w in weights], dim=1)
        model.bias.data = torch.zeros(3)
        found = lab.measure(CueAdoption(("easy", "hard")), model, data)
        if expected:
            np.testing.assert_allclose(found["cue_adoption"], expected, atol=1e-9)
        else:  # a constant follows each cue in a third of the cells
            np.testing.assert_allclose(found["cue_adoption"], 1 / 3, atol=1e-9)
        np.testing.assert_allclose(found["cue_adoption_null"], 1 / 3)
        assert found["cue_adoption"].sum() <= 1 + 1e-9


def test_cue_adoption_weighs_cells_alike():
    x = np.repeat([[0.0, 1.0], [1.0, 0.0]], [90, 30], axis=0)
    groups = [(0, 1)] * 90 + [(1, 0)] * 30
    data = tm.GroupedData(x, np.repeat([1, 0], [90, 30]), groups)
    model = torch.nn.Linear(2, 2)
    torch.nn.init.zeros_(model.weight)
    model.bias.data = torch.tensor([0.0, 2.0])  # always 1: follows the second cue in the larger cell
    np.testing.assert_allclose(lab.measure("cue-adoption", model, data)["cue_adoption"], 0.5)


def test_cue_adoption_refuses_what_is_no_cell():
    data = tm.GroupedData(np.ones((60, 2)), np.arange(60) % 2, "label")
    with pytest.raises(ValueError, match=r"Groups should be tuples, with the label that each of 2 cues gives. Found 0"):
        lab.measure(CueAdoption(("a", "b")), mlp(2, (3,), 2), data)
    same = tm.GroupedData(np.ones((60, 2)), np.arange(60) % 2, [(i % 2, i % 2) for i in range(60)])
    with pytest.raises(ValueError, match=r"cues that all differ. Found none"):
        lab.measure(CueAdoption(), mlp(2, (3,), 2), same)
    measure = CueAdoption(points=blocks(90))
    assert measure.passes(tm.Probe(mlp(6, (3,), 3), blocks(900), budget=None).snapshot()) == 0.1
    assert lab.measure(measure, mlp(6, (3,), 3), blocks(900))["cue_adoption"].sizes == {"cue": 2}


# --- availability


def test_converged_logistic_regression_does_not_care_about_availability():
    found = []
    for ratio in (1.0, 10.0, 30.0):
        latents = Latents((0.85, 0.9), (ratio, 1.0))
        data = latents.sample(20_000, seed=1)
        fitted = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, fit_intercept=False)
        fitted.fit(data.x @ latents.frame.T, data.y)  # in the plane of the data, where the optimum is unique
        model = torch.nn.Linear(50, 1, bias=False).double()
        model.weight.data = torch.as_tensor(fitted.coef_ @ latents.frame)
        found.append(float(lab.measure(Availability(latents), model, data)["availability_bias"]))
    assert max(found) - min(found) == pytest.approx(0.0, abs=1e-9)
    # Two weights near 1.1, each with a standard error of .02, move the boundary on the square by about .01; three of
    # it.
    assert abs(found[0]) < 0.03


def test_reliance_of_one_feature_and_the_optimum():
    latents = Latents((0.85, 0.9), (5.0, 1.0), d=10)
    data = latents.sample(200)
    for feature, expected in ((0, (1.0, 0.5)), (1, (0.5, 1.0))):
        model = torch.nn.Linear(10, 1, bias=False)
        model.weight.data = torch.as_tensor(latents.frame[feature][None], dtype=torch.float32)
        found = lab.measure(Availability(latents), model, data)
        np.testing.assert_allclose(found["reliance"], expected, atol=1e-9)
    # On a square, sign(mu . z) disagrees with the sign of z_1 on two triangles of area mu_1 / mu_2 / 4 each.
    small, large = sorted(latents.means)
    np.testing.assert_allclose(found["reliance_null"], [0.5 + small / large / 4, 1 - small / large / 4], atol=0.01)
    with pytest.raises(ValueError, match="Found None"):
        lab.measure("availability", model, data)
    with pytest.raises(ValueError, match="`side` even"):
        Availability(latents, side=3)
    three = tm.GroupedData(data.x, np.arange(200) % 3, "label")
    with pytest.raises(ValueError, match="between two labels"):
        lab.measure(Availability(latents), mlp(10, (3,), 3), three)


# --- feature variance


def test_feature_variance_by_hand():
    bits = cube(6)
    hidden = np.column_stack([3 * bits[:, 0], bits[:, 1], bits[:, 2] * bits[:, 3]])
    assert explained(hidden, bits[:, 0]) == pytest.approx(9 / 11)
    assert explained(hidden, bits[:, :2]) == pytest.approx(10 / 11)
    assert explained(hidden, bits[:, 2] * bits[:, 3]) == pytest.approx(1 / 11)
    assert explained(hidden, bits[:, 4]) == pytest.approx(0.0, abs=1e-12)
    assert explained(hidden, np.ones(64)) == 0.0
    assert explained(np.ones((64, 2)), bits[:, 0]) == 0.0


def test_feature_variance_meets_its_null_on_noise():
    rng = np.random.default_rng(0)
    data = tm.GroupedData(rng.normal(size=(400, 30)), np.arange(400) % 2, rng.integers(0, 3, 400))
    found = lab.measure("feature-variance", torch.nn.Linear(30, 2), data)
    np.testing.assert_allclose(found["feature_variance_null"], [1 / 399, 2 / 399])
    # k / (n - 1) on average over 30 units; its standard deviation is at most sqrt(2 k / 30) / 399.
    assert (np.abs(found["feature_variance"] - found["feature_variance_null"]) < 4 * np.sqrt(4 / 30) / 399).all()
    with pytest.raises(ValueError, match=r"one row per held-out point, 400. Found 3 in 'z'"):
        lab.measure(FeatureVariance({"z": np.ones(3)}), torch.nn.Linear(30, 2), data)
    assert FeatureVariance().passes(None) == 1.0


@pytest.mark.slow
def test_easy_feature_takes_more_variance_though_both_are_learned():
    """A bit and a parity of three bits, both outputs right on all points: a ratio above 2 in three seeds of three."""
    for seed in range(3):
        run = learned_bit_and_parity(seed)
        easy, hard = run["feature_variance"].isel(time=-1).values
        assert float(run["error"].isel(time=-1).max()) == 0.0
        assert easy / hard > 2


def learned_bit_and_parity(seed):
    bits = cube(8)
    easy, hard = bits[:, 0], bits[:, 1] * bits[:, 2] * bits[:, 3]
    y = (easy > 0) + 2 * (hard > 0)
    data = tm.GroupedData(bits, y, "label")
    torch.manual_seed(seed)
    return tm.train(
        mlp(8, (64, 64, 32), 4), data, data, tm.Recipe(lambda p: torch.optim.Adam(p, 1e-3), steps=1500, batch=256), watch=tm.Watch(when=tm.record.at([0]), measures=(FeatureVariance({"easy": easy, "hard": hard}),)), seed=seed)  # fmt: skip


# --- starvation


def test_boundaries_of_known_shape():
    data = moons()

    class Wave(torch.nn.Module):
        def __init__(self, height, tilt=0.0):
            super().__init__()
            self.height, self.tilt = torch.nn.Parameter(torch.tensor(height)), tilt

        def forward(self, x):
            return 2.0 * (x[:, 1] - self.height * torch.sin(2 * torch.pi * x[:, 0]) - self.tilt * x[:, 0])

    wave = lab.measure(Starvation(), Wave(0.3), data)
    # Three whole periods over the range -1 to 2: a standard deviation of 0.3 / sqrt(2).
    assert wave["boundary_spread"] == pytest.approx(0.3 / np.sqrt(2), rel=0.01)
    tilted = lab.measure(Starvation(), Wave(0.0, tilt=0.4), data)
    assert tilted["boundary_spread"] == pytest.approx(0.4 * 3 / np.sqrt(12), rel=0.02)
    assert tilted["boundary_bend"] == pytest.approx(0.0, abs=1e-3)
    assert wave["mean_score"] > 0
    constant = linear(0.0, 0.0)
    found = lab.measure("gradient-starvation", constant, data)
    assert found["boundary_met"] == found["boundary_spread"] == found["mean_score"] == 0
    swapped = tm.GroupedData(data.x[:, ::-1].copy(), data.y, "label")
    flat = lab.measure(Starvation(along=1), linear(1.0, 0.0), swapped)
    assert flat["boundary_spread"] == pytest.approx(0.0, abs=1e-6)
    two = torch.nn.Linear(2, 2, bias=False)
    two.weight.data = torch.tensor([[0.0, -1.0], [0.0, 1.0]])
    assert lab.measure(Starvation(), two, data)["mean_score"] == pytest.approx(
        2 * np.abs(data.x[:, 1]).mean(), rel=1e-5
    )


def test_starvation_refuses_other_points():
    data = tm.GroupedData(np.ones((60, 3)), np.arange(60) % 2, "label")
    with pytest.raises(ValueError, match=r"Found points of shape \(3,\) and 2 labels"):
        lab.measure(Starvation(), mlp(3, (2,), 1), data)
    with pytest.raises(ValueError, match="`along` should be coordinate 0 or 1"):
        Starvation(along=2)
    assert np.isnan(boundary(np.ones((2, 3)), np.arange(3.0))).all()
    assert Starvation(side=30).passes(tm.Probe(linear(1.0, 1.0), moons(points=300), budget=None).snapshot()) == 4.0


# --- all of them


OURS = (
    "availability",
    "boolean-sensitivity",
    "boolean-spectrum",
    "cue-adoption",
    "early-alignment",
    "feature-variance",
    "gradient-starvation",
    "last-layer-probe",
    "noise-sensitivity",
)


@pytest.mark.parametrize("name", OURS)
def test_every_measure_can_be_found_and_says_what_it_is(name):
    assert name in MEASURES
    kind = find(name)
    for word in ("title", "takes", "exact", "absent"):
        assert getattr(kind, word)
    if hasattr(kind, "example"):
        torch.manual_seed(0)
        found = lab.measure(*kind.example(0))
        for curve, values in found.items():
            assert np.isfinite(values).all(), curve
            plain = not curve.endswith(("_null", "_se"))
            assert not plain or f"{curve}_null" in found or "null" in values.attrs, curve


def test_measures_ride_on_a_probe_without_touching_the_training():
    data = blocks(300)

    def trained(measures):
        torch.manual_seed(0)
        model = mlp(6, (8,), 3)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = data.tensors()
        with tm.Probe(model, data, watch=tm.Watch(measures=measures), budget=None) as probe:
            for step in range(5):
                probe(step)
                sgd.zero_grad()
                torch.nn.functional.cross_entropy(model(x.float()), y).backward()
                sgd.step()
        return model, probe.trajectory()

    plain, _ = trained([])
    watched, run = trained([CueAdoption(("a", "b")), LastLayerProbe(), FeatureVariance()])
    assert all(torch.equal(p, q) for p, q in zip(plain.parameters(), watched.parameters(), strict=True))
    assert run["cue_adoption"].sizes == {"time": 6, "cue": 2}
    assert {"probe_accuracy", "feature_variance_null"} <= set(run)


@pytest.mark.parametrize(
    ("measure", "model", "x", "group"),
    [
        ("boolean-sensitivity", mlp(2, (3,), 1), [[-1.0, 1.0]], 0),
        ("boolean-spectrum", mlp(2, (3,), 1), [[-1.0, 1.0]], 0),
        ("noise-sensitivity", mlp(2, (3,), 1), [[0.0, 0.0]], 0),
        ("early-alignment", mlp(2, (3,), 1, bias=False), [[1.0, 0.5]], 0),
        ("cue-adoption", mlp(2, (3,), 1), [[1.0, 0.5]], (0, 1)),
        ("feature-variance", mlp(2, (3,), 1), [[1.0, 0.5]], 0),
        ("gradient-starvation", mlp(2, (3,), 1), [[1.0, 0.5]], 0),
        (Availability(Latents(d=2)), mlp(2, (3,), 1), [[1.0, 0.5]], 0),
    ],
    ids=str,
)
def test_one_point_is_finite(measure, model, x, group):
    with pytest.warns(UserWarning, match="give unreliable results"):
        data = tm.GroupedData(np.array(x), [0], [group])
    assert all(np.isfinite(values).all() for values in lab.measure(measure, model, data).values())


@pytest.mark.parametrize("name", ["noise-sensitivity", "last-layer-probe", "feature-variance"])
def test_constant_points_are_finite(name):
    data = tm.GroupedData(np.ones((80, 3)), np.arange(80) % 2, "label")
    assert all(np.isfinite(values).all() for values in lab.measure(name, mlp(3, (4,), 2), data).values())
