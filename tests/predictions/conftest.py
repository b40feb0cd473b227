"""Tables of predictions that the tests share."""

import numpy as np
import pandas as pd
import pytest


def made_table(points=1200, steps=(0, 10, 40, 160), seed=0, classes=2):
    """A long table: predictions that become better with the steps, for one group sooner than for the other."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, points)
    sex = np.where(rng.random(points) < 0.35, "F", "M")
    race = rng.choice(["x", "y"], points)
    parts = []
    for step in steps:
        skill = np.where(sex == "M", 1.0, 0.4) * np.log1p(step) / 3
        scores = rng.normal(size=(points, classes)) * 0.7
        scores[np.arange(points), label] += skill
        chance = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        part = pd.DataFrame({"approved": label, "sex": sex, "race": race, "step": step, "id": np.arange(points)})
        if classes == 2:
            part["score"] = chance[:, 1].astype(np.float32)
        for place in range(classes if classes > 2 else 0):
            part[f"p{place}"] = chance[:, place].astype(np.float32)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="session")
def table():
    return made_table()


@pytest.fixture(scope="session")
def many_classes():
    return made_table(classes=3)
