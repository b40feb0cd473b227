"""What was acknowledged can be found again, and one writer at a time writes it."""

import json
import os
import shutil
import socket
import threading

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Recorder, check, load
from tiltmeter.record.directory.lock import Lock, live_writer

POINTS = xr.DataArray(np.zeros(5, "float32"), dims="point")
BIG = xr.DataArray(np.zeros(2000), dims="k")


@pytest.mark.parametrize("more", [{"x": 1.0}, {"x": BIG}, "points"], ids=["line", "array", "points"])
def test_a_deleted_directory_takes_no_more_looks(tmp_path, origin, more):
    path = tmp_path / "run"
    recorder = Recorder(path, clock="step", origin=origin)
    points = {"p": POINTS} if more == "points" else {}
    values = {} if more == "points" else more
    recorder.append(0, values, points=points)
    shutil.rmtree(path)
    for _ in range(2):
        with pytest.raises(FileNotFoundError) as caught:
            recorder.append(1, values, points=points)
        assert str(caught.value) == (
            f"The evaluation at time 1 could not be written to {path}: its files were deleted while it was recorded. "
            "The evaluations recorded there before are lost."
        )
    with pytest.raises(FileNotFoundError, match="How the run ended could not be written"):
        recorder.close()
    assert not path.exists()


def test_deleted_between_the_line_and_its_acknowledgement(tmp_path, origin, monkeypatch):
    path = tmp_path / "run"
    recorder = Recorder(path, clock="step", origin=origin)
    recorder.append(0, {"x": 1.0})
    write = os.write

    def delete(*arguments):
        done = write(*arguments)
        shutil.rmtree(path)
        return done

    monkeypatch.setattr(os, "write", delete)
    with pytest.raises(FileNotFoundError, match="its files were deleted while it was recorded"):
        recorder.append(1, {"x": 1.0})


def test_deleted_points_are_noticed(tmp_path, origin):
    path = tmp_path / "run"
    recorder = Recorder(path, clock="step", origin=origin)
    recorder.append(0, {}, points={"p": POINTS})
    shutil.rmtree(path / "points")
    with pytest.raises(FileNotFoundError, match="its files were deleted"):
        recorder.append(1, {}, points={"p": POINTS})


def test_a_moved_directory_takes_no_more_looks_and_keeps_its_own(tmp_path, origin):
    path = tmp_path / "run"
    recorder = Recorder(path, clock="step", origin=origin)
    recorder.append(0, {"x": BIG})
    path.rename(tmp_path / "moved")
    with pytest.raises(
        FileNotFoundError, match=r"it was moved while .* The evaluations recorded before moved with it\."
    ):
        recorder.append(1, {"x": BIG})
    assert load(tmp_path / "moved")["x"].sizes["time"] == 1
    (tmp_path / "moved").rename(path)
    recorder.append(1, {"x": BIG})
    recorder.close()
    assert check(path).ok


def test_threads_take_turns(tmp_path, origin):
    """Whatever order they come in, what was acknowledged is there and the run is in order."""
    recorder = Recorder(tmp_path / "run", clock="step", origin=origin)
    done, refused, start = [], [], threading.Barrier(6)

    def write(k):
        start.wait()
        for step in range(k, 600, 6):
            try:
                recorder.append(step, {"x": step / 3, f"own{k}": 1.0}, points={"p": POINTS + np.float32(step)})
                done.append(step)
            except ValueError as error:
                assert "`time` should increase" in str(error)  # noqa: PT017
                refused.append(step)
            recorder.trajectory()

    threads = [threading.Thread(target=write, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    assert len(done) + len(refused) == 600
    run = load(tmp_path / "run")
    assert run["x"].time.values.tolist() == sorted(done)
    assert (run["x"].values == np.sort(done) / 3).all()
    assert (run.points["p"].values == np.sort(done)[:, None]).all()
    assert check(tmp_path / "run").ok


def test_a_signal_handler_in_the_middle_of_a_look_is_told(tmp_path, origin, monkeypatch):
    recorder = Recorder(tmp_path / "run", clock="step", origin=origin)
    write, seen = os.write, []

    def handler(*arguments):
        for call in (recorder.close, lambda: recorder.append(5, {"x": 1.0})):
            with pytest.raises(RuntimeError, match="a signal handler cannot use it"):
                call()
        seen.append(1)
        return write(*arguments)

    monkeypatch.setattr(os, "write", handler)
    recorder.append(0, {"x": 1.0})
    monkeypatch.undo()
    recorder.append(1, {"x": 1.0})
    recorder.close()
    assert seen
    assert check(tmp_path / "run").evaluations == 2


def elsewhere(path):
    """The lock of a writer on another host."""
    path.write_text(json.dumps({"pid": 5, "host": "elsewhere", "started": None, "token": "x"}))


def test_the_lock_of_another_host_is_never_taken_over(tmp_path):
    path = tmp_path / "lock"
    elsewhere(path)
    os.utime(path, (0, 0))
    assert live_writer(path).pid == 5
    with pytest.raises(BlockingIOError) as caught:
        Lock(path)
    assert str(caught.value) == (
        f"{tmp_path} is being recorded by process 5 on elsewhere. One run has one writer: close that recorder or "
        f"choose another directory. If that process is gone for certain, delete {path}."
    )


def test_the_lock_of_a_copied_run_binds_nobody(tmp_path, origin):
    """A copy of a live run is a run that died; a run that was moved is the same run."""
    with Recorder(tmp_path / "run", clock="step", origin=origin) as recorder:
        recorder.append(0, {"x": 1.0})
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        assert (check(tmp_path / "run").state, check(tmp_path / "copy").state) == ("running", "died")
        with Recorder(tmp_path / "copy", clock="step", origin=origin, resume=True) as other:
            other.append(1, {"x": 2.0})
        (tmp_path / "run").rename(tmp_path / "moved")
        assert check(tmp_path / "moved").state == "running"
        with pytest.raises(BlockingIOError, match="by this very process"):
            Recorder(tmp_path / "moved", clock="step", origin=origin, resume=True)
        (tmp_path / "moved").rename(tmp_path / "run")
    assert load(tmp_path / "copy")["x"].values.tolist() == [1, 2]


def test_whoever_lost_the_lock_writes_no_more(tmp_path, origin):
    path = tmp_path / "run"
    recorder = Recorder(path, clock="step", origin=origin)
    recorder.append(0, {"x": 1.0})
    elsewhere(path / "lock")
    with pytest.raises(BlockingIOError) as caught:
        recorder.append(1, {"x": 1.0})
    assert str(caught.value) == (
        f"The evaluation at time 1 could not be written to {path}: process 5 on elsewhere has taken the run over."
    )
    assert load(path)["x"].sizes["time"] == 1


def test_a_lock_deleted_by_hand_is_taken_again_unless_someone_wrote(tmp_path, origin):
    path = tmp_path / "run"
    first = Recorder(path, clock="step", origin=origin)
    first.append(0, {"x": 1.0})
    (path / "lock").unlink()
    first.append(1, {"x": 1.0})
    assert json.loads((path / "lock").read_text())["host"] == socket.gethostname()
    (path / "lock").unlink()
    with Recorder(path, clock="step", origin=origin, resume=True) as second:
        with pytest.raises(BlockingIOError, match="has taken the run over"):
            first.append(2, {"x": 2.0})
        second.append(2, {"x": 3.0})
    with pytest.raises(BlockingIOError, match="another process has taken the run over"):
        first.append(3, {"x": 2.0})
    assert load(path)["x"].values.tolist() == [1, 1, 3]
    assert check(path).ok
