"""Data that the tests of forecasts share."""

import numpy as np
import pytest

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
