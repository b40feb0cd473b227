"""Data that the tests of recipes share."""

import numpy as np
import pytest

from tiltmeter import GroupedData


@pytest.fixture
def data():
    """Points of two labels in two groups: to train on, and to look at."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 6)).astype(np.float32)
    return GroupedData(x, np.where(x[:, 0] > 0, 1, 0), np.where(np.arange(200) % 5 == 0, "b", "a")).split(0.5)
