"""The picture of a feature sweep: a line per group and curve, and every bad input's sentence."""

import pytest

import tiltmeter as tm
from tiltmeter_lab.theory.feature_sweep import feature_sweep
from tiltmeter_lab.theory.random_features import random_features

FOUND = random_features(tm.theory.cases.centred_crossing().problem, [0.5, 1.0, 2.0, 5.0], samples=2.0)


def test_lines_and_the_mark_of_the_samples():
    layers = feature_sweep(FOUND, samples=2.0).to_dict()["layer"]
    assert [layer["mark"]["type"] for layer in layers] == ["line", "line", "rule"]
    assert layers[0]["mark"]["strokeWidth"] > layers[1]["mark"]["strokeWidth"]  # training is thin
    assert len(feature_sweep(FOUND, curves=("loss",), title="Loss").to_dict()["layer"]) == 1


def test_refusals():
    with pytest.raises(TypeError, match="draws a Dataset"):
        feature_sweep(FOUND["error"])
    with pytest.raises(KeyError, match="No curve 'tpr'"):
        feature_sweep(FOUND, curves=("tpr",))
    with pytest.raises(ValueError, match="should have the dimensions 'width' and 'group'"):
        feature_sweep(FOUND, x="width")
    with pytest.raises(ValueError, match="at least one curve"):
        feature_sweep(FOUND, curves=())
