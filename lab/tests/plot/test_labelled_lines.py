"""Lines per label of a dimension: averages, bands, nulls, another axis than time."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter_lab.plot.labelled_lines import labelled_lines


def curve(**sizes):
    rng = np.random.default_rng(0)
    coords = {"time": [0, 1, 10], "layer": ["a", "b"], "seed": [0, 1, 2], "depth": [1, 2, 4]}
    return xr.DataArray(
        rng.normal(size=tuple(sizes.values())), dims=tuple(sizes), coords={d: coords[d] for d in sizes}, name="rank"
    )


def rows(chart, mark):
    spec = chart.to_dict()
    sources = [layer["data"] for layer in spec["layer"] if layer["mark"]["type"] == mark]
    return [row for data in sources for row in (data["values"] if "values" in data else spec["datasets"][data["name"]])]


def test_seeds_are_averaged_with_a_band_and_time_zero_is_left_out():
    values = curve(time=3, layer=2, seed=3)
    chart = labelled_lines(values, "layer")
    drawn = {(row["series"], row["time"]): row for row in rows(chart, "line")}
    assert set(drawn) == {(label, t) for label in "ab" for t in (1.0, 10.0)}
    own = values.sel(layer="b", time=10)
    row = drawn[("b", 10.0)]
    assert row["value"] == pytest.approx(own.mean().item(), rel=1e-6)
    assert row["high"] - row["low"] == pytest.approx(4 * own.std(ddof=1).item() / np.sqrt(3), rel=1e-5)


def test_a_null_is_one_more_line_and_other_axes_are_named():
    chart = labelled_lines(curve(depth=3, layer=2), "layer", along="depth", null=0.5, y_title="rank")
    levels = [row["value"] for row in rows(chart, "line") if row["series"] == "null"]
    assert levels == [0.5, 0.5, 0.5]
    x = chart.to_dict()["layer"][0]["encoding"]["x"]
    assert x["axis"]["title"] == "depth"
    assert x["axis"]["values"] == [1, 2, 4]


def test_dimensions_that_cannot_be_drawn_are_named():
    with pytest.raises(ValueError, match=r"`curve` should have the dimensions 'time' and 'layer', and `seed` at most"):
        labelled_lines(curve(time=3, layer=2, depth=3), "layer")


def test_a_long_title_of_the_axis_is_broken_into_lines():
    words = "share decided right from the leading principal components alone, as a mean over all seeds"
    chart = labelled_lines(curve(time=3, layer=2), "layer", y_title=words)
    title = chart.to_dict()["layer"][0]["encoding"]["y"]["axis"]["title"]
    assert len(title) > 1
    assert " ".join(title) == words
