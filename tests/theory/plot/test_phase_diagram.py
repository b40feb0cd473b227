"""plot.phase_diagram: a grid as a map."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tiltmeter as tm
from tiltmeter.plot.theme import SHADES
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.plot.phase_diagram import GridAxis, rectangles

RHO, OVERLAP = np.linspace(0.1, 0.9, 9), np.linspace(-1.0, 1.0, 11)
PROBLEM = tm.teacher_mixture(rho=("rho", RHO), variance=(0.5, 1.5), overlap=("overlap", OVERLAP))
GRID = tm.predict(PROBLEM, tm.SGD(lr=0.1), np.geomspace(0.01, 300.0, 120), curves=("loss", "risk"))


def by_hand(**coords: Any) -> Trajectory:
    """Losses of + and - at two times over a 2 x 2 grid: no crossing, crossing, tie, no value."""
    plus = [[[1.0, 3.0], [1.0, np.nan]], [[1.0, 1.0], [2.0, np.nan]]]
    minus = [[[2.0, 2.0], [2.0, np.nan]], [[2.0, 2.0], [2.0, np.nan]]]
    labels = {"time": [1.0, 2.0], "lr": [0.1, 0.2], "rho": [0.3, 0.4], **coords}
    values = xr.DataArray(np.stack([plus, minus], 1), dims=("time", "group", "lr", "rho"), coords=labels)
    return Trajectory({"loss": values.assign_coords(group=["+", "-"])}, "t", Origin("theory"))


def drawn(trajectory: Trajectory, **options: Any) -> dict[str, Any]:
    return tm.theory.plot.phase_diagram(trajectory, **options).to_dict()


def rows(chart: dict[str, Any], place: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = chart["datasets"][chart["layer"][place]["data"]["name"]]
    return found


def kind_at(chart: dict[str, Any], x: float, y: float) -> list[str]:
    return [row["kind"] for row in rows(chart, 0) if row["x"] < x < row["x2"] and row["y"] < y < row["y2"]]


def domain(chart: dict[str, Any]) -> list[str]:
    found: list[str] = chart["layer"][0]["encoding"]["fill"]["scale"]["domain"]
    return found


def test_every_point_says_what_the_analysis_says() -> None:
    chart = drawn(GRID)
    leads, count = tm.theory.leader_on_grid(GRID).isel(time=-1), tm.theory.crossing_count(GRID)
    for rho in RHO:
        for overlap in OVERLAP:
            here = {"rho": rho, "overlap": overlap}
            how = "after a crossing" if count.sel(here) > 0 else "no crossing"
            joint = " leads " if how.startswith("after") else " leads, "
            assert kind_at(chart, rho, overlap) == [f"{leads.sel(here).item()}{joint}{how}"]


def test_the_four_kinds_by_hand() -> None:
    chart = drawn(by_hand())
    assert domain(chart) == ["+ leads, no crossing", "+ leads after a crossing", "tie", "diverged"]
    assert kind_at(chart, 0.1, 0.3) == ["+ leads, no crossing"]
    assert kind_at(chart, 0.1, 0.4) == ["+ leads after a crossing"]
    assert kind_at(chart, 0.2, 0.3) == []
    assert kind_at(chart, 0.2, 0.4) == []
    strokes = rows(chart, 1)
    assert strokes
    assert all(0.1499 < row["x"] <= 0.2501 and 0.3499 < row["y"] <= 0.4501 for row in strokes)


def test_dark_and_light_of_the_leaders_colour() -> None:
    chart = drawn(by_hand())
    colours = chart["layer"][0]["encoding"]["fill"]["scale"]["range"]
    assert colours[:2] == list(SHADES[0])


def test_four_kinds_are_four_greys() -> None:
    def grey(colour: str) -> float:
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255

    levels = sorted(grey(colour) for pair in SHADES[:2] for colour in pair)
    assert min(np.diff(levels)) > 0.12


def test_a_value_may_be_missing_without_divergence() -> None:
    values = by_hand()["loss"]
    nowhere = xr.full_like(values.isel(time=0, group=0, drop=True), np.nan)
    chart = drawn(Trajectory({"loss": values}, "t", Origin("theory"), diverged=nowhere))
    assert domain(chart)[-1] == "no value"


@pytest.mark.filterwarnings("ignore:.*stability limit")
def test_divergence_is_hatched_above_the_stability_limit() -> None:
    sgd = tm.SGD(lr=("lr", np.geomspace(0.1, 10.0, 9)))
    problem = tm.teacher_mixture(rho=("rho", RHO), overlap=0.5)
    grid = tm.predict(problem, sgd, np.geomspace(0.1, 10.0, 5), curves=("loss",))
    chart = drawn(grid, x="rho")
    assert "diverged" in domain(chart)
    limit = tm.theory.stability_limit(tm.teacher_mixture(), tm.SGD(lr=0.1)).item()
    assert min(row["y"] for row in rows(chart, 1)) == pytest.approx(limit, rel=0.4)
    assert max(row["y2"] for row in rows(chart, 0)) <= limit * 1.4


def test_axes_follow_names_order_and_spacing() -> None:
    encoding = drawn(GRID)["layer"][0]["encoding"]
    assert encoding["x"]["axis"]["title"] == "rho"
    assert encoding["x"]["scale"]["domain"] == pytest.approx([0.05, 0.95])
    turned = drawn(GRID, y="rho")["layer"][0]["encoding"]
    assert (turned["x"]["axis"]["title"], turned["y"]["axis"]["title"]) == ("overlap", "rho")
    assert drawn(GRID, x="overlap")["layer"][0]["encoding"] == turned


def test_geometric_grids_get_a_log_axis() -> None:
    axis = GridAxis.of(xr.DataArray(np.geomspace(0.01, 1.0, 5), dims="lr", name="lr"))
    channel = axis.channel()
    assert channel["scale"].to_dict()["type"] == "log"
    assert channel["axis"].to_dict()["values"] == [0.01, 0.03, 0.1, 0.3, 1.0]
    np.testing.assert_allclose(axis.at(np.array([0.0, 0.5, 1.0])), [axis.edges[0], 0.1, axis.edges[-1]])
    assert not GridAxis.of(xr.DataArray([0.0, 0.5, 1.0], dims="rho", name="rho")).log


def test_descending_grids_are_sorted() -> None:
    turned = by_hand(rho=[0.4, 0.3])
    assert kind_at(drawn(turned), 0.1, 0.4) == ["+ leads, no crossing"]


def test_three_groups_count_the_crossings_of_the_final_leader() -> None:
    plus_minus = by_hand()["loss"]
    third = plus_minus.isel(group=[0]).assign_coords(group=["c"]) * 0.0 + 9.0
    both = xr.concat([plus_minus, third], "group").transpose("time", "group", "lr", "rho")
    chart = drawn(Trajectory({"loss": both}, "t", Origin("theory")))
    assert kind_at(chart, 0.1, 0.3) == ["+ leads, no crossing"]
    assert kind_at(chart, 0.1, 0.4) == ["+ leads after a crossing"]


def test_a_large_grid_stays_small_and_fast() -> None:
    rho = xr.DataArray(np.linspace(0, 1, 200), dims="rho", coords={"rho": np.linspace(0, 1, 200)})
    lr = xr.DataArray(np.linspace(0, 1, 200), dims="lr", coords={"lr": np.linspace(0, 1, 200)})
    gap = (rho**2 + lr**2 - 0.5) * xr.DataArray([-1.0, 1.0], dims="time", coords={"time": [1.0, 2.0]})
    loss = xr.concat([gap, -gap], xr.DataArray(["+", "-"], dims="group", name="group"))
    grid = Trajectory({"loss": loss.transpose("time", "group", "lr", "rho")}, "t", Origin("theory"))
    begin = time.perf_counter()
    size = len(tm.theory.plot.phase_diagram(grid).to_json())
    assert time.perf_counter() - begin < 10
    assert size < 100_000


@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.integers(0, 2)))
def test_rectangles_cover_every_cell_once(kinds: np.ndarray) -> None:
    covered = np.zeros(kinds.shape, dtype=int)
    for kind, low, high, left, right in rectangles(kinds):
        assert (kinds[low:high, left:right] == kind).all()
        covered[low:high, left:right] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"x": "lr"}, KeyError, "No grid dimension 'lr'. There are: rho, overlap."),
        ({"x": "rho", "y": "rho"}, ValueError, "`x` and `y` should name different dimensions. Found 'rho' twice."),
        ({"curve": "error"}, KeyError, "No curve 'error'"),
        ({"curve": "risk"}, ValueError, "Curve 'risk' has no groups to compare."),
    ],
)
def test_refused_options(options: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as raised:
        tm.theory.plot.phase_diagram(GRID, **options)
    assert sentence in str(raised.value)


def test_refused_trajectories() -> None:
    with pytest.raises(TypeError, match=r"`phase_diagram` draws a trajectory\. Found int\."):
        tm.theory.plot.phase_diagram(3)  # type: ignore[arg-type]
    one = GRID.replace({"loss": GRID["loss"].sel(rho=RHO[0])})
    with pytest.raises(ValueError, match=r"a grid over exactly two dimensions\. Found 1: overlap\."):
        tm.theory.plot.phase_diagram(one)
    with pytest.raises(ValueError, match=r"exactly two dimensions\. Found none\."):
        tm.theory.plot.phase_diagram(tm.predict(*tm.theory.cases.no_bias(), curves=("loss",)))
    with pytest.raises(ValueError, match="average over `seed` first"):
        tm.theory.plot.phase_diagram(GRID.replace({"loss": one["loss"].expand_dims("seed", -1)}))
    with pytest.raises(TypeError, match=r"axes of a phase diagram are numbers\. Found <U1 in 'rho'"):
        tm.theory.plot.phase_diagram(by_hand(rho=["a", "b"]))
