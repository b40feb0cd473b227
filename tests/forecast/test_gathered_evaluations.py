"""Evaluations that are read together at the end give the curves of evaluations that are read one by one."""

from functools import partial

import numpy as np
import pytest
import torch

import tiltmeter as tm
from tiltmeter.modules.networks import mlp

ADAM = partial(torch.optim.AdamW, lr=1e-2)
CASES = {
    "one twin": (tm.methods.Twin(count=1), {}),
    "two twins": (tm.methods.Twin(count=2), {}),
    "two orders": (tm.methods.Twin(count=2), {"order": None}),
    "diverged": (tm.methods.Twin(count=2), {"optimiser": partial(torch.optim.SGD, lr=1e18), "loss": tm.Square()}),
}


@pytest.mark.parametrize("name", CASES)
def test_read_together_or_one_by_one(two_labels, name):
    route, more = CASES[name]
    recipe = tm.Recipe(**{"optimiser": ADAM, "steps": 12, "batch": 16, "order": 0, **more})
    torch.manual_seed(0)
    model = mlp(6, (64,))
    alone, together = (
        tm.forecast(model, *two_labels, recipe, method=route, watch=tm.Watch(points=points), progress=False)
        for points in (True, False)
    )
    assert set(alone) == set(together)
    for curve in alone:
        assert alone[curve].dims == together[curve].dims
        assert alone[curve].attrs == together[curve].attrs
        assert alone[curve].indexes["time"].equals(together[curve].indexes["time"])
        np.testing.assert_allclose(alone[curve], together[curve], atol=1e-6)
    assert (alone.diverged is None) == (together.diverged is None) == (name != "diverged")
    if alone.diverged is not None:
        assert alone.diverged.equals(together.diverged)


@pytest.mark.parametrize("activation", [torch.nn.ReLU, torch.nn.Tanh, torch.nn.Sigmoid])
@pytest.mark.parametrize("classes", [1, 3])
def test_formulas_are_autograd(two_labels, three_classes, activation, classes, monkeypatch):
    """Twins trained by formulas and through autograd, with a frozen layer, weights of groups and clipping."""
    from tiltmeter.forecast.twin.side_by_side import QuickGradients

    train, held_out = two_labels if classes == 1 else three_classes
    torch.manual_seed(0)
    layers = torch.nn.Linear(6, 32), activation(), torch.nn.Linear(32, 32), activation(), torch.nn.Linear(32, classes)
    model = torch.nn.Sequential(*layers)
    model[4].bias.requires_grad_(False)
    recipe = tm.Recipe(ADAM, steps=15, batch=16, order=0, weights={"b": 2.0}, clip=0.5)
    ahead = partial(tm.forecast, model, train, held_out, recipe, method=tm.methods.Twin(share=1 / 2), progress=False)
    quick = ahead()
    monkeypatch.setattr(QuickGradients, "known", staticmethod(lambda layers: False))
    slow = ahead()
    for curve in ("loss", "margin"):
        np.testing.assert_allclose(quick[curve], slow[curve], rtol=1e-4, atol=1e-5)
    assert float(abs(quick["loss"].isel(time=-1) - quick["loss"].isel(time=0)).max()) > 1e-3
