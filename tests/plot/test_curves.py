"""plot.curves: what is on the chart, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter import plot
from tiltmeter.leaders.phases import Phase
from tiltmeter.plot.theme import DASHES, PALETTE, SHAPES
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory

PROBLEM, SGD, _ = tm.theory.cases.three_phases()
TIMES = np.geomspace(0.01, 200.0, 40)
THEORY = tm.predict(PROBLEM, SGD, np.concatenate([[0.0], TIMES]), curves=("loss", "loss_gap", "risk"))


def measured(
    times: Any, seeds: int = 0, source: str = "simulation", groups: tuple[Any, ...] = ("+", "-")
) -> Trajectory:
    times = np.asarray(times, dtype=float)
    rng = np.random.default_rng(1)
    shape = (times.size, len(groups), *([seeds] if seeds else []))
    values = 0.4 + 0.1 * np.arange(len(groups)).reshape(1, -1, *([1] if seeds else [])) + 0.01 * rng.normal(size=shape)
    dims = ("time", "group", *(["seed"] if seeds else []))
    labels = np.empty(len(groups), dtype=object)
    labels[:] = groups
    curve = xr.DataArray(values, dims=dims, coords={"time": times, "group": ("group", labels)})
    return Trajectory({"loss": curve}, "t", Origin(source))


def drawn(*trajectories: Trajectory, **options: Any) -> dict[str, Any]:
    chart = plot.curves(*trajectories, **options)
    assert isinstance(chart, alt.LayerChart)
    return chart.to_dict()


def led(phases: list[Phase], curve: str = "loss") -> Any:
    """The leaders of the theory, with these phases in place of its own."""
    judged = tm.leaders(tm.predict(PROBLEM, SGD, THEORY["loss"].time.values), curve)
    judged._courses[curve] = replace(judged.course(curve), find_phases=lambda: tuple(phases))
    return judged


def layers(chart: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    return [layer for layer in chart["layer"] if layer["mark"]["type"] == mark]


def data(chart: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = chart["datasets"][layer["data"]["name"]]
    return found


def texts(chart: dict[str, Any]) -> list[str]:
    return [row["text"] for layer in layers(chart, "text") for row in data(chart, layer) if "text" in row]


def test_theory_is_lines_on_a_log_axis_without_time_zero() -> None:
    chart = drawn(THEORY)
    (line,) = layers(chart, "line")
    x = line["encoding"]["x"]
    assert x["scale"]["type"] == "log"
    assert x["axis"]["title"] == "t = steps/d"
    assert x["axis"]["values"] == [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 200.0]
    assert line["encoding"]["y"]["axis"]["title"] == ["loss (half squared error)"]
    rows = data(chart, line)
    assert len(rows) == 2 * TIMES.size
    assert min(row["time"] for row in rows) == 0.01
    assert not layers(chart, "area")


def test_values_on_the_chart_are_those_of_the_trajectory() -> None:
    chart = drawn(THEORY)
    values = [row["value"] for row in data(chart, layers(chart, "line")[0]) if row["series"] == "-"]
    np.testing.assert_allclose(values, THEORY["loss"].sel(group="-").values[1:], rtol=1e-6)


def test_groups_differ_without_colour() -> None:
    line = layers(drawn(THEORY), "line")[0]["encoding"]
    dashes = line["strokeDash"]["scale"]["range"]
    assert len({tuple(dash) for dash in dashes}) == 2
    assert len(set(line["color"]["scale"]["range"])) == 2
    chart = drawn(THEORY, measured(TIMES, seeds=4))
    symbols = [s for s in layers(chart, "point")[0]["encoding"]["shape"]["scale"]["range"] if s in SHAPES]
    assert len(set(symbols)) == 2


def test_two_groups_are_two_greys() -> None:
    def grey(colour: str) -> float:
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255

    assert abs(grey(PALETTE[0]) - grey(PALETTE[1])) > 0.2
    assert len({tuple(dash) for dash in DASHES}) == len(DASHES)


def test_measurement_beside_theory_is_marks_with_a_band() -> None:
    simulation = measured(TIMES, seeds=16)
    chart = drawn(THEORY, simulation)
    dots = layers(chart, "point")[0]
    marks = data(chart, dots)
    assert {row["series"] for row in marks} == {"+, simulation", "-, simulation"}
    assert len(marks) <= 2 * 32
    assert {row["series"] for row in data(chart, layers(chart, "line")[0])} == {"+, theory", "-, theory"}
    bands = layers(chart, "area")
    assert len(bands) == 2
    row = data(chart, bands[0])[0]
    values = simulation["loss"].sel(group="+").isel(time=0)
    error = float(values.std("seed", ddof=1)) / 4.0
    assert row["value"] == pytest.approx(float(values.mean()), rel=1e-6)
    assert row["high"] - row["low"] == pytest.approx(4.0 * error, rel=1e-4)


def test_measurement_alone_is_a_line_with_a_band() -> None:
    chart = drawn(measured(TIMES, seeds=4))
    assert len(layers(chart, "line")) == 1
    assert len(layers(chart, "area")) == 2
    assert {row["series"] for row in data(chart, layers(chart, "line")[0])} == {"+", "-"}


def test_one_seed_has_no_band() -> None:
    assert not layers(drawn(measured(TIMES, seeds=1)), "area")


def test_recorded_standard_errors_give_the_band() -> None:
    run = measured([1.0, 2.0, 3.0], source="training")
    error = xr.full_like(run["loss"], 0.05).isel(time=[0, 2])
    run = Trajectory({"loss": run["loss"], "loss_se": error}, "t", Origin("training"))
    chart = drawn(run)
    first, between, _ = data(chart, layers(chart, "area")[0])
    assert first["high"] - first["low"] == pytest.approx(0.2, rel=1e-5)
    assert between["high"] is None


def test_one_legend_names_bands_and_lines_are_strokes_in_it() -> None:
    chart = drawn(THEORY, measured(TIMES, seeds=4))
    legends = [
        channel["legend"]
        for layer in chart["layer"]
        for channel in layer["encoding"].values()
        if channel.get("legend") is not None
    ]
    assert all(legend == legends[0] for legend in legends)
    assert legends[0]["title"] == ["group", "bands: ± 2 standard errors of the mean over 4 seeds"]
    key = layers(chart, "point")[-1]
    assert data(chart, key) == []
    assert key["encoding"]["shape"]["scale"]["range"][0].startswith("M")


def test_two_theories_are_told_apart_by_dash_and_label() -> None:
    other = tm.predict(PROBLEM, tm.SGD(lr=0.1), TIMES, curves=("loss",))
    line = layers(drawn(THEORY, other, labels=("fast", "slow")), "line")[0]["encoding"]
    assert line["color"]["scale"]["domain"] == ["+, fast", "-, fast", "+, slow", "-, slow"]
    assert len({tuple(dash) for dash in line["strokeDash"]["scale"]["range"]}) == 4
    assert line["color"]["scale"]["range"][0] == line["color"]["scale"]["range"][2]
    unnamed = layers(drawn(THEORY, other), "line")[0]["encoding"]["color"]["scale"]["domain"]
    assert unnamed[0] == "+, theory 1"


def test_chosen_group_keeps_its_colour() -> None:
    line = layers(drawn(THEORY, groups=["-"]), "line")[0]["encoding"]
    assert line["color"]["scale"]["domain"] == ["-"]
    assert line["color"]["scale"]["range"] == [PALETTE[1]]


def test_long_trajectories_are_thinned_and_beyond_the_row_limit_still_drawn() -> None:
    groups = tuple(f"g{i}" for i in range(20))
    before = alt.data_transformers.active, dict(alt.data_transformers.options)
    chart = drawn(measured(np.arange(1, 50_001), groups=groups))
    rows = data(chart, layers(chart, "line")[0])
    assert 5_000 < len(rows) <= 20 * 500
    assert {row["time"] for row in rows} >= {1.0, 50_000.0}
    assert (alt.data_transformers.active, dict(alt.data_transformers.options)) == before


def test_missing_values_break_the_line_and_are_no_marks() -> None:
    run = measured([1.0, 2.0, 3.0])
    holed = Trajectory({"loss": run["loss"].where(run["loss"].time != 2.0)}, "t", run.origin)
    chart = drawn(holed)
    assert [row["value"] is None for row in data(chart, layers(chart, "line")[0])] == [False, True, False] * 2
    chart = drawn(THEORY, holed)
    assert len(data(chart, layers(chart, "point")[0])) == 4


def test_infinite_values_count_as_missing() -> None:
    run = measured([1.0, 2.0])
    chart = drawn(run.replace({"loss": run["loss"].where(run["loss"].time < 2.0, np.inf)}))
    assert data(chart, layers(chart, "line")[0])[1]["value"] is None


def test_a_single_look_is_a_mark() -> None:
    chart = drawn(measured([4.0]))
    assert not layers(chart, "line")
    assert len(data(chart, layers(chart, "point")[0])) == 2
    assert layers(chart, "point")[0]["encoding"]["x"]["scale"]["domain"] == [2.0, 8.0]


def test_curve_without_groups_needs_no_legend() -> None:
    chart = drawn(THEORY, curve="risk")
    (line,) = chart["layer"]
    assert "color" not in line["encoding"]


def test_pairs_are_series_too() -> None:
    line = layers(drawn(THEORY, curve="loss_gap"), "line")[0]["encoding"]
    assert line["color"]["scale"]["domain"] == ["+ vs -"]
    assert line["color"]["legend"]["title"] == ["pair"]


def test_intersections_of_groups_are_named() -> None:
    chart = drawn(measured([1.0, 2.0], groups=(("young", "rural"), ("old", "urban"))))
    assert layers(chart, "line")[0]["encoding"]["color"]["scale"]["domain"] == ["young & rural", "old & urban"]


def test_phases_are_shaded_with_leader_and_reason() -> None:
    chart = drawn(THEORY, leaders=tm.leaders(THEORY, "loss"))
    shades = data(chart, layers(chart, "rect")[0])
    assert [row["leader"] for row in shades] == ["+", "-", "+"]
    assert [row["colour"] for row in shades] == [PALETTE[0], PALETTE[1], PALETTE[0]]
    assert shades[0]["stop"] == shades[1]["time"] == pytest.approx(1.128, rel=1e-3)
    assert texts(chart) == [
        *("+ leads", "shift and label imbalance"),
        *("- leads", "larger variance"),
        *("+ leads", "more data"),
    ]
    assert all("color" not in layer["encoding"] for layer in layers(chart, "rect"))


def test_phases_without_reason_and_of_another_curve() -> None:
    assert texts(drawn(THEORY, leaders=led([Phase(0.01, 200.0, "-", 0.1)], "error"))) == ["- leads in error"]


def test_text_gives_way_in_narrow_phases() -> None:
    segments = [Phase(0.01, 1.0, "+", 0.1, reason="more data"), Phase(1.0, 1.02, "-", 0.1, reason="larger variance")]
    assert texts(drawn(THEORY, leaders=led(segments))) == ["+ leads", "more data"]


def test_no_phases_no_shades() -> None:
    chart = drawn(THEORY, leaders=led([]))
    assert not layers(chart, "rect")


def test_timescales_are_rules_with_labels() -> None:
    chart = drawn(THEORY, timescales=tm.timescales(PROBLEM, SGD))
    (rule,) = layers(chart, "rule")
    marked = {row["name"]: row["time"] for row in data(chart, rule)}
    assert marked == pytest.approx({"M": 0.4577, "Q": 3.410, "R": 5.405}, rel=1e-3)
    greek, name, ends = layers(chart, "text")
    assert [row["series"] for row in data(chart, ends)] == ["+", "-"]
    assert greek["encoding"]["text"]["value"] == "τ"
    assert name["encoding"]["text"]["field"] == "name"


def test_equal_timescales_share_a_rule_and_those_off_the_axis_are_left_out() -> None:
    scales = xr.Dataset({"M": ("mode", [0.5, 3.0]), "R": 3.0, "Q": 1e6})
    chart = drawn(THEORY, timescales=scales)
    assert [row["name"] for row in data(chart, layers(chart, "rule")[0])] == ["M1", "M2,R"]


def test_steps_and_epochs_are_named() -> None:
    axis = layers(drawn(THEORY.on_clock("step", d=1000)), "line")[0]["encoding"]["x"]["axis"]
    assert axis["title"] == "step"
    assert axis["values"] == [10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0, 200000.0]


def test_title() -> None:
    assert drawn(THEORY, title="Three phases")["title"]["text"] == "Three phases"


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((), ValueError, "`curves` needs at least one trajectory. Found none."),
        ((3,), TypeError, "`curves` draws trajectories. Found int."),
        ((THEORY, THEORY.on_clock("step", d=10)), ValueError, 'clocks "t" and "step" on one axis: convert one with'),
    ],
)
def test_refused_trajectories(arguments: tuple[Any, ...], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        plot.curves(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"curve": "hinge"}, KeyError, "No curve 'hinge'. There are: loss, loss_gap, risk."),
        ({"groups": ["x"]}, KeyError, "No group 'x'. There are: '+', '-'."),
        (
            {"labels": ["a", "b"]},
            ValueError,
            "`labels` should name every trajectory differently. Found ['a', 'b'] for 1.",
        ),
        ({"leaders": ["+"]}, TypeError, "`leaders` should be the result of `tm.leaders`. Found list."),
        ({"timescales": 3.0}, TypeError, "`timescales` should be the Dataset of `tm.timescales`. Found float."),
        (
            {
                "leaders": tm.leaders(THEORY, "loss").__class__(
                    (), ("loss",), ("+", "-"), 0.05, "run", "exact", 1, "step"
                )
            },
            ValueError,
            '`leaders` counts time in "step", the trajectory in "t": convert it with `on_clock`.',
        ),
        (
            {"timescales": xr.Dataset({"R": ("rho", [1.0, 2.0])})},
            ValueError,
            "`timescales` has a grid over rho: select one point with `.sel`.",
        ),
    ],
)
def test_refused_options(options: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        plot.curves(THEORY, **options)


def test_timescales_need_the_clock_t() -> None:
    with pytest.raises(ValueError, match=re.escape('`timescales` counts time in "t", the trajectory in "step"')):
        plot.curves(THEORY.on_clock("step", d=10), timescales=tm.timescales(PROBLEM, SGD))


def test_grids_are_refused_with_the_way_out() -> None:
    grid = tm.predict(tm.teacher_mixture(rho=("rho", [0.2, 0.8])), tm.SGD(lr=0.1), [1.0, 2.0], curves=("loss",))
    with pytest.raises(ValueError, match=re.escape("trajectory.replace({'loss': trajectory['loss'].sel(rho=...)})")):
        plot.curves(grid)
    plot.curves(grid.replace({"loss": grid["loss"].sel(rho=0.8)}))


def test_nothing_after_time_zero() -> None:
    with pytest.raises(ValueError, match=r"needs a time after 0\. Found none\."):
        plot.curves(measured([0.0]))
    empty = measured([1.0, 2.0])
    with pytest.raises(ValueError, match=r"There is nothing to draw: no value at any time after 0\."):
        plot.curves(empty.replace({"loss": empty["loss"] * np.nan}))
