"""Arrays beside the curves: per-point losses and decisions, kept at the evaluations, read when asked for."""

import json
import os
import pickle
import shutil
import signal

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Recorder, Trajectory, check, load, save, stack
from tiltmeter.record.points import Points

GROUPS = np.array(["a", "b", "a", "b", "a", "b", "a", "b", "a", "b", "a"])


def losses(step, dtype="float32", labels=False):
    array = xr.DataArray((np.arange(11) * step / 7).astype(dtype), dims="point")
    return array.assign_coords(group=("point", GROUPS), label=("point", np.arange(11) % 2)) if labels else array


def decisions(step):
    return xr.DataArray(np.arange(11) % (2 + step % 3) == 0, dims="point")


def record(to, steps, origin, resume=False, end=None):
    with Recorder(to, clock="step", origin=origin, resume=resume) as recorder:
        for step in steps:
            points = {}
            if step % 2 == 0:
                points = {"loss": losses(step, labels=step == 0), "decision": decisions(step)}
            recorder.append(step, {"loss": step / 3}, points=points)
    return recorder.trajectory()


@pytest.fixture(params=["memory", "disk"])
def to(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "run"


def test_points_come_back_with_their_labels(to, origin):
    run = record(to, range(6), origin)
    assert list(run.points) == ["loss", "decision"]
    loss, decision = run.points["loss"], run.points["decision"]
    assert (loss.dtype, decision.dtype) == (np.float32, bool)
    assert loss.time.values.tolist() == [0, 2, 4]
    assert loss.group.values.tolist() == GROUPS.tolist()
    assert loss.label.values.tolist() == [0, 1] * 5 + [0]
    for step in (0, 2, 4):
        assert (loss.sel(time=step).values == losses(step).values).all()
        assert (decision.sel(time=step).values == decisions(step).values).all()
    assert not loss.values.flags.writeable
    assert repr(run.points) == "<Points loss (time: 3, point: 11), decision (time: 3, point: 11)>"
    assert repr(run).endswith("points: loss, decision")
    with pytest.raises(KeyError, match=r"No points 'norm' were kept\. There are: loss, decision\."):
        run.points["norm"]
    with pytest.raises(AttributeError):
        run.points.more = 1


def test_losses_cost_four_bytes_and_decisions_one_bit(tmp_path, origin):
    record(tmp_path / "run", range(6), origin)
    sizes = {file.name: file.stat().st_size for file in (tmp_path / "run" / "points").iterdir()}
    assert sizes == {"0.bin": 3 * 11 * 4, "1.bin": 3 * 2}
    first = json.loads((tmp_path / "run" / "curves.jsonl").read_text().splitlines()[0])
    assert first["points"]["decision"]["record"] == 0
    assert first["point_layouts"]["loss"]["file"] == "0.bin"


def test_memory_disk_and_load_agree(tmp_path, origin):
    a, b = (record(to, range(6), origin) for to in (None, tmp_path / "run"))
    assert a.points == b.points == load(tmp_path / "run").points
    report = check(tmp_path / "run")
    assert (report.ok, report.points, report.evaluations_with_points) == (True, ("loss", "decision"), 3)
    assert "6 evaluations of loss, 3 with points (loss, decision). No damage found." in str(report)


def test_every_type_of_number_is_kept_to_the_bit(to, origin):
    types = ["float16", "float32", "float64", "int8", "uint8", "int32", "uint64", "bool"]
    arrays = {name: losses(1, name).expand_dims(seed=[3, 4]).copy() for name in types}
    arrays["float64"][0, 0] = np.nan
    arrays["swapped"] = losses(1, ">f8")
    with Recorder(to, clock="step", origin=origin) as recorder:
        for step in (1, 5):
            recorder.append(step, {}, points=arrays)
    points = recorder.trajectory().points
    for name, array in arrays.items():
        assert points[name].isel(time=1).drop_vars("time").equals(array)
    assert points["float32"].seed.values.tolist() == [3, 4]


def test_points_are_checked_at_loading_and_read_when_asked_for(tmp_path, origin):
    record(tmp_path / "run", range(6), origin)
    run = load(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "points")
    assert run["loss"].sizes["time"] == 6
    assert run.points.sizes("loss") == {"time": 3, "point": 11}
    with pytest.raises(ValueError, match=r"points of 'loss' are read when asked for, but points/0\.bin is missing\."):
        run.points["loss"]
    assert "points/0.bin is missing" in str(check(tmp_path / "run"))
    for read in (load, lambda path: Recorder(path, clock="step", origin=origin, resume=True)):
        with pytest.raises(ValueError, match=r"line 1: points/0\.bin is missing\."):
            read(tmp_path / "run")


def test_save_keeps_them_and_resume_continues_them(tmp_path, origin):
    whole = record(None, range(10), origin)
    part = record(tmp_path / "part", range(5), origin)
    save(part, tmp_path / "saved")
    for path in (tmp_path / "part", tmp_path / "saved"):
        again = record(path, range(5, 10), origin, resume=True)
        assert again == whole
        assert again.points == whole.points == load(path).points
        assert check(path).ok
    save(load(tmp_path / "saved"), tmp_path / "copy")
    assert load(tmp_path / "copy").points == whole.points


def test_a_record_without_its_line_is_written_over(tmp_path, origin):
    """What a process leaves that is killed between the record and the line."""
    path = tmp_path / "run"
    record(path, range(6), origin)
    with (path / "points" / "0.bin").open("ab") as file:
        file.write(b"x" * 50)
    assert check(path).ok
    record(path, range(6, 9), origin, resume=True)
    assert load(path).points == record(None, range(9), origin).points


def test_every_changed_byte_of_points_is_found(tmp_path, origin):
    path = tmp_path / "run"
    record(path, range(6), origin)
    for name in ("0.bin", "1.bin"):
        file = path / "points" / name
        good = file.read_bytes()
        for place in range(len(good)):
            file.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
            report = check(path)
            line = 1 + 2 * (place // (len(good) // 3))
            assert f"curves.jsonl, line {line}: points/{name} has a record with another checksum" in report.problems
        file.write_bytes(good[:-1])
        assert "fewer bytes than its records need" in str(check(path))
        file.write_bytes(good)
    assert check(path).ok


@pytest.mark.parametrize(
    ("points", "kind", "sentence"),
    [
        ({"loss": np.zeros(11)}, TypeError, "Points of 'loss' should be an xarray.DataArray. Found ndarray."),
        ({"new": 3.0}, TypeError, "Points of 'new' should be an xarray.DataArray. Found float."),
        ({"new": xr.DataArray(1.0)}, ValueError, "they should have a dimension, such as `point`"),
        ({"new": losses(1).expand_dims(time=[1])}, ValueError, "and no `time`"),
        ({"new": losses(1).astype(str)}, TypeError, "'new' should hold real numbers"),
        ({"loss": losses(1)[:5]}, ValueError, "`shape` was [11] and is now [5]"),
        ({"loss": losses(1, "float64")}, ValueError, '`dtype` was "float32" and is now "float64"'),
        ({"loss": losses(1).rename(point="p")}, ValueError, '`dims` was ["point"] and is now ["p"]'),
        (
            {"loss": losses(1).assign_coords(group=("point", GROUPS[::-1] + "x"))},
            ValueError,
            "The points of 'loss' should stay the same from evaluation to evaluation. Found other labels in `group`",
        ),
        ({"loss": losses(1).assign_coords(new=("point", GROUPS))}, ValueError, "Found other labels in `new`"),
        (3, TypeError, "`points` should map curve names to readings. Found int."),
    ],
)
def test_bad_points_are_refused_and_change_nothing(to, origin, points, kind, sentence):
    with Recorder(to, clock="step", origin=origin) as recorder:
        recorder.append(0, {}, points={"loss": losses(0, labels=True)})
        with pytest.raises(kind) as caught:
            recorder.append(1, {}, points=points)
        assert sentence in str(caught.value)
        assert recorder.evaluations == 1
        recorder.append(1, {}, points={"loss": losses(1, labels=True)})
        recorder.append(2, {}, points={"loss": losses(2)})
    assert recorder.trajectory().points["loss"].time.values.tolist() == [0, 1, 2]


def test_equality_looks_at_curves_only_and_says_so(origin):
    curve = xr.DataArray([1.0], dims="time", coords={"time": [0]})
    array = losses(1).expand_dims(time=[0])
    a = Trajectory({"x": curve}, "step", origin, points={"loss": array})
    b = Trajectory({"x": curve}, "step", origin, points={"loss": array + 1})
    assert a == b
    assert a.points != b.points
    assert a.points == Trajectory({}, "step", origin, points={"loss": array}).points
    assert "not compared" in Trajectory.__doc__
    with pytest.raises(ValueError, match="`time` as its first dimension"):
        Trajectory({}, "step", origin, points={"loss": losses(1)})
    assert "points" not in a.to_json()
    assert Trajectory.from_json(a.to_json()).points == Points()


def test_another_clock_other_curves_and_another_process_keep_them(tmp_path, origin):
    run = load_after(tmp_path, origin)
    assert run.on_clock("epoch", steps_per_epoch=2).points["loss"].time.values.tolist() == [0, 1, 2]
    assert run.on_clock("epoch", steps_per_epoch=2).on_clock("step", steps_per_epoch=2).points == run.points
    assert run.replace({}).points == run.points
    assert pickle.loads(pickle.dumps(run)).points == run.points


def load_after(tmp_path, origin):
    record(tmp_path / "run", range(6), origin)
    return load(tmp_path / "run")


def test_stacked_runs_share_looks_and_points(tmp_path):
    runs = [record(None, range(n), Origin("x", seeds=(seed,))) for n, seed in ((6, 3), (9, 5))]
    both = stack(runs)
    loss = both.points["loss"]
    assert loss.dims == ("time", "point", "seed")
    assert loss.dtype == np.float32
    assert both.points["decision"].dtype == bool
    assert loss.time.values.tolist() == [0, 2, 4]
    assert loss.seed.values.tolist() == [3, 5]
    assert loss.group.values.tolist() == GROUPS.tolist()
    for run, seed in zip(runs, (3, 5), strict=True):
        assert (loss.sel(seed=seed).values == run.points["loss"].sel(time=[0, 2, 4]).values).all()
    save(both, tmp_path / "both")
    assert load(tmp_path / "both").points == both.points


def test_points_of_different_look_sets_are_not_joined(origin, tmp_path):
    curve = xr.DataArray([1.0], dims="time", coords={"time": [0]})

    def run(array):
        points = {} if array is None else {"loss": array.expand_dims(time=[0])}
        return Trajectory({"x": curve}, "step", origin, points=points)

    assert list(stack([run(losses(1)), run(losses(1)[:5])]).points) == []
    assert list(stack([run(losses(1)), run(None)]).points) == []
    other = losses(1, labels=True).assign_coords(group=("point", GROUPS[::-1] + "x"))
    two = [run(losses(1, labels=True)), run(other)]
    assert list(stack(two).points) == []  # and the stack can be saved
    # Labels on disk are compared when they are read.
    for number, one in enumerate(two):
        save(one, tmp_path / str(number))
    both = stack([load(tmp_path / "0"), load(tmp_path / "1")])
    with pytest.raises(ValueError, match="differ from run to run in `group`"):
        both.points["loss"]


def test_rewinding_forgets_the_dead_lineage(to, origin, same):
    with Recorder(to, clock="step", origin=origin) as recorder:
        for step in range(8):
            recorder.append(step, {"loss": -1.0 * step}, points={"p": losses(step, labels=step == 0)})
            if step > 5:
                recorder.append(step + 0.5, {"late": 1.0}, points={"late": losses(step)})
        recorder.diverged(7)
        recorder.rewind(3.5)
        assert (recorder.last_time, recorder.evaluations) == (3, 4)
        for step in range(4, 9):
            recorder.append(step, {"loss": 1.0 * step}, points={"p": losses(step + 1)})
        recorder.append(9, {"late": 2.0}, points={"late": losses(9, "float64")})
    run = recorder.trajectory()
    assert run["loss"].values.tolist() == [0, -1, -2, -3, 4, 5, 6, 7, 8]
    assert run["late"].time.values.tolist() == [9]
    assert run.diverged is None
    kept = [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert (run.points["p"].values == np.stack([losses(step).values for step in kept])).all()
    assert run.points["late"].dtype == np.float64
    if to is not None:
        same(load(to), run)
        report = check(to)
        assert (report.ok, report.evaluations, report.evaluations_with_points) == (True, 10, 10)
        assert report.taken_up == (3,)  # where the new course begins
        assert "It was continued after 3; the evaluations that it had there before were dropped." in str(report)
        with Recorder(to, clock="step", origin=origin, resume=True) as recorder:
            recorder.rewind(None)
            assert (recorder.last_time, recorder.evaluations) == (None, 0)
            recorder.append(0, {"loss": 5.0})
        assert load(to)["loss"].values.tolist() == [5.0]
        assert "It was continued from its beginning;" in str(check(to))
        assert list(load(to)) == ["loss"]


def test_an_interrupt_writes_over_no_record_that_a_line_names(tmp_path, origin, monkeypatch):
    with Recorder(tmp_path / "run", clock="step", origin=origin) as recorder:
        write = type(recorder._place)._write

        def interrupted(self, entry):
            write(self, entry)
            raise KeyboardInterrupt

        for step in range(3):
            monkeypatch.setattr(type(recorder._place), "_write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                recorder.append(2 * step, {"loss": 1.0}, points={"p": losses(2 * step)})
            monkeypatch.undo()
            recorder.append(2 * step + 1, {"loss": 1.0}, points={"p": losses(2 * step + 1)})
    assert check(tmp_path / "run").ok
    points = load(tmp_path / "run").points["p"]
    assert points.time.values.tolist() == [0, 1, 2, 3, 4, 5]
    for step in range(6):
        assert (points.sel(time=step).values == losses(step).values).all()


def test_a_full_disk_costs_no_look(tmp_path, origin, child):
    resource = pytest.importorskip("resource")
    path = tmp_path / "run"

    def big(step):
        return xr.DataArray(np.full(500, step, "float32"), dims="point")

    def fill(tell):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with Recorder(path, clock="step", origin=origin) as recorder:
            resource.setrlimit(resource.RLIMIT_FSIZE, (9001, resource.RLIM_INFINITY))
            for step in range(10):
                try:
                    recorder.append(step, {"x": 1.0}, points={"p": big(step)})
                except OSError as error:
                    tell([step, str(error)])
                    break
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            recorder.append(step, {"x": 1.0}, points={"p": big(step)})

    code, said = child(fill).wait()
    assert (code, said[0][0]) == (0, 4), said
    assert "File too large. The 4 evaluations already recorded are safe." in said[0][1]
    assert check(path).ok
    assert load(path).points["p"][:, 0].values.tolist() == [0, 1, 2, 3, 4]


def test_no_descriptor_is_left_open(tmp_path, origin):
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs /proc")
    before = len(os.listdir("/proc/self/fd"))
    record(tmp_path / "run", range(6), origin).points["loss"]
    assert len(os.listdir("/proc/self/fd")) == before
