import numpy as np
import pytest

import tiltmeter as tm


@pytest.fixture(scope="package")
def pinned():
    """Three classes in two shifted groups, with overlaps that the pinned numbers belong to."""
    within = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]])
    along = np.array([0.3, -0.2, 0.1, 0.1, 0.2, -0.3])
    gram = np.zeros((8, 8))
    gram[:2, :2] = [[1.0, -1.0], [-1.0, 1.0]]
    gram[2:, 2:] = np.block([[within, 0.5 * within], [0.5 * within, within]]) + np.outer(along, along)
    gram[0, 2:] = gram[2:, 0] = along
    gram[1, 2:] = gram[2:, 1] = -along
    bias = {"+": dict(enumerate((0.2, -0.1, 0.0))), "-": dict(enumerate((-0.3, 0.1, 0.2)))}
    return tm.theory.ClassMixture.from_gram({"+": 0.7, "-": 0.3}, {"+": 0.6, "-": 1.4}, (0, 1, 2), gram, bias)
