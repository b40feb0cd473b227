"""The JSON schema in the docs says what the files hold: all that we write fits it, what we refuse does not."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Recorder, accept_missing, load, save
from tiltmeter.record.labelled import labels_array

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/_static/run-directory.schema.json").read_text())


def fits(part):
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]})


def verify(path):
    """All files of a directory; which kinds of line there were."""
    fits("run").validate(json.loads((path / "run.json").read_text()))
    if (path / "end.json").exists():
        fits("end").validate(json.loads((path / "end.json").read_text()))
    lines = [json.loads(line) for line in (path / "curves.jsonl").read_text().splitlines()]
    for line in lines:
        fits("line").validate(line)
    return {line["kind"] for line in lines}


def test_everything_that_is_written_fits(tmp_path, origin):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    groups = labels_array([("a", 1), ("b", float("nan"))])
    reading = xr.DataArray([np.nan, np.inf], dims="group", coords={"group": groups, "lr": 0.1})
    with Recorder(tmp_path / "run", clock="step", origin=Origin("x", settings={"recipe": {"lr": 0.1}})) as recorder:
        for step in range(4):
            points = {"p": xr.DataArray(np.zeros(9, "float32"), dims="point", coords={"group": ("point", ["a"] * 9)})}
            recorder.append(step, {"loss": reading, "big": xr.DataArray(np.zeros(2000), dims="k")}, points=points)
        fits("lock").validate(json.loads((tmp_path / "run" / "lock").read_text()))
        recorder.diverged(2)
        recorder.rewind(1)
    accept_missing(tmp_path / "run", 9)
    kinds = verify(tmp_path / "run")
    save(load(tmp_path / "run"), tmp_path / "saved")
    kinds |= verify(tmp_path / "saved")
    save(xr.Dataset({"M": ("group", [0.5, 1.0])}, {"group": groups}), tmp_path / "data")
    kinds |= verify(tmp_path / "data")
    described = {line["properties"]["kind"]["const"] for line in SCHEMA["$defs"]["line"]["anyOf"]}
    assert kinds == described


@pytest.mark.parametrize(
    ("part", "entry"),
    [
        ("line", {"kind": "photo"}),
        ("line", {"kind": "evaluation", "time": "1", "values": {}}),
        ("line", {"kind": "evaluation", "time": 1, "values": {"x": {"array": "../x.npy"}}}),
        ("run", {"format": 1, "holds": "trajectory", "clock": "step", "origin": {"source": "x"}}),
        ("end", {"state": "tired", "bytes": 3, "crc": "00000000"}),
    ],
)
def test_what_is_refused_does_not_fit(part, entry):
    assert not fits(part).is_valid(entry)
