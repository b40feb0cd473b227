"""Accuracy on clones: a rule of means, a rule of covariance, a rule of neither."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import small_cnn, transformer
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.clones import GaussianTransport, IndependentMarginals, MaxEntropyCube, MeanShift
from tiltmeter_lab.measures.clone_accuracy import CloneAccuracy


class Rule(nn.Module):
    def __init__(self, rule):
        super().__init__()
        self.rule = rule

    def forward(self, x):
        return self.rule(x)[:, None]


def test_a_rule_of_means_survives_every_clone():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 1000)
    data = tm.GroupedData(rng.normal(size=(2000, 3)) + 8 * y[:, None], y, y)
    found = lab.measure(CloneAccuracy(), Rule(lambda x: x.sum(1) - 12), data)
    assert found["clone_accuracy"].dims == ("clone",)
    assert found["clone_accuracy"].clone.values.tolist()[0] == "real"
    assert (found["clone_accuracy"] > 0.999).all()  # edits too: they are called by their target class
    assert np.allclose(found["clone_accuracy_null"], 0.5, atol=1e-3)


def test_a_rule_of_dependence_survives_only_clones_with_covariance():
    rng = np.random.default_rng(0)
    n = 4000
    y = np.repeat([0, 1], n)
    a, b = rng.normal(size=(2, 2 * n))
    x = np.stack([a, np.where(y == 1, a, -a) + 0.1 * b], axis=1)
    measure = CloneAccuracy()
    found = lab.measure(measure, Rule(lambda x: x[:, 0] * x[:, 1]), tm.GroupedData(x, y, y))["clone_accuracy"]
    assert found.sel(clone="real") > 0.95
    assert found.sel(clone="class covariance") > 0.95
    assert found.sel(clone="transport edit") > 0.95
    for blind in ("isotropic", "marginals", "shared covariance"):
        assert abs(found.sel(clone=blind) - 0.5) < 4 * 0.5 / np.sqrt(2 * n)
    assert found.sel(clone="quantile edit") < 0.1  # same marginals in both classes: the edit moves (almost) nothing


def test_clones_are_drawn_once_and_are_the_same_at_every_look():
    rng = np.random.default_rng(0)
    data = tm.GroupedData(rng.random((60, 4)).astype(np.float32), [0, 1] * 30, [0] * 60)
    measure = CloneAccuracy({"cube": MaxEntropyCube(), "shift": MeanShift()})
    assert measure.sets(data)["cube"] is measure.sets(data)["cube"]
    again = CloneAccuracy({"cube": MaxEntropyCube(), "shift": MeanShift()})
    assert measure == again
    model = mlp(4, (5,), 1)
    with tm.Probe(model, data, watch=tm.Watch(when=tm.record.every(1), measures=(measure,)), budget=None) as probe:
        probe(0)
        probe(1)
    run = probe.trajectory()["clone_loss"]
    assert np.array_equal(run[0], run[1])
    assert np.array_equal(run[0], lab.measure(again, model, data)["clone_loss"])
    assert run.sel(clone="real")[0] == pytest.approx(float(probe.trajectory()["loss"][0, 0]), rel=1e-6)


def test_images_sequences_and_what_is_refused():
    rng = np.random.default_rng(0)
    pictures = tm.GroupedData(rng.normal(size=(90, 3, 8, 8)).astype(np.float32), [0, 1, 2] * 30, [0] * 90)
    found = lab.measure("distributional", small_cnn(3, 3), pictures)
    assert found["clone_loss"].shape == (7,)
    assert np.isfinite(found["clone_loss"]).all()
    series = tm.GroupedData(rng.normal(size=(60, 6, 2)).astype(np.float32), [-1, 1] * 30, [0] * 60)
    assert np.isfinite(lab.measure("distributional", transformer(6, 2), series)["clone_loss"]).all()
    tokens = tm.GroupedData(rng.integers(0, 2, (60, 6)), [0, 1] * 30, [0] * 60)
    with pytest.raises(TypeError, match="Clones need points made of real numbers, not of tokens or counts"):
        lab.measure("distributional", transformer(6, vocabulary=2), tokens)
    numbers = tm.GroupedData(rng.normal(size=(60, 2)), rng.normal(size=60), [0] * 60)
    with pytest.raises(ValueError, match="A regression makes no decisions: clones need classes"):
        lab.measure("distributional", nn.Linear(2, 1), numbers)
    with pytest.raises(TypeError, match=r"`clones` should map names to clones. Found list."):
        CloneAccuracy([MeanShift()])
    with pytest.raises(ValueError, match="`clones` should not use the name 'real'"):
        CloneAccuracy({"real": MeanShift()})


def test_degenerate_points_stay_finite():
    constant = tm.GroupedData(np.ones((60, 4)), [0, 1] * 30, [0] * 60)
    found = lab.measure(CloneAccuracy(), mlp(4, (5,), 1), constant)
    assert all(np.isfinite(curve).all() for curve in found.values())
    lonely = constant.take([0, 1])
    assert np.isfinite(lab.measure(CloneAccuracy(), mlp(4, (5,), 1), lonely)["clone_loss"]).all()
    single = constant.take([0])
    with pytest.raises(ValueError, match=r"Moving points to another class needs at least two classes. Found 1."):
        lab.measure(CloneAccuracy({"move": GaussianTransport()}), mlp(4, (5,), 1), single)
    zero = mlp(4, (5,), 1)
    torch.nn.init.zeros_(zero[1].weight)
    assert np.isfinite(lab.measure(CloneAccuracy({"m": IndependentMarginals()}), zero, single)["clone_loss"]).all()
