"""Learning rates beyond which training diverges: said where it does, not said where it does not."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

by_kernel = partial(tm.forecast, method=tm.methods.Kernel(), progress=False)


@pytest.fixture(scope="module")
def points():
    """Independent Gaussian numbers of equal variance, where the limit is exact: 2 batch / (batch + d + 1)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 20))
    return tm.GroupedData(x, np.sign(x @ rng.normal(size=20)), np.arange(2000) % 2).split(0.1)


def grown(train, lr, batch, momentum):
    """How large the weights of a linear model become under real SGD."""
    rng = np.random.default_rng(1)
    w, speed = np.zeros(20), np.zeros(20)
    for _ in range(3000):
        some = rng.integers(0, len(train), batch)
        speed = momentum * speed + train.x[some].T @ (train.x[some] @ w - train.y[some]) / batch
        w = w - lr * speed
        if not np.abs(w).max() < 1e6:
            return np.inf
    return np.abs(w).max()


def said(points, lr, **settings):
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recipe = tm.Recipe(**{"lr": lr, "steps": 100, "batch": None, "loss": tm.Square(), **settings})
        ahead = by_kernel(nn.Linear(20, 1, bias=False), *points, recipe)
    return ahead.origin.settings["batch_limit"], [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("batch", "momentum"), [(1, 0.0), (8, 0.0), (8, 0.5)])
def test_the_noise_of_batches_diverges_where_it_is_said_to(points, batch, momentum):
    settings = {"batch": batch, "momentum": momentum}
    limit, texts = said(points, 0.001, **settings)
    assert not texts
    if not momentum:
        # The curvatures of 1800 points scatter by sqrt(20 / 1800) or so around 1.
        assert limit == pytest.approx(2 * batch / (batch + 21), rel=0.15)
    assert grown(points[0], 0.7 * limit, batch, momentum) < 10
    assert grown(points[0], 1.5 * limit, batch, momentum) == np.inf
    _, texts = said(points, 1.5 * limit, **settings)
    assert f"the stability limit of the linearised network in batches of {batch}" in texts[0]


def test_without_noise_there_is_no_such_limit(points):
    """All points at once, or no word of batches, or a loss whose slope is bounded."""
    for settings in ({"batch": 1800}, {}, {"batch": 1, "loss": tm.Logistic()}):
        limit, texts = said(points, 0.5, **settings)
        assert limit is None
        assert not any("stability" in text for text in texts)


def test_a_linear_model_that_diverges_learns_no_features(points):
    _, texts = said(points, 50.0)
    assert len(texts) == 1
    assert "the forecast diverges" in texts[0]
