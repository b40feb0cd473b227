"""Folders of strangers: pipes, links, names that command a terminal, crafted descriptions, writers of other containers."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.record import Origin, Recorder
from tiltmeter.record.directory.atomic_files import sealed_file, sealed_line, write_atomically
from tiltmeter.record.directory.lock import Lock, live_writer
from tiltmeter.record.directory.process import Process

pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def record(path, **options):
    return Recorder(path, clock="step", origin=Origin("test"), **options)


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run"
    with record(path) as recorder:
        for step in range(3):
            losses = xr.DataArray(np.arange(4.0) + step, dims="point", coords={"group": ("point", list("aabb"))})
            large = xr.DataArray(np.arange(2000.0), dims="k")
            recorder.append(step, {"loss": 1.0 / (1 + step), "large": large}, {"loss": losses})
    return path


def in_time(work, seconds=20):
    """What the work returns or raises; it must not wait for good."""
    answer = []

    def do():
        try:
            answer.append(work())
        except Exception as error:
            answer.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(seconds)
    assert answer, "it waits for good"
    return answer[0]


FILES = ["run.json", "curves.jsonl", "end.json", "points/0.bin", "checkpoint.pt"]


@pipes
@pytest.mark.parametrize("name", [*FILES, "lock", "arrays"])
def test_a_pipe_blocks_nobody(run, name):
    target = next((run / "arrays").iterdir()) if name == "arrays" else run / name
    target.unlink(missing_ok=True)
    os.mkfifo(target)
    found = in_time(lambda: tm.record.check(run))
    assert name == "lock" or not found.ok
    answer = in_time(lambda: tm.load(run).points["loss"] if "points" in name else tm.load(run))
    assert isinstance(answer, tm.Trajectory) if name in ("lock", "checkpoint.pt") else isinstance(answer, ValueError)


@pytest.mark.parametrize("name", [*FILES[:4], "lock", "points", "arrays"])
def test_resuming_writes_through_no_link(run, tmp_path, name):
    target = tmp_path / "precious"
    (run / name).rename(target) if (run / name).exists() else target.write_bytes(b"")
    before = target.read_bytes() if target.is_file() else sorted(target.iterdir())
    (run / name).symlink_to(target)
    with pytest.raises(ValueError, match="is a link, and continuing the run would write to where it points"):
        record(run, resume=True)
    assert (target.read_bytes() if target.is_file() else sorted(target.iterdir())) == before


def test_a_folder_whose_name_commands_the_terminal(tmp_path):
    path = tmp_path / "a\x1b[2Jb"
    with record(path) as recorder:
        recorder.append(0, {"loss": 1.0})
    assert "\x1b" not in str(tm.record.check(path))
    assert "\x1b" not in str(tm.record.check(tmp_path / "no\x1b[2Jwhere"))


CRAFTED = [
    {"k": {"dims": ["k"]}},
    {"k": {"labels": [1, 2]}},
    {"k": {"dims": "k", "labels": [1, 2]}},
    {"k": {"dims": ["j"], "labels": [1, 2]}},
    {"k": {"dims": ["j", "j"], "labels": [1]}},
    {"k": 3},
    {"k": "ab"},
    {"k": [{"float": "one"}, 2]},
    {"k": [[[]], 2], "j": None},
]


@pytest.mark.parametrize("coords", CRAFTED)
@pytest.mark.parametrize("points", [False, True])
def test_check_reports_crafted_labels_and_never_raises(run, coords, points):
    layout = {"dims": ["k"], "shape": [2], "coords": coords, "dtype": "float64", "attrs": {}}
    entry = {"kind": "evaluation", "time": 9, "layouts": {"new": layout}, "values": {"new": [1, 2]}}
    if points:
        told = {"new": {"file": "7.bin", "layout": layout}}
        kept = {"new": {"record": 0, "crc": "00000000"}}
        entry = {"kind": "evaluation", "time": 9, "values": {}, "point_layouts": told, "points": kept}
    with open(run / "curves.jsonl", "ab") as file:
        file.write(sealed_line(json.dumps(entry, separators=(",", ":")).encode()))
    assert not tm.record.check(run).ok
    with pytest.raises(ValueError, match="line 4"):
        tm.load(run)


@pytest.mark.parametrize("said", [{"origin": []}, {"origin": {"source": ["a", "b"]}}, {"clock": ["t"]}, {"holds": {}}])
def test_a_crafted_header_is_one_sentence(run, said):
    known = json.loads((run / "run.json").read_bytes())
    known.pop("crc")
    (run / "run.json").write_bytes(sealed_file(json.dumps({**known, **said}, indent=1).encode()))
    assert not tm.record.check(run).ok
    with pytest.raises(ValueError, match=r"is not a run\.json"):
        tm.load(run)


@pytest.mark.parametrize("groups", [["a", "a"], [1.0, 1], [True, 1], [("a", 1), ("a", True)]])
@pytest.mark.parametrize("to", ["memory", "disk"])
def test_groups_of_one_name_are_refused_when_they_are_recorded(tmp_path, groups, to):
    labels = np.empty(2, dtype=object)
    labels[:] = groups
    loss = xr.DataArray([1.0, 2.0], dims="group", coords={"group": labels})
    with record(None if to == "memory" else tmp_path / "run") as recorder:
        with pytest.raises(ValueError, match=r"The groups of 'loss' should differ. Found .* twice."):
            recorder.append(0, {"loss": loss})
        recorder.append(0, {"loss": 1.0})


def test_a_writer_in_another_container_is_not_taken_for_dead(tmp_path):
    """Its number means nothing here, although the host has the same name."""
    this = Process.this()
    other = Process(2**22 - 1, this.host, "elsewhere", "pid:[1]")
    assert other.elsewhere
    assert other.alive()
    said = {**other.to_json(), "token": "x", "patience": 3600.0}
    (tmp_path / "lock").write_text(json.dumps(said).ljust(512))
    assert live_writer(tmp_path / "lock") == other
    with pytest.raises(BlockingIOError, match="is being recorded by process 4194303 on"):
        Lock(tmp_path / "lock")
    gone = Process(2**22 - 1, this.host, None, this.namespace)
    assert not gone.alive()


def test_many_writers_of_one_file_never_collide(tmp_path):
    errors = []

    def write(number):
        try:
            for _ in range(50):
                write_atomically(tmp_path / "study.json", b'{"number": %d}' % number)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


def test_what_a_killed_writer_left_aside_goes_when_the_run_is_continued(run):
    (run / "end.json").unlink()
    ended = subprocess.run(
        [sys.executable, "-c", "from tiltmeter.record.directory.process import Process; print(Process.this().short)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    alive = f"end.json.{Process.this().short}.0123456789ab.aside"
    for name in (f"end.json.{ended}.0123456789ab.aside", f"arrays/0.npy.{ended}.0123456789ab.aside", alive):
        (run / name).write_bytes(b"half")
    record(run, resume=True).close()
    assert [path.name for path in run.rglob("*.aside")] == [alive]


def test_a_save_removes_what_a_killed_one_left(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Process, "short_has_ended", lambda short: short.startswith("0000"))
    left, alive = (tmp_path / f".saved.{writer}-1-2.0123456789ab.aside" for writer in ("00000000", "11111111"))
    for folder in (left, alive):
        (folder / "arrays").mkdir(parents=True)
    tm.save(tm.load(run), tmp_path / "saved")
    assert (left.exists(), alive.exists()) == (False, True)
