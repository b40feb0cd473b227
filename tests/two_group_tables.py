"""Small tables with known differences between two groups."""

import numpy as np

import tiltmeter as tm


def table(count=4000, seed=0, shift=0.0, rate=0.0, share=0.4, columns=4, question=None):
    """Two groups; `shift` moves the first column of the second, `rate` its threshold (so its base rate)."""
    rng = np.random.default_rng(seed)
    second = rng.random(count) < share
    x = rng.normal(size=(count, columns)) + shift * np.outer(second, [1.0, *[0.0] * (columns - 1)])
    chance = 1.0 / (1.0 + np.exp(-(2.0 * x[:, 0] + x[:, 1] + rate * second)))
    y = (rng.random(count) < chance).astype(int)
    return tm.GroupedData(x, y, np.where(second, "b", "a"), question=question)


def parts(**given):
    return table(**given).split(0.4, seed=1)
