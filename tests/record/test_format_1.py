"""Runs written before there were checksums: they load, they are checked, and they go on in the format of today.

`format_1/` holds three directories as the first format wrote them: a recorded run, the same saved whole, a dataset.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Recorder, check, load, save

OLD = Path(__file__).parent / "format_1"
ORIGIN = Origin("example", problem={"rho": 0.8}, settings={"lr": 0.1}, seeds=(3,), version="0.1.0")


def loss(step, other=0.5):
    values = [1 / (1 + step), other]
    return xr.DataArray(values, dims="group", coords={"group": ["+", "-"]}, attrs={"units": "nats"})


@pytest.mark.parametrize("name", ["recorded", "saved"])
def test_an_old_run_loads_as_it_was(name):
    assert json.loads((OLD / name / "run.json").read_text())["format"] == 1
    run = load(OLD / name)
    assert (run.clock, run.origin, list(run)) == ("step", ORIGIN, ["loss", "norm", "rare"])
    assert run.origin.recipe is None
    for step in range(0, 50, 10):
        assert (
            run["loss"]
            .sel(time=step)
            .drop_vars("time")
            .identical(loss(step, np.nan if step == 20 else 0.5).rename("loss"))
        )
    assert run["rare"].time.values.tolist() == [0, 20, 40]
    assert run["rare"].dtype == np.int16
    assert run.diverged.sel(seed=8) == 20
    assert len(run.points) == 0
    report = check(OLD / name)
    assert (report.ok, report.state, report.looks) == (True, "finished", 5), report


def test_an_old_dataset_loads_as_it_was():
    data = xr.Dataset({"M": ("group", [0.5, np.nan]), "Q": 3.0}, {"group": ["+", "-"]}, {"loss": "Logistic"})
    assert load(OLD / "dataset").identical(data)
    assert check(OLD / "dataset").ok


@pytest.mark.parametrize("name", ["recorded", "saved"])
def test_an_old_run_goes_on_with_checksums_and_points(tmp_path, name):
    path = tmp_path / "run"
    shutil.copytree(OLD / name, path)
    before = (path / "curves.jsonl").read_bytes()
    points = xr.DataArray(np.arange(3, dtype="float32"), dims="point")
    with Recorder(path, clock="step", origin=ORIGIN, resume=True) as recorder:
        assert recorder.last_time == 40
        recorder.append(50, {"loss": loss(50)}, points={"loss": points})
    header = json.loads((path / "run.json").read_text())
    assert (header["format"], header["unchecked"]) == (2, len(before))
    assert (path / "curves.jsonl").read_bytes().startswith(before)
    assert load(path)["loss"].time.values.tolist() == [0, 10, 20, 30, 40, 50]
    assert load(path).points["loss"].values.tolist() == [[0, 1, 2]]
    assert check(path).ok
    with Recorder(path, clock="step", origin=ORIGIN, resume=True) as recorder:
        recorder.append(60, {"loss": loss(60)})
    text = (path / "curves.jsonl").read_text()
    (path / "curves.jsonl").write_text(text.replace('"time":60', '"time":61'))
    line = text.count("\n")
    assert any(f"line {line}: its checksum does not match" in problem for problem in check(path).problems)


def test_an_old_torn_line_is_cut_when_the_run_goes_on(tmp_path):
    path = tmp_path / "run"
    shutil.copytree(OLD / "recorded", path)
    (path / "end.json").unlink()
    whole = (path / "curves.jsonl").read_bytes()
    (path / "curves.jsonl").write_bytes(whole + b'{"kind":"look","ti')
    with Recorder(path, clock="step", origin=ORIGIN, resume=True) as recorder:
        recorder.append(50, {"loss": loss(50)})
    assert check(path).ok
    assert load(path)["loss"].sizes["time"] == 6


def test_saving_an_old_run_makes_a_new_one(tmp_path):
    save(load(OLD / "recorded"), tmp_path / "new")
    assert load(tmp_path / "new") == load(OLD / "recorded")
    assert json.loads((tmp_path / "new" / "run.json").read_text())["format"] == 2
