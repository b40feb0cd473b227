"""NetCDF, Zarr and model cards: read back with the programs they are for."""

import json

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.cli import main
from tiltmeter.record.labelled import labels_array

GROUPS = ("a", ("woman", "old"))


@pytest.fixture
def run():
    coords = {"time": [0, 5, 20], "group": labels_array(GROUPS)}
    loss = xr.DataArray([[1.0, 2.0], [0.5, np.nan], [0.2, 0.9]], dims=("time", "group"), coords=coords)
    loss.attrs = {"better": "lower", "definition": "logistic loss"}
    return tm.Trajectory(
        {"loss": loss, "loss_se": 0 * loss + 0.01, "norm": loss.mean("group").isel(time=[0, 2])},
        "step",
        tm.record.Origin("test", settings={"lr": 0.1}),
    )


def assert_same(tree, run):
    assert tree.attrs["clock"] == "step"
    assert json.loads(tree.attrs["origin"])["settings"] == {"lr": 0.1}
    assert set(tree.children) == set(run)
    for name, curve in run.items():
        read = tree[name].to_dataset()[name]
        np.testing.assert_array_equal(read.values, curve.values)
        np.testing.assert_array_equal(read.coords["time"].values, curve.coords["time"].values)
        assert read.attrs == curve.attrs
    assert tree["loss"].coords["group"].values.tolist() == ["a", "woman & old"]


def test_netcdf(run, tmp_path):
    pytest.importorskip("h5py", reason="h5netcdf and h5py are not installed")
    path = tm.export.write(run, tmp_path / "run.nc")
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        assert_same(tree, run)


def test_zarr(run, tmp_path):
    pytest.importorskip("zarr", reason="zarr is not installed")
    path = tm.export.write(run, tmp_path / "run.zarr")
    with xr.open_datatree(path, engine="zarr") as tree:
        assert_same(tree, run)
    with pytest.raises(FileExistsError, match="never overwritten"):
        tm.export.write(run, path)


def test_a_section_is_added_once_and_replaced(run, tmp_path):
    card = tmp_path / "README.md"
    card.write_text(
        "---\nlicense: mit\n---\n# My model\n\nText.\n\n## Bias during training\n\nold\n\n## Use\n\nMore.\n"
    )
    text = tm.results.to_model_card(run, card)
    once = card.read_text()
    assert once.startswith("---\nlicense: mit\n---\n# My model\n\nText.\n\n## Bias during training\n")
    assert "\nold\n" not in once
    assert once.rstrip().endswith("## Use\n\nMore.")
    assert text in once
    tm.results.to_model_card(run, card)
    assert card.read_text() == once
    fresh = tmp_path / "CARD.md"
    tm.results.to_model_card(run, fresh)
    assert fresh.read_text() == f"{text}\n"
    with pytest.raises(ValueError, match=r"`path` should end in \.md\. Found 'x\.txt'\."):
        tm.results.to_model_card(run, tmp_path / "x.txt")


def test_hugging_face_reads_the_card(run, tmp_path):
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n# My model\n")
    text = tm.results.to_model_card(run, tmp_path / "README.md")
    card = hub.ModelCard.load(tmp_path / "README.md")
    assert card.data.license == "mit"
    assert text in card.text


@pytest.mark.slow
def test_skops_takes_the_section(run):
    skops = pytest.importorskip("skops.card", reason="skops is not installed: pip install -r requirements/trackers.txt")
    from sklearn.linear_model import LogisticRegression

    card = skops.Card(LogisticRegression(), template=None)
    _, text = tm.results.to_model_card(run).split("\n", 1)
    card.add(**{"Bias during training": text})
    assert "woman & old" in card.render()


def test_the_command(run, tmp_path, capsys):
    pytest.importorskip("h5py", reason="h5netcdf and h5py are not installed")
    tm.save(run, tmp_path / "run")
    places = {"netcdf": tmp_path / "a.nc", "card": tmp_path / "README.md"}
    assert (
        main(["export", str(tmp_path / "run"), "--netcdf", str(places["netcdf"]), "--card", str(places["card"])]) == 0
    )
    assert all(place.exists() for place in places.values())
