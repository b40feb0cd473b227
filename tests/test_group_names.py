"""Groups of several attributes are written "women & x" everywhere, never as Python writes a tuple."""

import numpy as np
import pandas as pd
import pytest

import tiltmeter as tm


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["women", "men"], 1200), "race": rng.choice(["x", "y"], 1200)})
    people["label"] = rng.integers(0, 2, 1200)
    sure = np.where(people.sex == "women", 0.6, 0.9)
    parts = [
        people.assign(
            step=step,
            score=np.where(rng.random(1200) < sure - 0.1 / step, 0.1 + 0.8 * people.label, 0.9 - 0.8 * people.label),
        )
        for step in (1, 2, 3)
    ]
    return tm.predictions.run(pd.concat(parts), label="label", group=["sex", "race"])


SAID = {
    "leaders": lambda run: tm.leaders(run, groups=(("women", "x"), ("men", "y"))),
    "calibration": tm.fairness.calibration,
    "stopping": tm.fairness.stopping,
    "why": tm.fairness.why,
    "scorecard": lambda run: tm.scorecard({"plain": run, "again": run}),
}


@pytest.mark.parametrize("name", SAID)
def test_results(name, run):
    result = SAID[name](run)
    for text in (str(result), result._repr_html_().replace("&amp;", "&")):
        assert "women & " in text
        assert "('" not in text
        assert "(&#x27;" not in text


def test_data_and_warnings():
    group = [("women", "x")] * 50 + [("men", "y")] * 10
    data = tm.GroupedData(np.zeros((60, 1)), [0, 1] * 30, group)
    assert "women & x" in repr(data)
    assert "('" not in repr(data)
    with pytest.warns(UserWarning, match=r"unreliable results: men & y \(10\)") as said:
        data.warn_small()
    assert said[0].filename == __file__
