"""Resuming run directories: what continues, what is refused, what is left alone."""

import json

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Recorder, check, load, save
from tiltmeter.record.directory.atomic_files import sealed_line


def listing(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_resume_continues_after_the_last_look(tmp_path, make_run, origin, by_group, same):
    make_run(tmp_path / "all", evaluations=6)
    path = make_run(tmp_path / "part", evaluations=3)
    with Recorder(path, clock="step", origin=origin, resume=True) as recorder:
        assert not (path / "end.json").exists()
        assert (recorder.evaluations, recorder.last_time) == (3, 20)
        with pytest.raises(ValueError, match="Found time = 20 after time = 20"):
            recorder.append(20, {"norm": 1.0})
        with pytest.raises(ValueError, match="'loss' should keep the layout"):
            recorder.append(30, {"loss": by_group(1.0, 2.0)})
        for step in (30, 40, 50):
            evaluation = {"loss": by_group(1 / (1 + step), 0.5, units="nats"), "norm": step / 3}
            if step == 40:
                evaluation["kernel"] = xr.DataArray(np.arange(1500.0) + step, dims="k")
            recorder.append(step, evaluation)
    same(load(path), load(tmp_path / "all"))
    again, whole = ((place / "curves.jsonl").read_text().splitlines() for place in (path, tmp_path / "all"))
    assert again == whole
    assert check(path).ok


def test_resume_begins_where_there_is_nothing(tmp_path, origin):
    with Recorder(tmp_path / "new", clock="step", origin=origin, resume=True) as recorder:
        assert (recorder.evaluations, recorder.last_time) == (0, None)
        recorder.append(0, {"loss": 1.0})
    assert check(tmp_path / "new").evaluations == 1


def test_resume_cuts_the_torn_tail(tmp_path, make_run, origin):
    path = make_run(tmp_path / "run")
    whole = (path / "curves.jsonl").read_bytes()
    (path / "curves.jsonl").write_bytes(whole + b'{"kind":"evaluation","time":60,"val')
    (path / "end.json").unlink()
    with Recorder(path, clock="step", origin=origin, resume=True) as recorder:
        recorder.append(60, {"norm": 1.0})
    last = (path / "curves.jsonl").read_bytes().removeprefix(whole)
    assert last.startswith(b'{"kind":"evaluation","time":60,"values":{"norm":1.0},"crc":"')
    assert last.count(b"\n") == 1


def test_resume_of_a_saved_trajectory(tmp_path, make_run, origin):
    run = load(make_run(tmp_path / "run"))
    save(run, tmp_path / "saved")
    with Recorder(tmp_path / "saved", clock="step", origin=origin, resume=True) as recorder:
        assert (recorder.evaluations, recorder.last_time) == (6, 50)
        recorder.append(60, {"norm": 1.0, "kernel": run["kernel"][0]})
    again = load(tmp_path / "saved")
    assert again["norm"].time.values.tolist() == [0, 10, 20, 30, 40, 50, 60]
    assert again["kernel"].time.values.tolist() == [0, 20, 40, 60]
    assert again["loss"].identical(run["loss"])
    assert check(tmp_path / "saved").evaluations == 7


def test_resume_keeps_divergence(tmp_path, origin):
    path = tmp_path / "run"
    with Recorder(path, clock="step", origin=origin) as recorder:
        recorder.diverged(3)
    with Recorder(path, clock="step", origin=origin, resume=True) as recorder:
        recorder.append(4, {"loss": 1.0})
    assert load(path).diverged == 3
    assert json.loads((path / "end.json").read_text())["diverged"]["values"] == 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"clock": "t"}, 'counts time in "step". Found clock = "t".'),
        ({"origin": Origin("other")}, "has another origin: `source` was 'example' and is now 'other'."),
        (
            {"origin": Origin("example", problem={"rho": 0.8}, settings={"lr": 0.2}, seeds=(3,))},
            "`settings.lr` was 0.1 and is now 0.2. Resume it with the origin it began with, or choose a new",
        ),
    ],
)
def test_resume_continues_only_the_same_run(tmp_path, make_run, origin, change, sentence):
    path = make_run(tmp_path / "run")
    before = listing(path)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Recorder(path, **{"clock": "step", "origin": origin, "resume": True, **change})
    assert sentence in str(caught.value)
    assert listing(path) == before


def spoil_format(path):
    (path / "run.json").write_text('{"format": 4}')


def spoil_line(path):
    lines = (path / "curves.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = b"{\n"
    (path / "curves.jsonl").write_bytes(b"".join(lines))


def spoil_values(path):
    first, *rest = (path / "curves.jsonl").read_bytes().splitlines(keepends=True)
    text = first[: first.rindex(b',"crc"')].replace(b'"norm":0.0', b'"norm":[1,2]') + b"}"
    (path / "curves.jsonl").write_bytes(sealed_line(text) + b"".join(rest))


def lose_curves(path):
    (path / "curves.jsonl").unlink()


def lose_run(path):
    (path / "run.json").unlink()


def lose_array(path):
    min((path / "arrays").iterdir()).unlink()


@pytest.mark.parametrize(
    ("spoil", "kind", "sentence"),
    [
        (spoil_format, ValueError, "written by a newer tiltmeter: format 4, this one reads format 3"),
        (spoil_line, ValueError, "curves.jsonl, line 2: this is not JSON"),
        (spoil_values, ValueError, "curves.jsonl, line 1: the values of 'norm' do not fit its layout"),
        (lose_array, ValueError, "curves.jsonl, line 1: arrays/000000000000-2.npy is missing."),
        (lose_curves, ValueError, "is damaged: its curves.jsonl is missing."),
        (lose_run, FileExistsError, "is not empty and holds no run"),
    ],
)
def test_a_damaged_run_is_not_resumed_and_left_alone(tmp_path, make_run, origin, spoil, kind, sentence):
    path = make_run(tmp_path / "run")
    spoil(path)
    before = listing(path)
    with pytest.raises(kind) as caught:
        Recorder(path, clock="step", origin=origin, resume=True)
    assert sentence in str(caught.value)
    assert listing(path) == before


def test_a_dataset_is_not_resumed(tmp_path, origin):
    save(xr.Dataset({"a": 1.0}), tmp_path / "data")
    with pytest.raises(ValueError, match="holds a dataset, which cannot be resumed"):
        Recorder(tmp_path / "data", clock="step", origin=origin, resume=True)


def test_an_upgrade_does_not_keep_a_run_from_being_resumed(tmp_path):
    with Recorder(tmp_path / "run", clock="step", origin=Origin("x", version="0.0.9")) as recorder:
        recorder.append(1, {"loss": 1.0})
    with Recorder(tmp_path / "run", clock="step", origin=Origin("x", version="0.1.0"), resume=True) as recorder:
        recorder.append(2, {"loss": 0.5})
    again = load(tmp_path / "run")
    assert again["loss"].values.tolist() == [1.0, 0.5]
    assert again.origin.version == "0.0.9"
