import dataclasses
import json
import os

import pytest

from tiltmeter.record import Recorder, check
from tiltmeter.record.directory import reader


def test_a_good_run_in_one_sentence(tmp_path, make_run):
    path = make_run(tmp_path / "run")
    report = check(path)
    assert (report.ok, report.state, report.evaluations) == (True, "finished", 6)
    assert report.curves == ("loss", "norm", "kernel")
    assert (report.problems, report.reason) == ((), None)
    assert str(report) == f"{path}: finished, 6 evaluations of loss, norm, kernel. No damage found."
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.evaluations = 7


def test_states_while_running_and_after(tmp_path, origin, child):
    path = tmp_path / "run"

    def die(tell):
        recorder = Recorder(path, clock="step", origin=origin)
        recorder.append(0, {"loss": 1.0})
        os._exit(0)

    child(die).wait()
    assert str(check(path)) == f"{path}: died, 1 evaluation of loss. No damage found."
    recorder = Recorder(path, clock="step", origin=origin, resume=True)
    assert str(check(path)).startswith(f"{path}: running, 1 evaluation")
    with pytest.raises(ZeroDivisionError), recorder:
        recorder.append(1, {"loss": 1 / 0})
    assert (
        str(check(path))
        == f"{path}: failed (ZeroDivisionError: division by zero), 1 evaluation of loss. No damage found."
    )


def test_a_run_that_ends_during_the_check_did_not_die(tmp_path, origin, monkeypatch):
    recorder = Recorder(tmp_path / "run", clock="step", origin=origin)
    monkeypatch.setattr(reader, "live_writer", lambda _: recorder.close())
    assert check(tmp_path / "run").state == "finished"


def test_a_run_cut_after_its_end_is_noticed(tmp_path, make_run):
    path = make_run(tmp_path / "run")
    curves = path / "curves.jsonl"
    good = curves.read_bytes()
    curves.write_bytes(good[:-10])
    report = check(path)
    assert (report.evaluations, report.problems) == (
        5,
        (f"curves.jsonl has {len(good) - 10} bytes where end.json says {len(good)}",),
    )


def test_all_problems_are_listed_but_not_too_many(tmp_path, make_run):
    path = make_run(tmp_path / "run", evaluations=60)
    curves = path / "curves.jsonl"
    lines = curves.read_bytes().splitlines(keepends=True)
    lines[3], lines[7] = b"[]\n", b"{}\n"
    curves.write_bytes(b"".join(lines))
    report = check(path)
    assert [problem.split(":")[0] for problem in report.problems] == [
        "curves.jsonl, line 4",
        "curves.jsonl, line 8",
        f"curves.jsonl has {curves.stat().st_size} bytes where end.json says {json.loads((path / 'end.json').read_text())['bytes']}",
    ]
    assert report.evaluations == 58
    curves.write_bytes(b"[]\n" + b"".join(lines[1:]))
    report = check(path)
    assert len(report.problems) == 21
    assert report.problems[-1].startswith("and ")
    assert "Damaged: curves.jsonl, line 1: its checksum is missing; " in str(report)


def test_nothing_at_all(tmp_path):
    report = check(tmp_path / "nowhere")
    assert (report.ok, report.state, report.evaluations, report.curves) == (False, "unknown", 0, ())
    assert "Found nothing at" in str(report)


def test_a_curve_file_that_cannot_be_read(tmp_path, make_run):
    path = make_run(tmp_path / "run")
    (path / "curves.jsonl").unlink()
    (path / "curves.jsonl").mkdir()
    report = check(path)
    assert (report.ok, report.state) == (False, "finished")
