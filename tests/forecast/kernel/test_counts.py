"""What a forecast computes how often: one plan and one check of gradients per network, few kernels, labels once."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.data import grouped
from tiltmeter.forecast.kernel import horizon_tests
from tiltmeter.forecast.route import Kernel
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.tangent import kernel as kernels
from tiltmeter.tangent import plan as plans
from tiltmeter.tangent.kernel import tangent_kernel

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
        return tm.forecast(*args, **settings)


@pytest.mark.parametrize("real_steps", [0, 10])
def test_one_plan_and_one_check_of_gradients_serve_all_kernels(two_labels, monkeypatch, real_steps):
    plan, check = (counted(monkeypatch, m, n) for m, n in ((kernels, "make_plan"), (plans, "true_gradients")))
    ahead = forecast(network(), *two_labels, RECIPE, route=Kernel(real_steps=real_steps))
    assert ahead.origin.settings["horizon"]["linear"] is not None  # the bisection went on to its end
    assert (len(plan), len(check)) == (1, 1)


def test_the_kernel_before_training_is_computed_once_and_one_kernel_at_every_bisection(two_labels, monkeypatch):
    calls, asked = counted(monkeypatch, kernels, "fill"), counted(monkeypatch, horizon_tests, "pulled")
    forecast(network(), *two_labels, RECIPE)
    assert len(asked) > 3
    assert len(calls) == 1 + 1 + len(asked)  # sample and looks, before training, and one where each bisection looks


def test_a_second_question_needs_no_kernel_before_training_again(two_labels, monkeypatch):
    kept = tm.tangent(network(), *two_labels)
    kept.watched  # noqa: B018
    calls = counted(monkeypatch, kernels, "fill")
    asked = counted(monkeypatch, horizon_tests, "pulled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept.forecast(RECIPE)
    assert len(calls) == len(asked) > 0


def test_a_kernel_by_the_plan_of_the_network_is_the_kernel_of_its_copy(three_classes):
    kept = tm.tangent(network(outputs=3), *three_classes, outputs="full")
    moved = deep_copy(kept.model)
    with torch.no_grad():
        for weight in moved.parameters():
            weight.mul_(1.7)
    x = kept.look.tensors()[0][:20]
    np.testing.assert_array_equal(kept.kernel_of(moved, x), tangent_kernel(moved, x))
    assert abs(kept.kernel_of(moved, x) - kept.kernel_of(kept.model, x)).max() > 0.1


def test_labels_are_laid_out_once_however_often_a_probe_looks(two_labels, monkeypatch):
    _, look = two_labels
    calls = counted(monkeypatch, grouped, "labels_array")
    with tm.Probe(network(), look) as probe:
        for step in range(17):
            probe.look(step)
    assert probe.trajectory()["loss"].sizes["time"] == 17
    assert len(calls) == 1
