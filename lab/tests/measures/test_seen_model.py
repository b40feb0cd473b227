"""The model at one evaluation: it decides as the user says, and takes points in its own precision."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter.measures.default_curves import error
from tiltmeter_lab.measures.projection_dependence import Learned, ProjectionDependence


def first_coordinate(outputs=1):
    """Scores by the first coordinate, and data whose label is whether it exceeds one half."""
    x = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
    model = nn.Linear(4, outputs, bias=False)
    with torch.no_grad():
        model.weight.zero_()
        model.weight[-1, 0] = 1.0
    return model, tm.GroupedData(x, np.where(x[:, 0] > 0.5, 1, -1 if outputs == 1 else 0), np.arange(90) % 3)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(
    ("name", "curve", "chosen"),
    [
        ("distributional", "clone_accuracy", {"clone": "real"}),
        ("randomised", "randomised_accuracy", {"part": "none"}),
        ("truncated-accuracy", "truncated_accuracy", {"kept": 4}),
        ("low-dimensional-dependence", "projection_accuracy", {"part": "none"}),
    ],
)
def test_measures_decide_by_the_users_own_rule(name, curve, chosen, outputs):
    model, data = first_coordinate(outputs)
    rule = (lambda score: score > 0.5) if outputs == 1 else (lambda score: (score[:, 1] > 0.5).astype(int))
    assert not lab.measure(error, model, data, decide=rule)["error"].values.any()
    assert (lab.measure(name, model, data, decide=rule)[curve].sel(chosen) == 1.0).all()
    # Without the rule the threshold is 0, and the points between are decided wrong.
    assert (lab.measure(name, model, data)[curve].sel(chosen) < 1.0).any()


def test_a_rule_that_does_not_decide_every_point_gets_a_sentence():
    model, data = first_coordinate()
    with pytest.raises(ValueError, match=r"`decide` should give one decision per point. Found shape \(\)."):
        lab.measure("randomised", model, data, decide=lambda score: score.mean() > 0)


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_gradients_of_models_in_another_precision(kind):
    model, data = first_coordinate()
    model.to(kind)
    found = lab.measure(ProjectionDependence((1,), Learned(steps=30)), model, data)
    assert found["projection_accuracy"].sel(rank=1, part="rest") > 0.7
