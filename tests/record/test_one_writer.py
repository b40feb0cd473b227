"""What was acknowledged can be found again, and one writer at a time writes it."""

import json
import os
import shutil
import socket
import threading
import time

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Recorder, check, load
from tiltmeter.record.directory import disk
from tiltmeter.record.directory import lock as locks
from tiltmeter.record.directory.atomic_files import sealed_line
from tiltmeter.record.directory.lock import Lock, live_writer
from tiltmeter.record.directory.store import Following

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


def elsewhere(path, patience=3600.0, silent=0.0):
    said = {"pid": 5, "host": "elsewhere", "started": None, "token": "x"}
    path.write_text(json.dumps({**said, "patience": patience} if patience else said))
    now = path.stat().st_mtime - silent
    os.utime(path, (now, now))


@pytest.mark.parametrize(
    ("patience", "silent", "taken"),
    [(3600.0, 0, False), (3600.0, 3000, False), (3600.0, 4000, True), (1e6, 4000, False), (None, 1e9, False)],
)
def test_a_silent_writer_on_another_host_loses_its_lock(tmp_path, patience, silent, taken):
    path = tmp_path / "lock"
    elsewhere(path, patience, silent)
    assert (live_writer(path) is None) == taken
    if taken:
        Lock(path).release()
    else:
        with pytest.raises(BlockingIOError, match="by process 5 on elsewhere"):
            Lock(path)


def test_a_writer_shows_that_it_lives_at_most_once_a_minute(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(locks.time, "monotonic", lambda: now[0])
    lock = Lock(tmp_path / "lock")
    os.utime(tmp_path / "lock", (5, 5))
    lock.beat()
    assert (tmp_path / "lock").stat().st_mtime == 5
    now[0] += 61
    lock.beat()
    assert (tmp_path / "lock").stat().st_mtime > 5
    assert json.loads((tmp_path / "lock").read_text())["patience"] == 3600
    now[0] += 1000
    lock.beat()
    assert json.loads((tmp_path / "lock").read_text())["patience"] == 10_000
    assert lock.held()
    lock.release()
    assert not (tmp_path / "lock").exists()


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


def taken_over(path, origin):
    """The writer has been silent for so long that another one takes its place."""
    lock = path / "lock"
    lock.write_text(json.dumps({**json.loads(lock.read_text()), "host": "elsewhere"}))
    os.utime(lock, (0, 0))
    return Recorder(path, clock="step", origin=origin, resume=True)


LOOKS = {
    "line": ({"x": 1.0}, {}),
    "array": ({"x": BIG}, {}),
    "points": ({"x": 1.0}, {"p": POINTS}),
    "new curve": ({"x": 1.0, "new": BIG}, {}),
    "new points": ({"x": 1.0}, {"p": POINTS, "q": POINTS}),
}


@pytest.mark.parametrize("again", [False, True], ids=["first", "continued"])
@pytest.mark.parametrize("at_once", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("look", [*LOOKS, "rewind"])
def test_what_a_writer_writes_that_lost_the_run_does_not_count(tmp_path, origin, look, at_once, again):
    """It was stopped between asking for the lock and writing, and writes before or behind the first line of the next
    writer."""
    path = tmp_path / "run"
    values, points = LOOKS.get(look, ({"x": 1.0}, {}))
    known = (
        {name: value for name, value in values.items() if name == "x"},
        {n: p for n, p in points.items() if n == "p"},
    )
    first = Recorder(path, clock="step", origin=origin)
    for step in range(3):
        first.append(step, known[0], points=known[1])
    if again:
        first.close()
        first = Recorder(path, clock="step", origin=origin, resume=True)
    own, followers = first._place._own, []

    def stopped():
        start = own()
        followers.append(taken_over(path, origin))
        if at_once:
            goes_on(3)
        return start

    def goes_on(step):
        followers[0].append(
            step, {k: 2 * v for k, v in values.items()}, points={name: some + 2 for name, some in points.items()}
        )

    first._place._own = stopped
    following = Following(path)
    following.update()
    if look == "rewind":
        first.rewind(1)
    else:
        first.append(3, values, points=points)
    following.update()
    for step in (4, 5) if at_once else (3, 4, 5):
        goes_on(step)
    followers[0].close()
    run = load(path)
    means = run["x"].mean([dim for dim in run["x"].dims if dim != "time"]).values.tolist()
    assert means == [float(np.mean(known[0]["x"]))] * 3 + [2 * float(np.mean(known[0]["x"]))] * 3
    for name in points:
        assert run.points[name].values.mean(1).tolist() == [0.0] * 3 * (name == "p") + [2.0] * 3
    assert check(path).ok
    following.update()
    assert following.trajectory["x"].identical(run["x"])
    with Recorder(path, clock="step", origin=origin, resume=True) as third:
        assert third.evaluations == 6


def test_a_writer_that_lost_the_run_while_it_opened_it_cuts_nothing_off(tmp_path, origin, monkeypatch):
    path = tmp_path / "run"
    with Recorder(path, clock="step", origin=origin) as recorder:
        recorder.append(0, {"x": 1.0})
    with (path / "curves.jsonl").open("ab") as file:
        file.write(b'{"kind":"eval')
    read = disk.read

    def stopped(*arguments):
        contents = read(*arguments)
        monkeypatch.setattr(disk, "read", read)
        with taken_over(path, origin) as follower:
            follower.append(1, {"x": 2.0})
        elsewhere(path / "lock")
        return contents

    monkeypatch.setattr(disk, "read", stopped)
    with pytest.raises(BlockingIOError, match="is being recorded by process 5 on elsewhere"):
        Recorder(path, clock="step", origin=origin, resume=True)
    assert load(path)["x"].values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("member", [{"writer": -1}, {"writer": "1"}, {"writer": 1, "after": 9}, {"writer": 10**9}])
def test_a_number_that_no_writer_has_is_damage(tmp_path, origin, member):
    path = tmp_path / "run"
    with Recorder(path, clock="step", origin=origin) as recorder:
        recorder.append(0, {"x": 1.0})
    line = {"kind": "evaluation", "time": 1, "values": {"x": 1.0}, **member}
    with (path / "curves.jsonl").open("ab") as file:
        file.write(sealed_line(json.dumps(line).encode()))
    with pytest.raises(ValueError, match=r"line 2: .* is not the number of a writer, or of the lines that it went on"):
        load(path)


def test_many_writers_that_overrule_each_other_are_read_at_once(tmp_path, origin):
    path = tmp_path / "run"
    with Recorder(path, clock="step", origin=origin) as recorder:
        recorder.append(0, {"x": 1.0})
    with (path / "curves.jsonl").open("ab") as file:
        for number in range(1, 10_000):
            line = {"kind": "evaluation", "time": number, "values": {"x": 1.0}, "writer": number, "after": number // 2}
            file.write(sealed_line(json.dumps(line).encode()))
    begun = time.process_time()
    assert load(path)["x"].sizes["time"] < 30
    assert time.process_time() - begun < 5
    with pytest.raises(ValueError, match=r"A run can be continued 9,999 times"):
        Recorder(path, clock="step", origin=origin, resume=True)


def test_a_late_write_that_fails_cuts_off_no_line_of_another_writer(tmp_path, origin, monkeypatch):
    path = tmp_path / "run"
    late = Recorder(path, clock="step", origin=origin)
    late.append(0, {"x": 1.0})
    own = late._place._own

    def stopped():
        start = own()
        with taken_over(path, origin) as follower:
            follower.append(1, {"x": 2.0})

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        return start

    late._place._own = stopped
    with pytest.raises(OSError, match="No space left"):
        late.append(1, {"x": 9.0})
    monkeypatch.undo()
    assert load(path)["x"].values.tolist() == [1.0, 2.0]
