"""The picture of double descent: both lines of every group, and what it cannot draw."""

import numpy as np
import pytest

from tiltmeter import Fixed, Flow, predict, teacher_mixture, theory

PROBLEM = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
TIMES = np.geomspace(0.1, 300.0, 30)


def test_every_group_has_two_lines():
    few = predict(PROBLEM, Flow(1.0), TIMES, ("loss",), data=Fixed(("samples", np.geomspace(0.4, 4.0, 7))))
    chart = theory.plot.double_descent(few, title="Sizes").to_dict()
    data = next(iter(chart["datasets"].values()))
    assert {(row["group"], row["when"]) for row in data} == {
        (group, when) for group in "+-" for when in ("at the last time", "at its best time")
    }
    end = {row["x"]: row["y"] for row in data if row["group"] == "-" and row["when"] == "at the last time"}
    best = {row["x"]: row["y"] for row in data if row["group"] == "-" and row["when"] == "at its best time"}
    assert all(best[x] <= end[x] for x in end)
    assert max(end.values()) > 2.0 * max(best.values())
    encoding = chart["layer"][0]["encoding"]
    assert encoding["x"]["scale"]["type"] == encoding["y"]["scale"]["type"] == "log"


def test_what_it_cannot_draw():
    one = predict(PROBLEM, Flow(1.0), TIMES, ("loss",), data=Fixed(2.0))
    with pytest.raises(ValueError, match=r"over exactly one grid dimension. Found none"):
        theory.plot.double_descent(one)
    with pytest.raises(TypeError, match=r"draws a trajectory of `predict`. Found int"):
        theory.plot.double_descent(1)
