"""Batch normalisation before its first batch: the forecast gives it the statistics that training will."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.batch_statistics import fresh, gather_statistics


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 200), nn.BatchNorm1d(200), nn.ReLU(), nn.Linear(200, 1))


@pytest.fixture
def faint(two_labels):
    """Points so small that batch statistics are far from 0 and 1."""
    return [tm.GroupedData(part.x * 0.1, part.y, np.asarray(part.groups)[part.codes]) for part in two_labels]


def test_statistics_are_those_of_the_layers_inputs(faint):
    train, model = faint[0], network()
    modes = [module.training for module in model.modules()]
    assert gather_statistics(model, train, len(train), None) == ["1"]
    with torch.no_grad():
        inputs = model[0](train.tensors()[0])
    torch.testing.assert_close(model[1].running_mean, inputs.mean(0))
    torch.testing.assert_close(model[1].running_var, inputs.var(0))
    assert [module.training for module in model.modules()] == modes
    assert model[1].momentum == 0.1
    assert not fresh(model)


def test_a_fresh_network_is_forecast_as_it_will_train(faint):
    train, held_out = faint
    model = network()
    before = copy.deepcopy(model.state_dict())
    with pytest.warns(UserWarning, match=r"seen no batch yet \('1'\)"):
        ahead = tm.forecast(
            model,
            train,
            held_out,
            tm.Recipe(lr=0.01, steps=300, batch=None, loss=tm.Square()),
            method=tm.methods.Kernel(),
        )
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert ahead.origin.settings["batch_statistics"] == "of the training data"
    run = tm.train(network(), train, held_out, tm.Recipe(lr=0.01, steps=300, batch=64, loss=tm.Square()))["loss"]
    # The negative control: the same network, its 0 and 1 taken for statistics.
    model[1].num_batches_tracked += 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        naive = tm.forecast(
            model,
            train,
            held_out,
            tm.Recipe(lr=0.01, steps=300, batch=None, loss=tm.Square()),
            method=tm.methods.Kernel(),
        )
    off, naive_off = (float(abs(one["loss"].sel(time=300) - run.sel(time=300)).max()) for one in (ahead, naive))
    assert off < 0.05
    assert naive_off > 0.2


def test_layers_that_know_something_are_left_alone():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2), nn.InstanceNorm1d(2, track_running_stats=True))
    with torch.no_grad():
        model[1].running_mean += 1.0  # from a file of weights that does not count batches
    assert list(fresh(model)) == ["0"]
