"""lab.plot.loss_slices: what is drawn, against a quadratic."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter_lab as lab
from tiltmeter import Trajectory
from tiltmeter.record import Origin

OFFSETS, TIMES = np.array([-0.2, 0.0, 0.2]), np.array([0, 10, 100, 1000, 5000])


def quadratic(**extra):
    """Loss 1/2 curvature (offset - place)^2, where the place moves with time and differs between groups."""
    place = np.log1p(TIMES)[:, None, None] * np.array([0.01, -0.02])[None, :, None]
    values = 0.5 * np.array([1.0, 3.0])[None, :, None] * (OFFSETS - place) ** 2
    coords = {"time": TIMES, "group": ["a", "b"], "offset": OFFSETS}
    curve = xr.DataArray(values, dims=("time", "group", "offset"), coords=coords)
    return Trajectory({"loss_slice": curve, **extra}, "step", Origin("test")), values


def drawn(chart):
    found, spec = [], chart.to_dict()
    for panel in spec["hconcat"]:
        data = panel["layer"][1]["data"]
        lines = data["values"] if "values" in data else spec["datasets"][data["name"]]
        found.append({name: [row["loss"] for row in lines if row["group"] == name] for name in ("a", "b")})
    return found


def test_every_panel_holds_the_quadratic_of_its_moment():
    run, values = quadratic()
    panels = drawn(lab.plot.loss_slices(run))
    assert len(panels) == 4
    for place, panel in zip([0, 1, 3, 4], panels, strict=True):
        np.testing.assert_allclose(panel["a"], values[place, 0], rtol=1e-6)
        np.testing.assert_allclose(panel["b"], values[place, 1], rtol=1e-6)


def test_times_choose_the_last_look_before_and_seeds_are_averaged():
    run, values = quadratic()
    two = xr.concat([run["loss_slice"], 3 * run["loss_slice"]], "seed").transpose("time", ...)
    both = Trajectory({"loss_slice": two}, "step", Origin("test"))
    chart = lab.plot.loss_slices(both, times=[150, 5000], title="Slices")
    assert [panel["title"]["text"] if isinstance(panel["title"], dict) else panel["title"]
            for panel in chart.to_dict()["hconcat"]] == ["step 100", "step 5000"]  # fmt: skip
    np.testing.assert_allclose(drawn(chart)[0]["a"], 2 * values[2, 0], rtol=1e-6)


def test_what_cannot_be_drawn_is_refused():
    run, _ = quadratic()
    with pytest.raises(ValueError, match=r"needs the curve `loss_slice`: record the measure `loss-slice`"):
        lab.plot.loss_slices(Trajectory({"loss": run["loss_slice"]}, "step", Origin("test")))
    with pytest.raises(ValueError, match=r"`times` should lie between 0 and 5000. Found 6000"):
        lab.plot.loss_slices(run, times=[6000])
    with pytest.raises(TypeError, match=r"draws a trajectory. Found int"):
        lab.plot.loss_slices(3)
    nothing = run.replace({"loss_slice": run["loss_slice"] * np.nan})
    with pytest.raises(ValueError, match=r"nothing to draw"):
        lab.plot.loss_slices(nothing)
