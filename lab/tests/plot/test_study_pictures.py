"""Pictures of studies: what is drawn."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter_lab as lab


def table(name="gap"):
    values = np.arange(3.0)[:, None, None] + 0.1 * np.random.default_rng(0).normal(size=(3, 2, 5))
    return xr.DataArray(values, dims=("width", "lr", "seed"), coords={"width": [1, 2, 3], "lr": [0.1, 0.2]}, name=name)


def drawn_rows(chart, key):
    """The rows of the data that have this key."""
    return next(values for values in chart.to_dict()["datasets"].values() if key in values[0])


def test_the_map_shows_every_share_with_its_interval():
    found = [lab.shares(table(name), draws=30, permutations=0) for name in ("gap", "loss")]
    squares = drawn_rows(lab.plot.variance_shares(found), "share")
    assert {(one["response"], one["part"]) for one in squares} >= {("gap", "width"), ("loss", "seed")}
    wide = next(one for one in squares if one["part"] == "width")
    assert wide["share"] == pytest.approx(found[0]["width"].share, rel=1e-6)
    assert wide["text"].endswith("%")
    with pytest.raises(ValueError, match="needs at least one result"):
        lab.plot.variance_shares([])


def test_cell_means_show_every_seed_and_leave_out_what_is_missing():
    values = table()
    values[0, 0] = np.nan
    picture = lab.plot.cell_means(values, x="width", colour="lr")
    assert sorted(map(len, picture.to_dict()["datasets"].values())) == [5, 25]
    means = drawn_rows(picture, "low")
    first = next(one for one in means if (one["x"], one["colour"]) == ("2", "0.1"))
    assert first["y"] == pytest.approx(values.sel(width=2, lr=0.1).mean().item(), rel=1e-6)
    assert first["low"] < first["y"] < first["high"]
    with pytest.raises(KeyError, match="needs two factors of the table: width, lr"):
        lab.plot.cell_means(values, x="width", colour="depth")
