"""truncated-accuracy: what is left when inputs keep their leading components only."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from networks import transformer
from tiltmeter.data.principal_components import principal_components
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.measures.measure import measure
from tiltmeter_lab.measures.truncated_accuracy import TruncatedAccuracy


@pytest.fixture
def data():
    """Labels are the sign of the second component, of variance 4 after 9."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)) * [3, 2, 1, 0.5]
    x -= x.mean(0)
    x = x @ np.linalg.inv(np.linalg.cholesky(x.T @ x / 400)).T * [3, 2, 1, 0.5]
    return tm.GroupedData(x, (x[:, 1] > 0).astype(int), np.where(rng.random(400) < 0.25, "b", "a"))


def reader(column):
    """A network that decides by one input."""
    model = nn.Linear(4, 1)
    with torch.no_grad():
        model.weight.copy_(torch.eye(4)[column : column + 1])
        model.bias.zero_()
    return model


def test_accuracy_appears_with_the_component_that_decides(data):
    found = measure(TruncatedAccuracy((0, 1, 2, 3, 4)), reader(1), data)["truncated_accuracy"]
    assert (found.sel(kept=[2, 3, 4]) == 1.0).all()
    # Inputs without that component lie on the threshold up to rounding.
    assert (found.sel(kept=[0, 1]) < 0.75).all()


def test_a_component_of_little_variance_appears_last(data):
    """Negative control: the order is that of the network's use, not of the data alone."""
    other = tm.GroupedData(data.x, (data.x[:, 3] > 0).astype(int), data.codes)
    found = measure(TruncatedAccuracy((1, 2, 3, 4)), reader(3), other)["truncated_accuracy"].mean("group")
    assert found.sel(kept=4) == 1.0
    assert found.sel(kept=3) < 0.75


def test_with_all_components_it_is_the_accuracy(data):
    model = mlp(4, (8,), 2)
    found = measure("truncated-accuracy", model, data)
    assert found["truncated_accuracy"].kept.values.tolist() == [0, 1, 2, 4]
    from tiltmeter.measures.default_curves import error

    whole = measure(error, model, data)
    assert found["truncated_accuracy"].sel(kept=4).values == pytest.approx(1.0 - whole["error"].values)
    assert found["truncated_accuracy_se"].sel(kept=4).values == pytest.approx(whole["error_se"].values)


def test_the_null_is_the_commonest_label_of_each_group():
    y = np.array([0] * 30 + [1] * 10 + [0] * 12 + [1] * 28)
    data = tm.GroupedData(np.random.default_rng(0).normal(size=(80, 3)), y, np.repeat(["a", "b"], 40))
    null = measure("truncated-accuracy", nn.Linear(3, 2), data)["truncated_accuracy_null"]
    assert null.sel(group="a") == 0.75
    assert null.sel(group="b") == 0.7
    constant = nn.Linear(3, 2)
    nn.init.zeros_(constant.weight)
    found = measure("truncated-accuracy", constant, data)["truncated_accuracy"]
    assert (found <= null).all()


def test_components_of_the_training_data_may_be_given(data):
    turned = principal_components(data.x[:, ::-1])
    mine = TruncatedAccuracy((1,), principal_components(data.x))
    assert measure(mine, reader(1), data)["truncated_accuracy"].equals(
        measure(TruncatedAccuracy((1,)), reader(1), data)["truncated_accuracy"]
    )
    assert not measure(TruncatedAccuracy((2,), turned), reader(1), data)["truncated_accuracy"].equals(
        measure(TruncatedAccuracy((2,)), reader(1), data)["truncated_accuracy"]
    )


def test_any_network_of_numbers(network):
    model, shape = network
    rng = np.random.default_rng(0)
    images = tm.GroupedData(rng.normal(size=(80, *shape)), np.arange(80) % 4, ["a"] * 80)
    found = measure(TruncatedAccuracy((0, 8)), model, images)["truncated_accuracy"]
    assert found.shape == (2, 1)
    assert np.isfinite(found).all()
    assert found.sel(kept=0).item() == 0.25  # one answer for all


def test_what_it_cannot_read_is_refused(data):
    tokens = tm.GroupedData(np.zeros((40, 3), dtype=np.int64), [0, 1] * 20, ["a"] * 40)
    with pytest.raises(ValueError, match="Found integer inputs"):
        measure("truncated-accuracy", transformer(3, vocabulary=2, outputs=2), tokens)
    with pytest.raises(ValueError, match="A regression makes no decisions"):
        measure("truncated-accuracy", nn.Linear(4, 1), tm.GroupedData(data.x, data.x[:, 0], data.codes))
    with pytest.raises(ValueError, match="Inputs should vary"):
        measure("truncated-accuracy", nn.Linear(2, 2), tm.GroupedData(np.ones((40, 2)), [0, 1] * 20, ["a"] * 40))
    with pytest.raises(ValueError, match="should fit the held-out points, with 4 numbers"):
        measure(TruncatedAccuracy((1,), principal_components(data.x[:, :3])), nn.Linear(4, 2), data)
    with pytest.raises(ValueError, match=r"`kept` should be whole numbers from 0, ascending. Found kept = \(0.5,\)"):
        TruncatedAccuracy((0.5,))
    with pytest.raises(ValueError, match="`kept` should be whole numbers from 0, ascending"):
        TruncatedAccuracy((4, 2))
