"""Data and settings that the tests of training share."""

import numpy as np
import pytest

from tiltmeter import GroupedData


@pytest.fixture
def images():
    """Small images of four classes in two groups."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 1, 8, 8)).astype(np.float32)
    y = rng.integers(0, 4, 160)
    x[np.arange(160), 0, y, y] += 3.0
    return GroupedData(x, y, np.where(np.arange(160) % 4 == 0, "b", "a"))


@pytest.fixture
def flat():
    """Points of two labels in two groups."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 6)).astype(np.float32)
    return GroupedData(x, np.where(x[:, 0] > 0, 1, 0), np.where(np.arange(200) % 5 == 0, "b", "a"))
