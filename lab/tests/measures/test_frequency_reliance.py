"""Frequency reliance: the filters add up to the image, a wave passes one of them, and the mean passes all."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.frequency_reliance import FILTERS, FrequencyReliance


def waves(frequency, points=120, size=16):
    """Images of a wave along the columns whose sign is the label; half of them turned by a quarter."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, points)
    wave = np.cos(2 * np.pi * frequency * np.arange(size) / size)
    x = (2 * y - 1)[:, None, None, None] * np.tile(wave, (points, 1, size, 1))
    group = np.where(np.arange(points) % 2, "turned", "upright")
    x[group == "turned"] = x[group == "turned"].swapaxes(2, 3)
    return tm.GroupedData(x.astype(np.float32), y, group)


class Matched(nn.Module):
    """Answers by the product with the wave, in either direction."""

    def __init__(self, frequency, size=16):
        super().__init__()
        wave = torch.cos(2 * torch.pi * frequency * torch.arange(size) / size)
        self.weight = nn.Parameter(wave[None, :] + wave[:, None])

    def forward(self, x):
        return (x[:, 0] * self.weight).sum((1, 2))[:, None] - 1.0  # a wave that is gone is called 0


def test_the_filters_add_up_to_the_image_and_only_patches_move():
    x = torch.randn(3, 2, 9, 8, dtype=torch.float64)
    whole, low, band, high, shuffled = FrequencyReliance(patch=4).filtered(x)
    mean = x.mean((2, 3), keepdim=True)
    torch.testing.assert_close(low + band + high - 2 * mean, x)
    assert torch.equal(whole, x)
    assert torch.equal(shuffled[:, :, 8:], x[:, :, 8:])  # rows that fill no patch
    assert torch.equal(shuffled[:, :, :8].flatten(1).sort().values, x[:, :, :8].flatten(1).sort().values)


@pytest.mark.parametrize(("frequency", "passes"), [(1, "low"), (3, "band"), (6, "high")])
def test_a_wave_passes_one_filter(frequency, passes):
    """A second route: the radius of a wave of k periods in 16 pixels is k / 8."""
    found = lab.measure(FrequencyReliance(), Matched(frequency), waves(frequency), tm.Logistic())["filtered_accuracy"]
    for name in ("low", "band", "high"):
        share = found.sel(filter=name).values
        assert (share == 1.0).all() if name == passes else (abs(share - 0.5) < 0.2).all(), name


def test_a_model_of_the_mean_sees_no_filter():
    data = waves(3)
    data = tm.GroupedData(data.x + data.y[:, None, None, None], data.y, [data.groups[c] for c in data.codes])

    class Mean(Matched):
        def forward(self, x):
            return x.mean((1, 2, 3))[:, None] - 0.5 + 0.0 * self.weight.sum()

    found = lab.measure(FrequencyReliance(), Mean(3), data, tm.Logistic())
    assert found["filtered_accuracy"].filter.values.tolist() == list(FILTERS)
    assert (found["filtered_accuracy"].values == 1.0).all()
    assert found["filtered_accuracy_null"].values[0] == pytest.approx([0.5, 0.5], abs=0.1)


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="`cuts` should be two rising positive numbers"):
        FrequencyReliance(cuts=(0.5, 0.25))
    with pytest.raises(ValueError, match="`patch` should be at least 1"):
        FrequencyReliance(patch=0)
    with pytest.raises(ValueError, match="needs images"):
        lab.measure(FrequencyReliance(), nn.Linear(3, 2), tm.GroupedData(np.ones((60, 3)), [0, 1] * 30, "label"))
