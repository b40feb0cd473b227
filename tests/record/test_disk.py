"""Beginning, refusing and resuming run directories."""

import errno
import gc
import json
import os
import signal
import socket
import threading
import time
import zlib

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Recorder, Trajectory, check, load


def listing(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def crc(path):
    """The checksum of all before the comma in front of it."""
    return f"{zlib.crc32(path.read_bytes().rpartition(b',')[0]):08x}"


def test_the_directory_is_as_documented(tmp_path, make_run, origin):
    path = make_run(tmp_path / "deep" / "run", evaluations=3)
    assert sorted(os.listdir(path)) == ["arrays", "curves.jsonl", "end.json", "run.json"]
    assert json.loads((path / "run.json").read_text()) == {
        "format": 3,
        "holds": "trajectory",
        "clock": "step",
        "origin": origin.to_json(),
        "crc": crc(path / "run.json"),
    }
    text = (path / "curves.jsonl").read_bytes().splitlines()
    first, second, third = map(json.loads, text)
    assert (first["kind"], first["time"]) == ("evaluation", 0)
    assert list(first["layouts"]) == ["loss", "norm", "kernel"]
    assert first["layouts"]["loss"] == {
        "dims": ["group"],
        "shape": [2],
        "coords": {"group": ["+", "-"]},
        "dtype": "float64",
        "attrs": {"units": "nats"},
    }
    assert second.pop("crc") == f"{zlib.crc32(text[1].rpartition(b',')[0]):08x}"
    assert second == {"kind": "evaluation", "time": 10, "values": {"loss": [1 / 11, 0.5], "norm": 10 / 3}}
    file = third["values"]["kernel"]["array"]
    assert np.load(path / "arrays" / file, allow_pickle=False)[3] == 23
    assert len(os.listdir(path / "arrays")) == 2
    assert json.loads((path / "end.json").read_text()) == {
        "state": "finished",
        "reason": None,
        "diverged": None,
        "bytes": (path / "curves.jsonl").stat().st_size,
        "crc": crc(path / "end.json"),
    }


def test_it_can_be_read_while_it_is_written(tmp_path, origin):
    path = tmp_path / "run"
    with Recorder(path, clock="step", origin=origin) as recorder:
        assert load(path) == recorder.trajectory()
        for step in range(4):
            recorder.append(step, {"loss": float(step)})
            assert load(path)["loss"].values.tolist() == list(range(step + 1))
            assert check(path).state == "running"
        assert json.loads((path / "lock").read_text())["pid"] == os.getpid()


def test_an_empty_directory_will_do(tmp_path, origin):
    with Recorder(tmp_path, clock="step", origin=origin) as recorder:
        recorder.append(0, {"loss": 1.0})
    assert check(tmp_path).ok


def test_a_run_is_never_overwritten(tmp_path, make_run, origin):
    path = make_run(tmp_path / "run")
    before = listing(path)
    with pytest.raises(FileExistsError) as caught:
        Recorder(path, clock="step", origin=origin)
    assert str(caught.value) == (
        f"{path} already holds a run, which is never overwritten. "
        "Choose a new name, or continue the run with `resume=True`."
    )
    assert listing(path) == before


@pytest.mark.parametrize("resume", [False, True])
def test_foreign_directories_are_refused_and_left_alone(tmp_path, origin, resume):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(
        FileExistsError, match=r"is not empty and holds no run: there is 'thesis.tex'\. Choose a new name"
    ):
        Recorder(tmp_path, clock="step", origin=origin, resume=resume)
    assert listing(tmp_path) == {"thesis.tex": b"precious"}


@pytest.mark.parametrize("name", ["lock", "curves.jsonl"])
def test_a_foreign_file_under_one_of_our_names_is_foreign(tmp_path, origin, name):
    (tmp_path / name).write_text("precious")
    with pytest.raises(FileExistsError, match=f"there is '{name}'"):
        Recorder(tmp_path, clock="step", origin=origin)
    assert listing(tmp_path) == {name: b"precious"}


def test_a_file_is_no_directory(tmp_path, origin):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(FileExistsError, match=r"`to` should name a directory\. Found a file at"):
        Recorder(tmp_path / "file", clock="step", origin=origin)
    with pytest.raises(OSError, match=r"A run cannot be recorded in .*: Not a directory\.") as caught:
        Recorder(tmp_path / "file" / "run", clock="step", origin=origin)
    assert caught.value.errno == errno.ENOTDIR


def test_what_a_writer_left_that_died_before_its_run_began_is_no_obstacle(tmp_path, origin):
    (tmp_path / "curves.jsonl").touch()
    (tmp_path / "run.json.aside").write_text('{"form')
    lock = {"pid": 2**22 + 1, "host": socket.gethostname(), "started": None, "token": "x"}
    (tmp_path / "lock").write_text(json.dumps(lock))
    with Recorder(tmp_path, clock="step", origin=origin) as recorder:
        recorder.append(0, {"loss": 1.0})
    assert check(tmp_path).ok


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_writer_is_told_who_writes(tmp_path, origin, child, resume):
    path = tmp_path / "run"

    def write(tell):
        with Recorder(path, clock="step", origin=origin) as recorder:
            recorder.append(0, {"loss": 1.0})
            tell("recording")
            time.sleep(60)

    one = child(write)
    one.hear()
    with pytest.raises(BlockingIOError, match=f"is being recorded by process {one.pid}"):
        Recorder(path, clock="step", origin=origin, resume=resume)
    assert check(path).state == "running"
    one.kill()
    one.wait()
    assert check(path).state == "died"
    with Recorder(path, clock="step", origin=origin, resume=True) as recorder:
        recorder.append(1, {"loss": 2.0})
    assert load(path)["loss"].values.tolist() == [1.0, 2.0]


def test_of_racing_recorders_exactly_one_begins(tmp_path, origin, child):
    for attempt in range(5):
        path = tmp_path / f"run{attempt}"
        read, write = os.pipe()

        def race(tell, path=path, read=read, write=write):
            os.close(write)
            os.read(read, 1)
            try:
                with Recorder(path, clock="step", origin=origin) as recorder:
                    recorder.append(0, {"winner": os.getpid()})
                    tell("won")
            except (BlockingIOError, FileExistsError) as error:
                tell(type(error).__name__)

        racers = [child(race) for _ in range(5)]
        os.close(write)
        said = [racer.wait()[1] for racer in racers]
        os.close(read)
        assert said.count(["won"]) == 1, said
        winner = racers[said.index(["won"])]
        assert load(path)["winner"].values.tolist() == [winner.pid]
        assert check(path).state == "finished"


def test_of_racing_threads_exactly_one_resumes(tmp_path, make_run, origin):
    path = make_run(tmp_path / "run")
    barrier, won, lost = threading.Barrier(5), [], []

    def race():
        barrier.wait()
        try:
            won.append(Recorder(path, clock="step", origin=origin, resume=True))
        except BlockingIOError as error:
            lost.append(str(error))

    threads = [threading.Thread(target=race) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 4)
    assert all("this very process" in sentence for sentence in lost)
    won[0].close()


def test_a_dropped_recorder_gives_its_lock_back(tmp_path, origin):
    recorder = Recorder(tmp_path / "run", clock="step", origin=origin)
    recorder.append(0, {"loss": 1.0})
    del recorder
    gc.collect()
    assert check(tmp_path / "run").state == "died"
    with Recorder(tmp_path / "run", clock="step", origin=origin, resume=True) as recorder:
        recorder.append(1, {"loss": 2.0})
    assert check(tmp_path / "run").evaluations == 2


@pytest.mark.parametrize("large", [False, True], ids=["lines", "arrays"])
def test_a_full_disk_costs_no_look_and_is_explained(tmp_path, origin, child, large):
    resource = pytest.importorskip("resource")
    path = tmp_path / "run"

    def reading(step):
        return xr.DataArray(np.full(2000 if large else 5, step / 3), dims="k")

    def fill(tell):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        room = 16064 if large else 4001
        with Recorder(path, clock="step", origin=origin) as recorder:
            recorder.append(0, {"small": 0.5})
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            for step in range(1, 1000):
                try:
                    recorder.append(step, {"x": reading(step)})
                except OSError as error:
                    tell([step, str(error), error.errno, recorder.evaluations, recorder.last_time])
                    break
            tell(recorder.trajectory()["small"].values.tolist())
            tell((path / "curves.jsonl").read_bytes()[-1:] == b"\n")
            with pytest.raises(OSError, match=r"already recorded (is|are) safe"):
                recorder.append(step, {"x": reading(step)})
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            recorder.append(step, {"x": reading(step)})
            recorder.append(step + 1, {"x": reading(step + 1)})

    code, said = child(fill).wait()
    assert code == 0, said
    (step, sentence, number, evaluations, last), small, whole = said
    assert number == errno.EFBIG
    assert sentence.startswith(
        f"The evaluation at time {step} could not be written to {path}: File too large. The {evaluations} evaluation"
    )
    assert sentence.endswith("already recorded is safe." if large else "already recorded are safe.")
    assert (evaluations, last, small, whole) == (step, step - 1, [0.5], True)
    run = load(path)
    assert run["x"].time.values.tolist() == list(range(1, step + 2))
    assert (run["x"].values == run["x"].time.values[:, None] / 3).all()
    assert check(path).ok
    assert not list(path.rglob("*.aside"))


def test_a_disk_too_full_for_the_end_does_not_hide_the_error(tmp_path, origin, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    recorder = Recorder(tmp_path / "run", clock="step", origin=origin)
    recorder.append(0, {"loss": 1.0})
    monkeypatch.setattr("tiltmeter.record.directory.disk.write_end", full)
    with pytest.raises(ZeroDivisionError) as caught, recorder:
        1 / 0  # noqa: B018
    assert caught.value.__notes__ == [
        f"How the run ended could not be written to {tmp_path / 'run'}: No space left on device. "
        "The 1 evaluation already recorded is safe."
    ]
    assert check(tmp_path / "run").state == "died"
    with (
        pytest.raises(OSError, match="How the run ended could not be written"),
        Recorder(tmp_path / "other", clock="step", origin=origin),
    ):
        pass


def test_a_failed_beginning_leaves_no_lock(tmp_path, origin, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
    with monkeypatch.context() as patch:
        patch.setattr("tiltmeter.record.directory.disk.write_header", full)
        with pytest.raises(OSError, match=r"A run cannot be recorded in .*: No space left on device\."):
            Recorder(tmp_path / "run", clock="step", origin=origin)
    assert not (tmp_path / "run" / "lock").exists()
    assert before is None or len(os.listdir("/proc/self/fd")) == before
    with Recorder(tmp_path / "run", clock="step", origin=origin):
        pass
    assert load(tmp_path / "run") == Trajectory({}, "step", origin)


def test_no_descriptor_is_left_open(tmp_path, make_run):
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs /proc")
    before = len(os.listdir("/proc/self/fd"))
    load(make_run(tmp_path / "run"))
    assert len(os.listdir("/proc/self/fd")) == before
