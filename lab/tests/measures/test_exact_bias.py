"""Random linear classifiers in the plane err on at most a share eps with chance eps: -log2 eps bits."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import transformer
from tiltmeter_lab.measures.exact_bias import ExactBias, bias_bits, start_anew


class Plane(nn.Linear):
    """A direction in the plane, drawn uniformly."""

    def __init__(self):
        super().__init__(2, 1, bias=False)

    def reset_parameters(self):
        nn.init.normal_(self.weight)


def circle(points=2000):
    """Points all around, positive to the right."""
    angle = np.linspace(0, 2 * np.pi, points, endpoint=False) + 0.01
    x = np.stack([np.cos(angle), np.sin(angle)], 1)
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.arange(points) % 2)


def test_linear_classifiers_in_the_plane():
    targets = (0.5, 0.25, 0.1, 0.02)
    readings = lab.measure(ExactBias(draws=4000, targets=targets), Plane(), circle())
    bits, error = (readings[key].values[:-1] for key in ("bias_bits", "bias_bits_se"))
    assert (error < 0.2).all()
    assert np.all(np.abs(bits + np.log2(targets)) < 4 * error)


def test_the_model_itself_and_what_random_labels_would_need():
    torch.manual_seed(3)
    model, data = Plane(), circle()
    readings = lab.measure(ExactBias(draws=1000), model, data)
    wrong = float(np.mean((model(torch.as_tensor(data.x, dtype=torch.float32)) > 0).numpy()[:, 0] != data.y))
    own, error = (float(readings[key].sel(target="model")) for key in ("bias_bits", "bias_bits_se"))
    assert error < 0.25
    assert own == pytest.approx(-np.log2(wrong), abs=3 * error)
    # A line has far fewer than 2000 free labels: half of 2000 coins right takes a bit, nine tenths a thousand.
    assert float(readings["bias_bits_null"].sel(target="0.5")) == pytest.approx(1.0, abs=0.1)
    assert float(readings["bias_bits_null"].sel(target="0.1")) > 1000
    assert float(readings["bias_bits_short"].sel(target="0.1")) > 990


def test_an_error_that_no_draw_reaches_is_a_bound_and_says_so():
    bits, error = bias_bits(np.full(64, 0.4), np.array([0.5, 0.1]))
    assert bits.tolist() == [0.0, 6.0]
    assert error[0] == 0.0
    assert np.isnan(error[1])


def test_every_parameter_is_drawn_anew():
    torch.manual_seed(0)
    model = transformer(4, 3, width=8, layers=1, heads=2)
    drawn = transformer(4, 3, width=8, layers=1, heads=2)
    drawn.load_state_dict(model.state_dict())
    start_anew(drawn, model)
    same = [
        name
        for (name, a), (_, b) in zip(model.named_parameters(), drawn.named_parameters(), strict=True)
        if torch.equal(a, b)
    ]
    assert all(
        "norm" in name or "in_proj_bias" in name or "out_proj.bias" in name for name in same
    )  # those start constant
    assert float(drawn.positions.detach().std()) == pytest.approx(0.1, rel=0.5)


def test_bad_choices_are_refused():
    with pytest.raises(ValueError, match="`draws` should be at least 1"):
        ExactBias(draws=0)
    with pytest.raises(ValueError, match="`targets` should be shares"):
        ExactBias(targets=(2.0,))
