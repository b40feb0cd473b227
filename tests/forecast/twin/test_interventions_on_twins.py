"""Interventions act on a twin as in training: exactly at full width, nearly at less, and those that cannot are
refused."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from networks import small_cnn
from tiltmeter.forecast.twin import twins
from tiltmeter.forecast.twin import twins as scaled_recipe
from tiltmeter.interventions import StepIntervention
from tiltmeter.modules.networks import mlp

lab = pytest.importorskip("tiltmeter_lab")

I = tm.interventions
RECIPE = tm.Recipe(partial(torch.optim.AdamW, lr=3e-3), steps=60, order=1, batch=32)
INTERVENTIONS = {
    "Balanced": I.Balanced(),
    "GroupDRO": I.GroupDRO(rate=0.1),
    "CVaR": I.CVaR(0.5),
    "drawn": I.GroupDRO(rate=0.1, by="draws"),
    "UPGrad": I.UPGrad(),
    "SAM": I.SAM(0.5),
    "GradientPenalty": lab.interventions.GradientPenalty(0.3, 0.5),
    "SelecMix": I.SelecMix(),
    "Downsampled": I.Downsampled(),
    "JTT": I.JTT(times=5, scout=10),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 12)).astype(np.float32)
    group = np.where(np.arange(800) % 4 == 0, "rare", "common")
    y = np.where(np.where(group == "rare", x[:, 1] * x[:, 2], x[:, 0]) > 0, 1, -1)
    return tm.GroupedData(x, y, group).split(0.4)


def network():
    torch.manual_seed(0)
    return mlp(12, (128,))


def gap(run):
    loss = run["loss"].mean("seed") if "seed" in run["loss"].dims else run["loss"]
    return (loss.sel(group="rare") - loss.sel(group="common")).values


def off(a, b):
    return np.abs(gap(a) - gap(b)).max()


@pytest.mark.parametrize("name", ["drawn", "UPGrad", "GradientPenalty", "SelecMix"])
def test_full_width_is_the_training(name, data):
    recipe = replace(RECIPE, interventions=(INTERVENTIONS[name],), steps=10)
    run = tm.train(network(), *data, recipe)
    same = tm.forecast(network(), *data, recipe, method=tm.methods.Twin(share=1))
    assert set(run) <= set(same)
    assert max(float(abs(same[curve] - run[curve]).max()) for curve in run) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", INTERVENTIONS)
def test_less_than_full_width_is_near(name, data):
    recipe = replace(RECIPE, interventions=(INTERVENTIONS[name],))
    run = tm.train(network(), *data, recipe)
    told = tm.forecast(network(), *data, recipe, method=tm.methods.Twin(1 / 4))
    plain = tm.train(network(), *data, RECIPE)
    assert off(told, run) < 0.5 * off(plain, run)  # the intervention is told apart from the plain training


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SAM", "UPGrad"])
def test_gradients_count_as_in_the_wide_network(name, data, monkeypatch):
    """A negative control: lengths and products of gradients as they are in the twin tell the intervention worse."""
    law = {"SAM": I.SAM(1.0), "UPGrad": I.UPGrad()}[name]
    recipe = replace(RECIPE, interventions=(law,), steps=120)
    run = tm.train(network(), *data, recipe)
    route = tm.methods.Twin(1 / 8, count=4)
    right = tm.forecast(network(), *data, recipe, method=route, progress=False)
    plain_groups = scaled_recipe._pieces

    def forgetful(*given):
        made = plain_groups(*given)
        for group in made.param_groups:
            group |= {"gradient_norm": 1.0, "gradient_step": 1.0}
        return made

    monkeypatch.setattr(scaled_recipe, "_pieces", forgetful)
    monkeypatch.setattr(twins.ScaledTwin, "norms", property(lambda self: {}))
    wrong = tm.forecast(network(), *data, recipe, method=route, progress=False)
    assert off(right, run) < off(wrong, run)


def test_mixed_points_go_through_batch_normalisation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3, 8, 8)).astype(np.float32)
    y, group = rng.integers(0, 2, 120), np.where(np.arange(120) % 2 == 0, "a", "b")
    train, held_out = tm.GroupedData(x, y, group).split(0.4)
    torch.manual_seed(0)
    model = small_cnn(3, 1, 32, normalise=True)
    recipe = replace(RECIPE, steps=4, batch=16, interventions=(I.SelecMix(),))
    told = tm.forecast(model, train, held_out, recipe, method=tm.methods.Twin(1 / 4))
    run = tm.train(model, train, held_out, recipe)
    assert float(abs(told["loss"].sel(time=0) - run["loss"].sel(time=0)).max()) < 1e-5


def test_what_twins_refuse(data):
    @dataclass(frozen=True)
    class Odd(StepIntervention):
        def optimizer(self, made):
            return made

    cases = [
        (I.DFR(), tm.methods.Twin(), "A twin delivers no other model: DFR"),
        (Odd(), tm.methods.Twin(), "knows the steps of tiltmeter's interventions only. Found Odd: `train` applies it"),
    ]
    for law, route, said in cases:
        with pytest.raises(ValueError, match=said):
            tm.forecast(network(), *data, replace(RECIPE, interventions=(law,)), method=route)


def test_a_model_with_its_own_way_of_reading(data):
    class Told(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            return {"logits": self.inner(x)}

    recipe = replace(RECIPE, steps=20, interventions=(I.SelecMix(),))
    watch = tm.Watch(read=lambda output: output["logits"])
    same = tm.forecast(Told(), *data, recipe, method=tm.methods.Twin(share=1), watch=watch)
    assert float(abs(same["loss"] - tm.train(network(), *data, recipe)["loss"]).max()) == 0.0
