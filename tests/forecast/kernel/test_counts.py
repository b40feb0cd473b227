"""What a forecast computes how often: one plan and one check of gradients per network, few kernels, labels once."""

import warnings
from functools import partial

import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.data import grouped
from tiltmeter.modules.tangent import kernel as kernels
from tiltmeter.modules.tangent import plan as plans

by_kernel = partial(tm.forecast, method=tm.methods.Kernel(), progress=False)

RECIPE = tm.Recipe(lr=0.1, steps=1000, batch=None, loss=tm.Square())


def network(width=64, outputs=1):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, outputs))


def counted(monkeypatch, module, name):
    calls, real = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *a, **k: calls.append(1) or real(*a, **k))
    return calls


def forecast(*args, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return by_kernel(*args, **settings)


def test_one_plan_and_one_check_of_gradients_serve_all_kernels(two_labels, monkeypatch):
    plan, check = (counted(monkeypatch, m, n) for m, n in ((kernels, "make_plan"), (plans, "true_gradients")))
    forecast(network(), *two_labels, RECIPE)
    assert (len(plan), len(check)) == (1, 1)


def test_labels_are_laid_out_once_however_often_a_probe_looks(two_labels, monkeypatch):
    _, held_out = two_labels
    calls = counted(monkeypatch, grouped, "labels_array")
    with tm.Probe(network(), held_out, budget=None) as probe:
        for step in range(17):
            probe.evaluate(step)
    assert probe.trajectory()["loss"].sizes["time"] == 17
    assert len(calls) == 1
