"""plot.drivers: the parts pile up to the gap."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory.plot.drivers import stacked

PROBLEM, SGD, _ = tm.theory.cases.three_phases()
TIMES = np.geomspace(0.01, 200.0, 40)
SPLIT = tm.drivers(PROBLEM, SGD, np.concatenate([[0.0], TIMES]))


def rows(spec: dict[str, Any], place: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["datasets"][spec["layer"][place]["data"]["name"]]
    return found


def test_parts_add_up_to_the_line_at_every_time() -> None:
    chart = tm.theory.plot.drivers(SPLIT).to_dict()
    total: dict[float, float] = defaultdict(float)
    for row in rows(chart, 0):
        total[row["time"]] += row["high"] - row["low"]
    line = {row["time"]: row["value"] for row in rows(chart, 2)}
    assert min(line) > 0
    assert total.keys() == line.keys()
    np.testing.assert_allclose([total[time] for time in line], list(line.values()), atol=1e-7)


def test_positive_parts_lie_above_zero_and_negative_below() -> None:
    for row in rows(tm.theory.plot.drivers(SPLIT).to_dict(), 0):
        low, high = sorted((row["low"], row["high"]))
        assert low >= 0 if row["side"] == "above" else high <= 0


def test_a_part_that_changes_sign_does_not_cross_the_pile() -> None:
    times = np.array([1.0, 2.0])
    found = stacked(times, {"a": np.array([1.0, 1.0]), "b": np.array([0.5, -0.5])})
    above = [(row["low"], row["high"]) for row in found if row["part"] == "b" and row["side"] == "above"]
    below = [(row["low"], row["high"]) for row in found if row["part"] == "b" and row["side"] == "below"]
    assert above == [(1.0, 1.5), (1.0, 1.0)]
    assert below == [(0.0, 0.0), (0.0, -0.5)]


def test_rest_is_shown_only_where_there_is_some() -> None:
    def names(chart: Any) -> list[str]:
        found: list[str] = chart.to_dict()["layer"][0]["encoding"]["fill"]["scale"]["domain"]
        return found

    assert names(tm.theory.plot.drivers(SPLIT)) == ["shift", "variance", "representation", "loss gap"]
    weighted = tm.drivers(PROBLEM, tm.SGD(lr=0.1, weights={"+": 3.0, "-": 1.0}), TIMES)
    assert "rest" in names(tm.theory.plot.drivers(weighted))


def test_axes_and_title() -> None:
    chart = tm.theory.plot.drivers(SPLIT, title="Why").to_dict()
    assert chart["title"]["text"] == "Why"
    encoding = chart["layer"][0]["encoding"]
    assert encoding["x"]["scale"]["type"] == "log"
    assert encoding["y"]["axis"]["title"] == ["loss gap and its parts", "(+ minus -)"]


def test_without_bias_the_axis_does_not_show_rounding() -> None:
    problem, sgd, _ = tm.theory.cases.spurious_correlation()
    scale = tm.theory.plot.drivers(tm.drivers(problem, sgd, TIMES)).to_dict()["layer"][0]["encoding"]["y"]["scale"]
    assert scale["domain"] == pytest.approx([-0.5, 0.5])


def test_refusals() -> None:
    theory = tm.predict(PROBLEM, SGD, TIMES, curves=("loss", "loss_gap"))
    with pytest.raises(KeyError, match=r"no curve 'shift' here\. There are: loss, loss_gap\."):
        tm.theory.plot.drivers(theory)
    with pytest.raises(TypeError, match=r"draws the trajectory of `tm\.drivers`\. Found Mixture\."):
        tm.theory.plot.drivers(PROBLEM)  # type: ignore[arg-type]
    grid = tm.drivers(tm.teacher_mixture(rho=("rho", [0.3, 0.6])), tm.SGD(lr=0.1), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"draws one problem; this one has a grid over rho\."):
        tm.theory.plot.drivers(grid)
