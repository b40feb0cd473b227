"""line-spectrum: known functions of high-dimensional inputs, linear models, and any network."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from networks import transformer
from tiltmeter.measures.task import Task
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.measures.line_spectrum import FLOOR, LineSpectrum, signal_of
from tiltmeter_lab.measures.measure import measure

ALL = ("within", "between", "random")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    return tm.GroupedData(rng.normal(size=(90, 6)) + np.eye(6)[y], y, np.arange(90) % 2)


class Waves(nn.Module):
    """cos(2 pi periods u) in every output, where u is the last input, 0 and 1 at the ends of a line."""

    def __init__(self, periods):
        super().__init__()
        self.periods = periods

    def forward(self, x):
        wave = torch.cos(2 * torch.pi * self.periods * x[:, -1:].double())
        return torch.cat([wave, -2 * wave, 0.5 * wave], 1)


@pytest.fixture
def ends():
    """Two points, so that every line between runs from one end to the other."""
    x = np.random.default_rng(0).normal(size=(2, 5))
    with pytest.warns(UserWarning, match="fewer than 30"):
        return tm.GroupedData(np.concatenate([x, [[0.0], [1.0]]], 1), [0, 1], ["a", "a"])


def test_a_pure_tone_along_the_line(ends):
    found = measure(LineSpectrum(("between",), lines=4), Waves(5), ends)
    ratio = found["energy_ratio"].sel(path="between")
    assert ratio.sel(frequency=5) == pytest.approx(0.0, abs=1e-6)
    # Inputs are single precision, so that the rest is not below -70 but below (1e-7)^2.
    assert ratio.drop_sel(frequency=5).max() < np.log(1e-12)
    assert found["line_frequency"].item() == pytest.approx(5.0, abs=1e-4)
    assert found["path_length"].item() == pytest.approx(np.linalg.norm(ends.x[1] - ends.x[0]), rel=1e-6)


@pytest.mark.parametrize("signal", ["logits", "probabilities", "distance"])
@pytest.mark.parametrize("window", ["none", "hann"])
def test_a_linear_model_is_its_own_null(data, signal, window):
    found = measure(LineSpectrum(ALL, lines=16, signal=signal, window=window), nn.Linear(6, 3), data)
    share, null = np.exp(found["energy_ratio"]), np.exp(found["energy_ratio_null"])
    assert np.abs(share - null).max() < 1e-5
    assert found["line_frequency"].values == pytest.approx(found["line_frequency_null"].values, rel=1e-2)


def test_the_ramp_is_that_of_the_energies(ends):
    """Second route: a linear function with outputs 1 and 4 at the ends is the ramp of the closed form."""
    model = nn.Linear(6, 3)
    with torch.no_grad():
        model.weight.zero_()
        model.weight[:, -1] = 3.0
        model.bias.fill_(1.0)
    found = measure(LineSpectrum(("between",), lines=40, points=128), model, ends)["energy_ratio_null"]
    ahead = np.arange(128) / 128
    energy = [np.abs(np.fft.rfft(ramp)) ** 2 for ramp in (1 + 3 * ahead, 4 - 3 * ahead)]
    both = [np.log(e / e.sum()) for e in energy]
    # Lines go either way, the ramp up or down: the mean over both lies between.
    for k in range(3):
        low, high = sorted(one[k] for one in both)
        assert low - 1e-3 <= found.sel(frequency=k).item() <= high + 1e-3


def test_probabilities_sum_to_one_at_every_point():
    """Normalising over the whole path instead makes them shrink as the path grows."""
    scores = torch.randn(4, 5, 10, dtype=torch.float64)
    chance = signal_of(scores, Task(10, tuple(range(10)), None, "softmax"), "probabilities")
    assert torch.allclose(chance.sum(-1), torch.ones(4, 5, dtype=torch.float64))
    assert torch.allclose(chance[0, 0], torch.softmax(scores[0, 0], 0))


def test_probabilities_do_not_depend_on_how_many_points_a_line_has(data):
    model = mlp(6, (16,), 3)
    few, many = (
        measure(LineSpectrum(("between",), lines=32, points=n, signal="probabilities"), model, data) for n in (32, 64)
    )
    low = range(4)
    assert few["energy_ratio"].sel(frequency=low).values == pytest.approx(
        many["energy_ratio"].sel(frequency=low).values, abs=0.05
    )


def test_a_constant_model_varies_nowhere(data):
    model = nn.Linear(6, 3)
    nn.init.zeros_(model.weight)
    found = measure(LineSpectrum(ALL, lines=8), model, data)
    assert not found["line_frequency"].values.any()
    assert found["energy_ratio"].sel(frequency=0).values == pytest.approx(0.0)
    assert (found["energy_ratio"].drop_sel(frequency=0) == FLOOR).all()
    nn.init.zeros_(model.bias)
    for detrend in ("none", "mean", "linear"):
        dead = measure(LineSpectrum(ALL, lines=8, detrend=detrend, constant=False), model, data)
        assert all(np.isfinite(values).all() for values in dead.values())


def test_identical_ends_have_no_distance():
    same = tm.GroupedData(np.ones((40, 3)), [0, 1] * 20, ["a"] * 40)
    found = measure(LineSpectrum(("within", "between"), lines=8, signal="distance"), nn.Linear(3, 2), same)
    assert not found["path_length"].values.any()
    assert (found["energy_ratio"] == FLOOR).all()


def test_the_same_lines_at_every_look_and_others_by_seed(data):
    model = mlp(6, (16,), 3)
    first, again, other = (measure(LineSpectrum(lines=8, seed=s), model, data)["energy_ratio"] for s in (0, 0, 1))
    assert first.equals(again)
    assert not first.equals(other)


def test_any_network_of_numbers(network):
    model, shape = network
    rng = np.random.default_rng(0)
    images = tm.GroupedData(rng.normal(size=(40, *shape)), np.arange(40) % 4, ["a"] * 40)
    found = measure(LineSpectrum(ALL, lines=6, points=16), model, images)
    assert found["energy_ratio"].dims == ("path", "frequency")
    assert found["energy_ratio"].path.values.tolist() == list(ALL)
    assert all(np.isfinite(values).all() for values in found.values())


def test_in_a_probe_it_has_a_time_for_every_look(data):
    model = mlp(6, (16,), 3)
    with tm.Probe(
        model, data, watch=tm.Watch(when=tm.record.every(1), measures=(LineSpectrum(lines=4, points=8),)), budget=None
    ) as probe:
        probe(0)
    assert probe.trajectory()["energy_ratio"].dims == ("time", "path", "frequency")


def test_cost_is_counted_in_passes(data):
    seen = []

    class Counted(nn.Linear):
        def forward(self, x):
            seen.append(len(x))
            return super().forward(x)

    chosen = LineSpectrum(ALL, lines=9, points=16)
    model = Counted(6, 3)
    from tiltmeter_lab.measures.measure import snapshot_of

    with torch.no_grad():
        snapshot = snapshot_of(model, data)
        seen.clear()
        chosen(snapshot)
    assert sum(seen) == pytest.approx(chosen.passes(snapshot) * len(data))


def test_what_it_cannot_read_is_refused(data):
    tokens = tm.GroupedData(np.zeros((40, 3), dtype=np.int64), [0, 1] * 20, ["a"] * 40)
    with pytest.raises(ValueError, match="Found integer inputs"):
        measure("line-spectrum", transformer(3, vocabulary=2, outputs=2), tokens)
    numbers = tm.GroupedData(np.random.default_rng(0).normal(size=(40, 3)), np.linspace(0, 1, 40), ["a"] * 40)
    with pytest.raises(ValueError, match="A regression has no classes"):
        measure("line-spectrum", nn.Linear(3, 1), numbers)
    with pytest.raises(ValueError, match="has no probabilities"):
        measure(LineSpectrum(("random",), signal="probabilities"), nn.Linear(3, 1), numbers)
    assert np.isfinite(measure(LineSpectrum(("random",)), nn.Linear(3, 1), numbers)["energy_ratio"]).all()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"window": "square"}, "`window` should be one of none, hann"),
        ({"detrend": "cubic"}, "`detrend` should be one of"),
        ({"signal": "loss"}, "`signal` should be one of"),
        ({"paths": ("sideways",)}, "`paths` should be different ones"),
        ({"points": 2}, "`lines` should be at least 1 and `points` 4"),
        ({"length": 0.0}, "`length` should be positive"),
    ],
)
def test_impossible_choices_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        LineSpectrum(**settings)
