"""plot.drivers: one panel per order parameter on one time axis."""

from __future__ import annotations

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter import plot

PROBLEM, SGD, _ = tm.theory.cases.three_phases()
TIMES = np.geomspace(0.01, 200.0, 40)
THEORY = tm.predict(PROBLEM, SGD, TIMES, curves=("loss", "M", "R", "Q"))


def test_three_panels_share_the_axis_and_only_the_last_is_labelled() -> None:
    panels = plot.order_parameters(THEORY).to_dict()["vconcat"]
    axes = [panel["layer"][0]["encoding"]["x"] for panel in panels]
    assert [axis["axis"]["labels"] for axis in axes] == [False, False, True]
    assert len({str(axis["scale"]) for axis in axes}) == 1
    titles = [panel["layer"][0]["encoding"]["y"]["axis"]["title"][0] for panel in panels]
    assert titles == ["M", "R", "Q"]


def test_groups_in_m_and_r_but_not_in_q() -> None:
    m, r, q = plot.order_parameters(THEORY).to_dict()["vconcat"]
    for panel in (m, r):
        assert panel["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["+", "-"]
    assert "color" not in q["layer"][0]["encoding"]


def test_timescales_are_ruled_everywhere_and_labelled_on_top() -> None:
    panels = plot.order_parameters(THEORY, tm.timescales(PROBLEM, SGD), title="Overlaps").to_dict()["vconcat"]
    marks = [[layer["mark"]["type"] for layer in panel["layer"]] for panel in panels]
    assert [found.count("rule") for found in marks] == [1, 1, 1]
    assert [found.count("text") for found in marks] == [3, 1, 0]  # the names at the ends of lines are one each


def test_what_is_recorded_is_drawn() -> None:
    only = THEORY.replace({"Q": THEORY["Q"]})
    assert len(plot.order_parameters(only).to_dict()["vconcat"]) == 1


def test_a_flat_curve_gets_an_axis() -> None:
    flat = tm.predict(*tm.theory.cases.centred_crossing(), curves=("M",))
    (panel,) = plot.order_parameters(flat).to_dict()["vconcat"]
    low, high = panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert high - low == pytest.approx(1.0)


def test_refusals() -> None:
    with pytest.raises(KeyError, match=r"draws M, R and Q\. This trajectory has: loss\."):
        plot.order_parameters(THEORY.replace({"loss": THEORY["loss"]}))
    with pytest.raises(TypeError, match=r"`order_parameters` draws a trajectory\. Found int\."):
        plot.order_parameters(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`timescales` counts time in \"t\", the trajectory in \"step\""):
        plot.order_parameters(THEORY.on_clock("step", d=100), tm.timescales(PROBLEM, SGD))
