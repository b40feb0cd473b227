import errno
import json
import os
import shutil
import time
import tracemalloc

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Trajectory, check, load, save
from tiltmeter.record.directory.atomic_files import sealed_file, sealed_line
from tiltmeter.record.labelled import labels_array


def curve(times, values, **labels):
    return xr.DataArray(values, dims=("time", *labels), coords={"time": times, **labels})


@pytest.fixture
def full(origin):
    """A trajectory with everything that is hard to keep."""
    big = np.random.default_rng(0).normal(size=(60, 40))
    big[3, 4] = np.nan
    loss = curve([0.0, 0.1, 1e300], [[0.1, np.nan], [np.inf, -np.inf], [-0.0, 5e-324]], group=["+", "-"])
    return Trajectory(
        {
            "loss": loss.assign_attrs(long_name="half the squared error", range=[0, 1]),
            "big": curve(np.arange(60), big, group=np.arange(40)),
            "wide": curve([0], [np.arange(1500, dtype="int16")], k=np.arange(1500) / 7),
            "flag": curve([3], [True]),
            "pairs": curve([0, 5], [[1, 2], [3, 4]], group=labels_array([("a", 1), ("b", 2)])),
            "none": curve(np.zeros(0), np.zeros((0, 2)), group=["+", "-"]),
            "cut": loss.sel(group="+").assign_coords(epoch=("time", [0, 1, 2])),
            "odd/name\n": curve([1], [1.0]),
        },
        "t",
        origin,
        diverged=xr.DataArray([1.0, np.nan, np.inf], dims="seed", coords={"seed": [7, 8, 9]}),
        evaluate=lambda _: None,
    )


def test_a_trajectory_comes_back(tmp_path, full, same):
    save(full, tmp_path / "runs" / "deep")
    back = load(str(tmp_path / "runs" / "deep"))
    same(back, full)
    assert back.diverged.identical(full.diverged)
    assert back.evaluate is None
    assert os.listdir(tmp_path / "runs") == ["deep"]
    assert len(os.listdir(tmp_path / "runs" / "deep" / "arrays")) == 2
    report = check(tmp_path / "runs" / "deep")
    assert (report.ok, report.state, report.curves) == (True, "finished", tuple(full))
    save(back, tmp_path / "again")
    for file in ("run.json", "curves.jsonl", "end.json"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "runs" / "deep" / file).read_bytes()


def test_what_was_recorded_can_be_saved_again(tmp_path, make_run, same):
    run = load(make_run(tmp_path / "run"))
    save(run, tmp_path / "copy")
    same(load(tmp_path / "copy"), run)
    assert check(tmp_path / "copy").evaluations == 6


@pytest.mark.parametrize("clock", ["t", "step", "epoch"])
def test_an_empty_trajectory_comes_back(tmp_path, clock):
    empty = Trajectory({}, clock, Origin("nothing"))
    save(empty, tmp_path / "empty")
    assert load(tmp_path / "empty") == empty


def test_the_files_are_strict_json(tmp_path, full):
    save(full, tmp_path / "run")
    for line in (tmp_path / "run" / "curves.jsonl").read_bytes().splitlines():
        json.loads(line.decode("ascii"), parse_constant=pytest.fail)


DATASETS = {
    "scalars": xr.Dataset({"M": 0.5, "count": 3, "ok": True}),
    "arrays": xr.Dataset(
        {"M": ("group", [0.5, np.nan]), "Q": (("group", "other"), [[1.0, 2.0], [3.0, np.inf]])},
        {"group": ["+", "-"], "other": labels_array([("a", 1), ("b", 2)])},
        {"loss": "Logistic", "ridge": 0.3},
    ),
    "large": xr.Dataset({"K": (("a", "b"), np.random.default_rng(1).normal(size=(50, 60)).astype("float32"))}),
    "coordinates of their own": xr.Dataset(
        {"M": ("seed", [1.0, 2.0])},
        {"lr": ("seed", [0.1, 0.2]), "name": "x", "unused": [1, 2, 3], "text": ("seed", ["a", "b"])},
    ),
    "time": xr.Dataset({"M": (("seed", "time"), [[1.0, 2.0]]), "c": 1}, {"time": [1, 0]}),
    "empty": xr.Dataset(),
    "attributes": xr.Dataset({"M": ((), 1.0, {"long_name": "overlap"})}),
}


@pytest.mark.parametrize("name", DATASETS)
def test_a_dataset_comes_back(tmp_path, name):
    data = DATASETS[name]
    save(data, tmp_path / "data")
    back = load(tmp_path / "data")
    assert isinstance(back, xr.Dataset)
    assert back.identical(data)
    assert {key: array.dtype for key, array in back.items()} == {key: array.dtype for key, array in data.items()}
    report = check(tmp_path / "data")
    assert (report.ok, report.evaluations, report.curves) == (True, 0, tuple(data))


def test_what_is_saved_has_no_string_back_to_the_file(tmp_path, full):
    save(full, tmp_path / "run")
    back = load(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    assert back == full


@pytest.mark.parametrize("existing", ["run", "file", "empty directory", "dangling link"])
def test_nothing_is_overwritten(tmp_path, full, existing):
    path = tmp_path / "there"
    if existing == "run":
        save(full, path)
    elif existing == "file":
        path.write_text("precious")
    elif existing == "empty directory":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError) as caught:
        save(Trajectory({}, "t", Origin("x")), path)
    assert str(caught.value) == f"{path} already exists and is never overwritten. Choose a new name."


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (3, "`save` takes a Trajectory or an xarray.Dataset. Found int."),
        (xr.DataArray(1.0), "`save` takes a Trajectory or an xarray.Dataset. Found DataArray."),
        (xr.Dataset({"a": "text"}), "'a' should hold real numbers. Found values of type <U4."),
        (xr.Dataset({"a": 1j}), "'a' should hold real numbers. Found values of type complex128."),
        (xr.Dataset({"a": 1.0}, attrs={"f": print}), "Attributes should be plain JSON"),
        (
            Trajectory({"x": curve([0], [1.0]).assign_attrs(n=np.int64(3))}, "t", Origin("x")),
            "'x' cannot be recorded. Attributes should be plain JSON: Object of type int64 is not JSON serializable.",
        ),
    ],
)
def test_what_cannot_be_saved_leaves_nothing(tmp_path, what, sentence):
    with pytest.raises(TypeError) as caught:
        save(what, tmp_path / "run")
    assert sentence in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path, full, monkeypatch):
    def no_space(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tiltmeter.record.directory.store.write_end", no_space)
    with pytest.raises(OSError, match=r"run could not be written: No space left on device\. Nothing was left there\."):
        save(full, tmp_path / "run")
    assert os.listdir(tmp_path) == []


def nothing(path):
    shutil.rmtree(path)


def a_file(path):
    shutil.rmtree(path)
    path.write_text("x")


def foreign(path):
    shutil.rmtree(path)
    path.mkdir()
    (path / "thesis.tex").write_text("x")


def writes_alone(name):
    def spoil(path):
        shutil.rmtree(path)
        path.mkdir()
        (path / name).write_text("{}")

    spoil.__name__ = f"{name} alone"
    return spoil


def without_run(path):
    (path / "run.json").unlink()


def without_curves(path):
    (path / "curves.jsonl").unlink()


def writes(name, text):
    def spoil(path):
        (path / name).write_text(text)

    spoil.__name__ = f"{name}-{text[:20]}"
    return spoil


def sealed(value):
    return sealed_file(json.dumps(value).encode()).decode()


HEADER = {"format": 3, "holds": "trajectory", "clock": "t", "origin": {"source": "x"}}


@pytest.mark.parametrize(
    ("spoil", "kind", "sentence"),
    [
        (nothing, FileNotFoundError, "`path` should be a run directory. Found nothing at {path}."),
        (a_file, NotADirectoryError, "`path` should be a run directory. Found a file at {path}."),
        (foreign, ValueError, "{path} is not a run directory: it has no run.json."),
        (
            writes_alone("tangent.json"),
            ValueError,
            "it has no run.json. It holds kernels: `tm.results.load_tangent` reads them.",
        ),
        (
            writes_alone("study.json"),
            ValueError,
            "it has no run.json. It holds a study: `tiltmeter study status` reads",
        ),
        (without_run, ValueError, "{path} was a run once, but its run.json is missing."),
        (without_curves, ValueError, "{path} is damaged: its curves.jsonl is missing."),
        (writes("run.json", ""), ValueError, "{path}/run.json is damaged: "),
        (writes("run.json", '{"format": 1, "ho'), ValueError, "{path}/run.json is damaged: "),
        (writes("run.json", "[1]"), ValueError, "{path}/run.json is damaged: it should hold an object."),
        (
            writes("run.json", '{"format": 7, "new": true}'),
            ValueError,
            "{path} was written by a newer tiltmeter: format 7, this one reads format 3. Upgrade tiltmeter to read it.",
        ),
        (writes("run.json", "{}"), ValueError, "{path}/run.json is not a run.json of format 3. Found format None"),
        (writes("run.json", '{"format": 0}'), ValueError, "is not a run.json of format 3."),
        (writes("run.json", '{"format": "1"}'), ValueError, "is not a run.json of format 3."),
        (writes("run.json", '{"format": 3}'), ValueError, "is not a run.json of format 3. 'holds' is missing."),
        (
            writes("run.json", '{"format": 2}'),
            ValueError,
            "{path} was written by an earlier tiltmeter: format 2, this one reads format 3. Record the run again.",
        ),
        (writes("run.json", sealed({**HEADER, "holds": "x"})), ValueError, "Found format 3 holding 'x'"),
        (writes("run.json", sealed({**HEADER, "clock": "x"})), ValueError, "Found clock 'x'."),
        (writes("run.json", sealed({**HEADER, "origin": {}})), ValueError, "'source' is missing."),
        (writes("run.json", sealed({**HEADER, "origin": 3})), ValueError, "is not a run.json of format 3."),
        (writes("end.json", "{"), ValueError, "{path}/end.json is damaged: "),
        (
            writes("end.json", "3"),
            ValueError,
            "{path}/end.json is damaged: it should hold an object. Delete it to treat",
        ),
        (writes("end.json", '{"state": "x"}'), ValueError, "{path}/end.json is damaged: it says neither how"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_cannot_be_loaded_is_told_and_check_tells_it_too(tmp_path, make_run, spoil, kind, sentence):
    path = make_run(tmp_path / "run")
    spoil(path)
    sentence = sentence.format(path=path)
    with pytest.raises(kind) as caught:
        load(path)
    assert sentence in str(caught.value)
    report = check(path)
    assert not report.ok
    assert sentence.rstrip(".") in str(report)


def test_a_dataset_whose_parts_do_not_fit_is_told(tmp_path, rewrite):
    save(xr.Dataset({"a": ("k", [1.0, 2.0]), "b": ("k", [3.0, 4.0])}), tmp_path / "data")
    curves = tmp_path / "data" / "curves.jsonl"
    entry = json.loads(curves.read_text().splitlines()[2])
    entry["values"], entry["layout"]["shape"] = [3.0], [1]
    rewrite(curves, {2: entry})
    with pytest.raises(ValueError, match="data is damaged: its parts do not fit together"):
        load(tmp_path / "data")
    assert not check(tmp_path / "data").ok


def test_a_run_that_never_began_is_not_called_lost(tmp_path):
    (tmp_path / "curves.jsonl").touch()
    with pytest.raises(ValueError, match=r"is not a run directory: it has no run\.json"):
        load(tmp_path)


def test_a_run_from_the_future_need_not_look_like_ours(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 4}')
    with pytest.raises(ValueError, match="written by a newer tiltmeter: format 4"):
        load(tmp_path)


def test_loading_many_lines_is_fast_and_modest(tmp_path, origin):
    """By ratio to what merely parsing the lines costs, so that a slow machine does not matter."""
    path = tmp_path / "run"
    save(Trajectory({}, "step", origin), path)
    layout = {"dims": ["k"], "shape": [4], "coords": {}, "dtype": "float64", "attrs": {}}
    (path / "end.json").unlink()
    with (path / "curves.jsonl").open("w") as file:
        for step in range(30_000):
            entry = {
                "kind": "evaluation",
                "time": step,
                "layouts": {"x": layout},
                "values": {"x": [step / 7, 0.1, 0.2, 0.3]},
            }
            text = json.dumps(entry if step == 0 else {k: v for k, v in entry.items() if k != "layouts"})
            file.write(sealed_line(text.encode()).decode())
    start = time.process_time()
    with (path / "curves.jsonl").open() as file:
        for line in file:
            json.loads(line)
    parsed = time.process_time()
    run = load(path)
    loaded = time.process_time()
    assert run["x"].shape == (30_000, 4)
    assert (run["x"].isel(k=0).values == np.arange(30_000) / 7).all()
    assert loaded - parsed < 10 * (parsed - start)
    tracemalloc.start()
    load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * run["x"].nbytes
