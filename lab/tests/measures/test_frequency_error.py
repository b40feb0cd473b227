"""frequency-error: exact on known functions, and low frequencies first in training."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.sines import Sines, random_phases, sines
from tiltmeter_lab.measures.frequency_error import FrequencyError
from tiltmeter_lab.measures.measure import measure

TARGET = Sines((1, 3, 8), (1.0, 2.0, 0.5), (0.1, 0.2, 0.3))


class Known(nn.Module):
    """A function of one number as a network."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return torch.as_tensor(self.function(x.double().numpy()[:, 0]))


def read(function, chosen=FrequencyError(TARGET)):
    return measure(chosen, Known(function), sines(TARGET))


@pytest.mark.parametrize("chosen", [FrequencyError(TARGET), FrequencyError()], ids=["target", "labels"])
def test_the_target_itself_is_learned_and_zero_is_not(chosen):
    found = read(TARGET, chosen)
    assert found["frequency_error"].frequency.values.tolist() == [1, 3, 8]
    # Inputs are single precision: 8 periods of an error of 1e-7.
    assert found["frequency_error"].values == pytest.approx(0.0, abs=1e-4)
    assert found["amplitude_ratio"].values == pytest.approx(1.0, abs=1e-4)
    nothing = read(lambda x: 0 * x, chosen)
    assert nothing["frequency_error"].values == pytest.approx(nothing["frequency_error_null"].values)
    assert nothing["amplitude_ratio"].values == pytest.approx(nothing["amplitude_ratio_null"].values)


def test_a_wave_in_the_wrong_place_is_not_learned_though_its_amplitude_is():
    moved = Sines(TARGET.frequencies, TARGET.amplitudes, tuple(p + 0.5 for p in TARGET.phases))
    found = read(moved)
    assert found["frequency_error"].values == pytest.approx(2.0, abs=1e-4)
    assert found["amplitude_ratio"].values == pytest.approx(1.0, abs=1e-4)


def test_other_frequencies_do_not_leak():
    found = read(lambda x: TARGET(x) + Sines((2, 5, 40))(x) + 3.0)
    assert found["frequency_error"].values == pytest.approx(0.0, abs=1e-4)


def crossing(errors, frequency):
    below = errors.sel(frequency=frequency) < 0.5
    assert below.any(), f"{frequency} was not learned"
    return float(errors.time[int(below.values.argmax())])


@pytest.mark.slow
def test_low_frequencies_are_learned_first():
    for seed in range(3):
        target = Sines(phases=random_phases((1, 2, 4, 8), seed))
        data = sines(target, 128)
        torch.manual_seed(seed)
        run = tm.train(
            mlp(1, (128, 128, 128)),
            data,
            data,
            tm.Recipe(partial(torch.optim.Adam, lr=1e-3), steps=600, batch=128),
            watch=tm.Watch(when=tm.record.every(20), measures=(FrequencyError(target),)),
            seed=seed,
        )
        first, fourth, eighth = (crossing(run["frequency_error"], k) for k in (1, 4, 8))
        assert first < eighth
        assert eighth > 2 * fourth


def test_a_known_linear_model_of_sines_shows_no_order():
    """Negative control: where every frequency is an input of equal variance, all are learned at one rate."""

    class Waves(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(6))

        def forward(self, x):
            k = torch.tensor([1.0, 3.0, 8.0])
            phase = torch.pi * k * (x + 1.0)
            return torch.cat([torch.sin(phase), torch.cos(phase)], 1) @ self.weight

    data = sines(TARGET, 64)
    model = Waves()
    run = tm.train(
        model,
        data,
        data,
        tm.Recipe(lr=0.2, steps=20, batch=64),
        watch=tm.Watch(when=tm.record.every(5), measures=(FrequencyError(TARGET),)),
    )
    errors = run["frequency_error"]
    assert (errors.max("frequency") - errors.min("frequency")).max() < 1e-4
    assert errors.sel(time=20).max() == pytest.approx(0.9**20, rel=1e-3)


def test_what_it_cannot_read_is_refused():
    with pytest.raises(ValueError, match="see line-spectrum"):
        measure("frequency-error", nn.Linear(2, 1), sines(TARGET, circle=True))
    with pytest.raises(ValueError, match="`points` should exceed twice"):
        FrequencyError(TARGET, points=16)
    with pytest.raises(
        ValueError, match=r"`target` should contain every frequency that it names. Found nothing at frequency 2."
    ):
        FrequencyError(Sines((1, 2), (1.0, 0.0)))
    with pytest.raises(ValueError, match="not an even grid"):
        measure("frequency-error", nn.Linear(1, 1), sines(TARGET, seed=0))
    flat = tm.GroupedData(np.linspace(0, 1, 40)[:, None], np.zeros(40), ["a"] * 40)
    with pytest.raises(ValueError, match="labels should vary"):
        measure("frequency-error", nn.Linear(1, 1), flat)
