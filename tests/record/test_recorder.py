"""One suite for both places a recorder writes to: memory and disk."""

import json
import math
import os
import signal

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Recorder, Trajectory, check, load
from tiltmeter.record.labelled import labels_array


@pytest.fixture(params=["memory", "disk"])
def to(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "runs" / "mine"


@pytest.fixture
def record(to, origin):
    """A new recorder, closed at the end."""
    with Recorder(to, clock="step", origin=origin) as recorder:
        yield recorder


def test_looks_become_a_trajectory(record, origin, by_group):
    record.append(0, {"loss": by_group(0.5, 0.6), "norm": 1.5})
    record.append(10, {"loss": by_group(0.4, 0.5)})
    record.append(30, {"loss": by_group(0.3, 0.4), "norm": 2})
    run = record.trajectory()
    assert (run.clock, run.origin, run.diverged) == ("step", origin, None)
    assert list(run) == ["loss", "norm"]
    assert run["loss"].time.values.tolist() == [0, 10, 30]
    assert run["loss"].time.dtype == int
    assert run["loss"].sel(group="-").values.tolist() == [0.6, 0.5, 0.4]
    assert run["norm"].time.values.tolist() == [0, 30]
    assert run["norm"].values.tolist() == [1.5, 2.0]
    assert (record.evaluations, record.last_time) == (3, 30)


def test_a_trajectory_grows_with_the_recording(record, by_group):
    assert record.trajectory() == Trajectory({}, "step", record.trajectory().origin)
    seen = []
    for step in range(5):
        record.append(step, {"loss": by_group(step, 0.5)})
        seen.append(record.trajectory())
    assert [run["loss"].sizes["time"] for run in seen] == [1, 2, 3, 4, 5]
    assert seen[1]["loss"].sel(group="+").values.tolist() == [0, 1]


READINGS = {
    "number": [0.1, 2, np.float32(0.5), np.int64(3)],
    "truth": [True, np.bool_(False)],
    "odd floats": [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308],
    "float32": [xr.DataArray(np.array([0.1, np.nan, np.inf], "float32"), dims="k")] * 2,
    "int8": [xr.DataArray(np.array([-128, 127], "int8"), dims="k")],
    "uint64": [xr.DataArray(np.array([0, 2**64 - 1], "uint64"), dims="k")],
    "bool": [xr.DataArray(np.array([[True], [False]]), dims=("a", "b"))],
    "text labels": [xr.DataArray([1.0, 2.0], dims="group", coords={"group": ["+", "é"]})],
    "int labels": [xr.DataArray([1.0, 2.0], dims="layer", coords={"layer": [3, 5]})],
    "float labels": [xr.DataArray([1.0, 2.0], dims="lr", coords={"lr": [0.1, np.inf]})],
    "bool labels": [xr.DataArray([1.0, 2.0], dims="on", coords={"on": [True, False]})],
    "tuple labels": [xr.DataArray([1.0, 2.0], dims="group", coords={"group": labels_array([("a", 1), ("b", None)])})],
    "other coordinates": [
        xr.DataArray([1.0, 2.0], dims="seed", coords={"seed": [1, 2], "lr": ("seed", [0.1, 0.2]), "group": "+"})
    ],
    "attributes": [xr.DataArray([1.0], dims="k", attrs={"long_name": "x", "range": (0, 1), "none": None})] * 2,
    "no values": [xr.DataArray(np.zeros((2, 0)), dims=("a", "b"))] * 2,
    "large": [xr.DataArray(np.random.default_rng(k).normal(size=(40, 30)), dims=("a", "b")) for k in range(3)],
    "large float32": [xr.DataArray(np.full(1025, np.nan, "float32"), dims="k")],
    "just small": [xr.DataArray(np.arange(1024), dims="k")] * 2,
    "fortran": [xr.DataArray(np.asfortranarray(np.arange(1200.0).reshape(30, 40)), dims=("a", "b"))],
    "odd/name é\n": [1.0],
}


@pytest.mark.parametrize("name", READINGS)
def test_memory_and_disk_record_the_same_to_the_last_bit(tmp_path, origin, same, name):
    runs = []
    for to in (None, tmp_path / "run"):
        with Recorder(to, clock="t", origin=origin) as recorder:
            for k, value in enumerate(READINGS[name]):
                recorder.append(k / 3, {name: value})
        runs.append(recorder.trajectory())
    same(*runs)
    same(runs[0], load(tmp_path / "run"))
    assert check(tmp_path / "run").ok
    for k, value in enumerate(READINGS[name]):
        read = runs[1][name].isel(time=k).drop_vars("time")
        given = value if isinstance(value, xr.DataArray) else xr.DataArray(value)
        assert read.equals(given.astype(read.dtype))
        assert (np.signbit(read) == np.signbit(given)).all() or given.dtype.kind != "f"
        if isinstance(value, xr.DataArray):
            assert read.dtype == value.dtype
            assert json.loads(json.dumps(value.attrs)) == read.attrs
    for line in (tmp_path / "run" / "curves.jsonl").read_bytes().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_times_may_be_integers_floats_or_both(record):
    for time in (np.int32(0), 0.5, 1, np.float32(2.5)):
        record.append(time, {"loss": 1.0})
    assert record.trajectory()["loss"].time.values.tolist() == [0, 0.5, 1, 2.5]


def test_a_look_may_be_a_dataset_or_empty(record, by_group):
    record.append(0, xr.Dataset({"loss": by_group(1.0, 2.0), "error": 0.5}))
    record.append(1, {})
    assert set(record.trajectory()) == {"loss", "error"}
    assert record.evaluations == 2


def test_the_callers_buffer_may_change_afterwards(record):
    buffer = np.zeros(3)
    for step in range(3):
        buffer += 1
        record.append(step, {"x": xr.DataArray(buffer, dims="k")})
    assert record.trajectory()["x"].isel(k=0).values.tolist() == [1, 2, 3]


def test_a_reading_cut_from_a_curve_forgets_its_time(record):
    curve = xr.DataArray([[1.0], [2.0]], dims=("time", "k"), coords={"time": [5, 6]})
    for step in range(2):
        record.append(step, {"x": curve.isel(time=step)})
    assert record.trajectory()["x"].time.values.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("time", "kind", "sentence"),
    [
        (10, ValueError, "`time` should increase from evaluation to evaluation. Found time = 10 after time = 10."),
        (9.5, ValueError, "`time` should increase from evaluation to evaluation. Found time = 9.5 after time = 10."),
        (math.nan, ValueError, "`time` should be finite, and at most 2**53 if it is an integer. Found time = nan."),
        (math.inf, ValueError, "`time` should be finite, and at most 2**53 if it is an integer. Found time = inf."),
        (2**53 + 1, ValueError, "`time` should be finite, and at most 2**53"),
        (10**400, ValueError, "`time` should be finite, and at most 2**53 if it is an integer. Found time = 1000"),
        pytest.param(10**5000, ValueError, "Found time = a very long int.", id="thousands of digits"),
        ("11", TypeError, "`time` should be a number. Found time = '11'."),
        (True, TypeError, "`time` should be a number. Found time = True."),
        (None, TypeError, "`time` should be a number. Found time = None."),
    ],
)
def test_bad_times_are_refused_and_change_nothing(record, time, kind, sentence):
    record.append(10, {"loss": 1.0})
    before = record.trajectory()
    with pytest.raises(kind) as caught:
        record.append(time, {"loss": 2.0})
    assert sentence in str(caught.value)
    assert record.trajectory() == before
    record.append(11, {"loss": 2.0})


GOOD = xr.DataArray([1.0, 2.0], dims="group", coords={"group": ["+", "-"]}, attrs={"units": "nats"})


@pytest.mark.parametrize(
    ("value", "kind", "sentence"),
    [
        (
            1.0,
            ValueError,
            "'loss' should keep the layout of its first reading. Found that `dims` was [\"group\"] and is now []",
        ),
        (GOOD.rename(group="seed"), ValueError, '`dims` was ["group"] and is now ["seed"]'),
        (GOOD[:1], ValueError, "`shape` was [2] and is now [1]"),
        (GOOD.astype("float32"), ValueError, '`dtype` was "float64" and is now "float32"'),
        (GOOD.assign_coords(group=["+", "0"]), ValueError, 'a label of coordinate `group` was "-" and is now "0"'),
        (GOOD.drop_vars("group"), ValueError, 'coordinate `group` was ["+", "-"] and is now absent'),
        (GOOD.assign_coords(lr=0.1), ValueError, "coordinate `lr` was absent and is now"),
        (GOOD.assign_attrs(units="bits"), ValueError, 'attribute `units` was "nats" and is now "bits"'),
        (GOOD.drop_attrs(), ValueError, 'attribute `units` was "nats" and is now absent'),
        (GOOD.expand_dims(time=[1]), ValueError, "A reading of 'loss' is taken at one time: it should have no `time`"),
        (GOOD * 1j, TypeError, "'loss' should hold real numbers. Found values of type complex128."),
        (GOOD.astype(str), TypeError, "'loss' should hold real numbers. Found values of type <U"),
        (GOOD.assign_attrs(f=print), TypeError, "'loss' cannot be recorded. Attributes should be plain JSON"),
        (GOOD.assign_attrs(f=math.nan), TypeError, "'loss' cannot be recorded. Attributes should be plain JSON"),
        (
            GOOD.assign_coords(group=np.array(["2020", "2021"], "datetime64[ns]")),
            TypeError,
            "'loss' cannot be recorded. Labels should be text, numbers or tuples of them.",
        ),
        (1j, TypeError, "A reading of 'loss' should be a number or an xarray.DataArray. Found complex."),
        ("0.5", TypeError, "should be a number or an xarray.DataArray. Found str."),
        (np.array([1.0, 2.0]), TypeError, "should be a number or an xarray.DataArray. Found ndarray."),
        (None, TypeError, "should be a number or an xarray.DataArray. Found NoneType."),
    ],
)
def test_bad_readings_are_refused_and_change_nothing(record, value, kind, sentence):
    record.append(0, {"loss": GOOD})
    before = record.trajectory()
    with pytest.raises(kind) as caught:
        record.append(1, {"other": 1.0, "loss": value})
    assert sentence in str(caught.value)
    assert record.trajectory() == before
    assert (record.evaluations, record.last_time) == (1, 0)
    record.append(1, {"loss": GOOD})


def test_a_changed_label_among_thousands_is_named(record):
    layer = xr.DataArray(np.zeros(1000), dims="layer", coords={"layer": np.arange(1000)})
    record.append(0, {"x": layer})
    labels = np.arange(1000)
    labels[700] = -5
    with pytest.raises(ValueError, match="a label of coordinate `layer` was 700 and is now -5"):
        record.append(1, {"x": layer.assign_coords(layer=labels)})


@pytest.mark.parametrize("name", [3, None, "", ("a", "b")])
def test_curves_have_names(record, name):
    with pytest.raises(TypeError, match="The name of a curve should be text"):
        record.append(0, {name: 1.0})


def test_a_look_is_a_mapping(record):
    with pytest.raises(TypeError, match=r"`values` should map curve names to readings\. Found float\."):
        record.append(0, 0.5)


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"clock": "hour"}, ValueError, "`clock` should be one of"),
        ({"origin": None}, TypeError, "`origin` should be an Origin"),
    ],
)
def test_bad_recorders_create_nothing(to, origin, change, kind, sentence):
    with pytest.raises(kind, match=sentence):
        Recorder(to, **{"clock": "step", "origin": origin, **change})
    assert to is None or not to.exists()


def test_memory_has_nothing_to_resume(origin):
    with pytest.raises(ValueError, match="`resume` continues a run directory"):
        Recorder(None, clock="step", origin=origin, resume=True)


@pytest.mark.parametrize(
    "at", [30, 2.5, xr.DataArray([np.nan, 20], dims="seed", coords={"seed": [7, 8]}), xr.DataArray(np.int64(3))]
)
def test_divergence_is_kept(to, origin, at, same):
    with Recorder(to, clock="step", origin=origin) as recorder:
        recorder.append(0, {"loss": 1.0})
        recorder.diverged(999)
        recorder.diverged(at)
        during = recorder.trajectory()
    expected = at.astype(float) if isinstance(at, xr.DataArray) else xr.DataArray(float(at))
    assert during.diverged.identical(expected)
    assert recorder.trajectory().diverged.identical(expected)
    if to is not None:
        same(load(to), during)
        assert json.loads((to / "end.json").read_text())["diverged"]["values"] in ([None, 20], 30, 2.5, 3)


def test_divergence_is_a_time(record):
    with pytest.raises(TypeError, match="A reading of 'diverged' should be a number"):
        record.diverged("yes")


def test_a_closed_recorder_says_so(to, origin):
    recorder = Recorder(to, clock="step", origin=origin)
    recorder.append(0, {"loss": 1.0})
    recorder.close()
    recorder.close()
    for more in (lambda: recorder.append(1, {"loss": 1.0}), lambda: recorder.diverged(1)):
        with pytest.raises(ValueError, match=r"This recorder of .* is closed\. Open it again with `resume=True`"):
            more()
    assert recorder.trajectory()["loss"].values.tolist() == [1.0]


class Nonsense(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (None, "finished", None),
        (Nonsense("two\n lines"), "failed", "Nonsense: two lines"),
        (Nonsense(), "failed", "Nonsense"),
        (Nonsense("x" * 9999), "failed", "Nonsense: " + "x" * 990),
        (KeyboardInterrupt(), "interrupted", "KeyboardInterrupt"),
        (SystemExit(3), "interrupted", "SystemExit: 3"),
    ],
)
def test_leaving_says_how_the_run_ended(to, origin, error, state, reason):
    def run():
        with Recorder(to, clock="step", origin=origin) as recorder:
            recorder.append(0, {"loss": 1.0})
            if error is not None:
                raise error
        return recorder

    if error is None:
        run()
    else:
        with pytest.raises(type(error)) as caught:
            run()
        assert caught.value is error
    if to is not None:
        report = check(to)
        assert (report.state, report.reason, report.evaluations, report.ok) == (state, reason, 1, True)
        assert not (to / "lock").exists()
        assert load(to)["loss"].values.tolist() == [1.0]


def test_an_interrupt_right_after_the_write_records_no_time_twice(to, origin, monkeypatch):
    with Recorder(to, clock="step", origin=origin) as recorder:
        recorder.append(0, {"loss": 1.0})
        evaluate = type(recorder._place).evaluate

        def interrupted(self, *arguments):
            evaluate(self, *arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr(type(recorder._place), "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            recorder.append(1, {"loss": 2.0, "new": 1.0})
        monkeypatch.undo()
        with pytest.raises(ValueError, match="`time` should increase"):
            recorder.append(1, {"loss": 2.0})
        recorder.append(2, {"loss": 3.0, "new": 2.0})
    assert recorder.trajectory()["loss"].values.tolist() == [1, 2, 3]
    assert recorder.trajectory()["new"].values.tolist() == [1, 2]
    assert to is None or check(to).ok


def test_a_real_interrupt_at_any_instant_leaves_a_good_run(tmp_path, origin, child):
    path = tmp_path / "run"

    def train(tell):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Recorder(path, clock="step", origin=origin) as recorder:
            for step in range(2000):
                recorder.append(step, {"loss": step / 3, "big": xr.DataArray(np.full(1100, step), dims="k")})
                tell(step)

    for _ in range(5):
        one = child(train)
        while one.hear() < 5:
            pass
        os.kill(one.pid, signal.SIGINT)
        code, said = one.wait()
        assert (code, said[-1].split(":")[0]) == (1, "KeyboardInterrupt")
        report = check(path)
        assert (report.state, report.ok) == ("interrupted", True)
        acknowledged = max([step for step in said if isinstance(step, int)], default=5)
        assert load(path)["loss"].time.values[-1] >= acknowledged
        path.rename(tmp_path / f"was-{one.pid}")


def test_a_forked_child_leaves_the_run_to_its_parent(to, origin, child):
    with Recorder(to, clock="step", origin=origin) as recorder:
        recorder.append(0, {"loss": 1.0})

        def leave(tell):
            with recorder:
                if to is not None:
                    try:
                        recorder.append(1, {"loss": 2.0})
                    except RuntimeError as error:
                        tell(str(error))
                recorder.close()
            with recorder:
                raise SystemExit

        code, said = child(leave).wait()
        assert code == 1
        if to is not None:
            assert "belongs to the process that opened it, not to this fork" in said[0]
            assert check(to).state == "running"
        recorder.append(1, {"loss": 3.0})
    assert recorder.trajectory()["loss"].values.tolist() == [1.0, 3.0]


def test_origin_with_everything_survives(tmp_path):
    origin = Origin("x", problem={"a": [None, 1.5, {"b": "é"}]}, settings={"s": [True]}, seeds=(1, 2), version="0.0.9")
    with Recorder(tmp_path / "run", clock="epoch", origin=origin):
        pass
    assert load(tmp_path / "run") == Trajectory({}, "epoch", origin)
