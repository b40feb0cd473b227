"""Data that the tests of forecasts share."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from tiltmeter import GroupedData


def points(classes=2):
    """Two groups with different tasks, the second rare."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(320, 6))
    group = np.where(np.arange(320) % 4 == 0, "b", "a")
    score = x[:, 0] + 0.8 * (group == "b") * x[:, 1] + 0.3 * rng.normal(size=320)
    y = np.where(score > 0, 1, -1) if classes == 2 else np.digitize(score, np.linspace(-0.6, 0.6, classes - 1))
    return GroupedData(x, y, group).split(0.4)


@pytest.fixture
def two_labels():
    return points()


@pytest.fixture
def three_classes():
    return points(3)


def digits_with_a_patch(points=500, aligned=0.95):
    """Digits of at least 5 against the rest, and four more pixels that agree with the label in most training points."""
    from sklearn.datasets import load_digits

    raw, rng = load_digits(), np.random.default_rng(0)
    order = rng.permutation(len(raw.target))
    y = np.where(raw.target[order] >= 5, 1, -1)
    patch = np.where(rng.random(len(y)) < aligned, y, -y)
    patch[points:] = np.where(rng.random(len(y) - points) < 0.5, 1, -1)
    x = np.concatenate([raw.data[order] / 16, np.repeat(1.5 * patch[:, None], 4, 1)], axis=1).astype("float32")
    group = np.array(["-+"[int(a > 0)] + "-+"[int(b > 0)] for a, b in zip(y, patch, strict=True)])
    data = GroupedData(x, y, group)
    return data.take(np.arange(points)), data.take(np.arange(points, len(y)))


@pytest.fixture
def wide_digits():
    """Digits with a patch, a network of 1024 units whose first layer is trained, and the losses of aligned and of
    conflicting points, where label and patch agree or not."""
    train, held_out = digits_with_a_patch()

    def network():
        torch.manual_seed(0)
        made = nn.Sequential(nn.Linear(68, 1024), nn.ReLU(), nn.Linear(1024, 1))
        for parameter in made[2].parameters():
            parameter.requires_grad_(False)
        return made

    def by_agreement(loss):
        points = np.array([held_out.sizes[group] for group in held_out.groups])
        agree = np.array([group[0] == group[1] for group in held_out.groups])
        return np.stack([(loss.values * points)[:, one].sum(1) / points[one].sum() for one in (agree, ~agree)])

    return SimpleNamespace(train=train, held_out=held_out, network=network, by_agreement=by_agreement)
