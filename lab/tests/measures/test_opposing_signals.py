"""Outliers with one strong feature and opposite labels carry the changes of the loss, and undo one another's."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.opposing_signals import OpposingSignals


def with_outliers(points=400, outliers=20):
    """Every point has a small feature that tells its label; a few share a large one and have either label."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], points)
    x = 0.3 * rng.normal(size=(points, 10))
    x[:, 0] += 0.5 * y
    x[:outliers, 1] += 6.0
    y[:outliers] = np.where(np.arange(outliers) % 2 == 0, 1.0, -1.0)
    group = np.where(np.arange(points) < outliers, "outlier", "usual")
    with pytest.warns(UserWarning, match="fewer than 30"):
        return tm.GroupedData(x, y, group)


def watched(edge, steps=16):
    """Full-batch descent of a linear student, at this part of the largest stable learning rate."""
    data = with_outliers()
    model = nn.Linear(10, 1, bias=False)
    nn.init.zeros_(model.weight)
    model.weight.data[0, 1] = 0.1  # the shared feature counts a little at first, so that there is something to swing
    sharpness = np.linalg.eigvalsh(data.x.T @ data.x / len(data))[-1]
    sgd = partial(torch.optim.SGD, lr=2.0 * edge / sharpness)
    measures = [OpposingSignals(points=20)]
    return tm.train(
        model,
        data,
        data,
        tm.Recipe(sgd, steps=steps, batch=len(data), loss=tm.Square()),
        watch=tm.Watch(when=tm.record.every(1), measures=measures),
    )


def test_near_the_edge_of_stability_the_outliers_carry_the_changes_and_cancel():
    run = watched(edge=0.98).to_dataset("opposing_share", "opposing_concentration", "opposing_balance", "loss")
    late = run.sel(time=slice(6, None))
    assert float(late["opposing_share"].sel(group="outlier").min()) > 0.8  # of all points they are 0.05
    assert float(late["opposing_concentration"].min()) > 5 * 20 / 400  # the null is the share of points chosen
    assert float(late["opposing_balance"].min()) > 0.9
    assert np.isnan(run["opposing_balance"][0])  # nothing to compare with yet
    usual = late["loss"].sel(group="usual").values
    assert usual[-1] < usual[0]  # while they swing, the others learn


def test_far_from_the_edge_the_outliers_calm_down():
    run = watched(edge=0.5)
    assert float(run["opposing_share"].sel(group="outlier", time=slice(8, None)).max()) < 0.5


def test_without_outliers_everybody_falls_together():
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 400)
    x = np.c_[y + 0.1 * rng.normal(size=400), 0.1 * rng.normal(size=(400, 9))]
    data = tm.GroupedData(x, y, np.arange(400) % 2)
    torch.manual_seed(0)
    model = nn.Linear(10, 1)
    sgd = partial(torch.optim.SGD, lr=0.1)
    run = tm.train(
        model,
        data,
        data,
        tm.Recipe(sgd, steps=6, batch=400, loss=tm.Square()),
        watch=tm.Watch(when=tm.record.every(1), measures=(OpposingSignals(),)),
    )
    assert float(run["opposing_balance"].sel(time=slice(1, None)).max()) < 0.3


def test_by_hand():
    measure = OpposingSignals(points=2)
    data = tm.GroupedData(np.eye(4)[[0, 1, 2, 3] * 20], np.tile([1.0, 1.0, -1.0, 0.0], 20), ["a", "a", "b", "b"] * 20)
    model = nn.Linear(4, 1, bias=False)
    with torch.no_grad():
        model.weight.zero_()
    lab.measure(measure, model, data, tm.Square())
    with torch.no_grad():
        model.weight[0, :] = torch.tensor([1.0, 0.0, 0.2, 0.0])
    readings = lab.measure(measure, model, data, tm.Square())
    # Losses: 1/2 -> 0 for the first twenty, 1/2 -> 0.72 for twenty others.
    assert float(readings["opposing_change"].sel(side="falling")) == pytest.approx(-0.5)
    assert np.isnan(readings["opposing_change"].sel(side="rising"))
    assert float(readings["opposing_concentration"]) == pytest.approx(2 * 0.5 / (20 * 0.5 + 20 * 0.22))
    assert float(readings["opposing_balance_null"]) == pytest.approx(1 - 0.28 / 0.72, rel=1e-5)


def test_bad_choices_are_refused():
    with pytest.raises(ValueError, match="`points` should be at least 1"):
        OpposingSignals(points=0)


def test_the_chosen_points_always_take_more_than_their_share():
    """So the null is a floor, not what chance gives: changes that are pure noise exceed it several times."""
    rng = np.random.default_rng(0)
    measure = OpposingSignals(points=40)
    data = tm.GroupedData(rng.normal(size=(400, 3)), rng.normal(size=400), np.arange(400) % 2)
    model = nn.Linear(3, 1)
    for _ in range(2):
        nn.init.normal_(model.weight)
        readings = lab.measure(measure, model, data, tm.Square())
    assert float(readings["opposing_concentration"]) > 2 * float(readings["opposing_concentration_null"])
