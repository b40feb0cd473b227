"""One reader for all: a finished run is whole to its last byte, of any other the longest part counts that verifies."""

import os
import shutil

import numpy as np
import pytest
import xarray as xr

from tiltmeter.cli import main
from tiltmeter.record import Recorder, check, load
from tiltmeter.record.directory.reader import RunReader, read_run

EVALUATIONS = 12


def reading(step):
    values = {"norm": step / 3, "kernel": xr.DataArray(np.full(1500, step / 7), dims="k")}
    return values, {"loss": xr.DataArray(np.full(40, step, "float32"), dims="point")}


def record(path, origin, end=True):
    recorder = Recorder(path, clock="step", origin=origin)
    for step in range(EVALUATIONS):
        values, points = reading(step)
        recorder.append(step, values, points)
    if end:
        recorder.close()
    return recorder


def lines_of(path):
    return (path / "curves.jsonl").read_bytes().splitlines(keepends=True)


def lose_half(path):
    (path / "curves.jsonl").write_bytes(b"".join(lines_of(path)[: EVALUATIONS // 2]))


def zero_the_tail(path):
    whole = (path / "curves.jsonl").read_bytes()
    (path / "curves.jsonl").write_bytes(whole[: len(whole) // 2].ljust(len(whole), b"\0"))


def flip_the_last_newline(path):
    whole = (path / "curves.jsonl").read_bytes()
    (path / "curves.jsonl").write_bytes(whole[:-1] + b"\x0b")


def add_a_line(path):
    with (path / "curves.jsonl").open("ab") as file:
        file.write(lines_of(path)[-1].replace(b'"time":11', b'"time":12'))


def a_pipe(path):
    (path / "curves.jsonl").unlink()
    os.mkfifo(path / "curves.jsonl")


def lose_a_record(path):
    os.truncate(path / "points" / "0.bin", 40 * 4 * 7)


def change_a_record(path):
    file = path / "points" / "0.bin"
    data = bytearray(file.read_bytes())
    data[40 * 4 * 7 + 3] ^= 1
    file.write_bytes(data)


def lose_an_array(path):
    sorted((path / "arrays").iterdir())[7].unlink()


def zero_an_array(path):
    file = sorted((path / "arrays").iterdir())[7]
    file.write_bytes(bytes(file.stat().st_size))


ANY = [lose_half, zero_the_tail, flip_the_last_newline, lose_a_record, change_a_record, lose_an_array, zero_an_array]
FINISHED = [*ANY, add_a_line, a_pipe]


@pytest.mark.parametrize("damage", FINISHED, ids=lambda damage: damage.__name__)
def test_a_finished_run_is_whole_or_refused(tmp_path, origin, damage, capsys):
    path = tmp_path / "run"
    record(path, origin)
    followed = RunReader(path)
    followed.update()
    damage(path)
    report = check(path)
    assert (report.ok, report.state) == (False, "finished"), report
    for read in (load, lambda path: Recorder(path, clock="step", origin=origin, resume=True)):
        with pytest.raises(ValueError, match=r"damaged|line \d+: "):
            read(path)
    if damage not in (lose_a_record, change_a_record, lose_an_array, zero_an_array):
        with pytest.raises(ValueError, match=r"damaged|line \d+: "):
            followed.update()  # what was read before may stay: lines that were added, cut or exchanged are noticed
    for verb in (["show", str(path)], ["gate", str(path), "--curve", "norm", "--gap", "0.1"], ["report", str(path)]):
        assert main(verb) == 2
        said = capsys.readouterr().err
        assert "damaged" in said or "line" in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("damage", ANY, ids=lambda damage: damage.__name__)
def test_of_a_run_that_died_the_longest_part_counts_that_verifies(tmp_path, origin, damage):
    path = tmp_path / "run"
    record(path, origin, end=False)._abandon()
    damage(path)
    reader = read_run(path)
    kept = {lose_half: 6, zero_the_tail: 6, flip_the_last_newline: 11}.get(damage, 7)
    silent = damage in (lose_half, flip_the_last_newline)
    assert reader.state == "died"
    assert abs(reader.evaluations - kept) <= (damage is zero_the_tail)
    assert (reader.dropped is None) == silent
    if silent:
        run = load(path)
    else:
        with pytest.warns(
            UserWarning, match=r"run is not finished: \d+ lines? dropped, from line \d+ of curves.jsonl on: "
        ):
            run = load(path)
    count = reader.evaluations
    assert run["norm"].values.tolist() == [step / 3 for step in range(count)]
    assert (run.points["loss"].values[:, 0] == np.arange(count)).all()
    report = check(path)
    assert (report.ok, report.state, report.evaluations, report.problems) == (silent, "died", count, ())
    if not silent:
        with pytest.warns(UserWarning, match="dropped"):
            recorder = Recorder(path, clock="step", origin=origin, resume=True)
    else:
        recorder = Recorder(path, clock="step", origin=origin, resume=True)
    with recorder:
        for step in range(count, EVALUATIONS):
            values, points = reading(step)
            recorder.append(step, values, points)
    record(tmp_path / "whole", origin)
    assert load(path) == load(tmp_path / "whole")
    assert load(path).points == load(tmp_path / "whole").points


def test_empty_bytes_behind_the_lines_are_said(tmp_path, origin):
    path = tmp_path / "run"
    record(path, origin, end=False)._abandon()
    with (path / "curves.jsonl").open("ab") as file:
        file.write(bytes(5000))
    with pytest.warns(UserWarning, match="1 line dropped, from line 13 of curves.jsonl on: its bytes are empty"):
        assert load(path)["norm"].sizes["time"] == EVALUATIONS


@pytest.mark.parametrize("backwards", [False, True], ids=["alphabetical", "reverse"])
def test_a_copy_of_a_live_run_loads_and_goes_on(tmp_path, origin, backwards):
    """File by file while it is recorded: what is in the copy and fits together counts."""
    source, recorder = tmp_path / "run", None
    recorder = Recorder(source, clock="step", origin=origin)
    for step in range(4):
        recorder.append(step, *reading(step))
    copy, step = tmp_path / "copy", 4
    files = sorted((p for p in source.rglob("*") if p.is_file()), reverse=backwards)
    for file in files:
        target = copy / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        recorder.append(step, *reading(step))
        step += 1
    reader = read_run(copy)
    assert reader.state == "died"
    assert reader.evaluations >= 4
    assert reader.trajectory["norm"].values.tolist() == [k / 3 for k in range(reader.evaluations)]
    with pytest.warns(UserWarning, match="copy is not finished: .* dropped"):
        other = Recorder(copy, clock="step", origin=origin, resume=True)
    with other:
        other.append(99, *reading(99))
    assert load(copy)["norm"].time.values.tolist() == [*range(reader.evaluations), 99]
    recorder.close()


def test_the_gate_judges_finished_runs_only(tmp_path, origin, capsys):
    path = tmp_path / "run"
    recorder = record(path, origin, end=False)
    for state in ("is still running", "died", "failed", "was interrupted"):
        if state == "died":
            recorder._abandon()
        elif state != "is still running":
            error = ValueError if state == "failed" else KeyboardInterrupt
            with pytest.raises(error), Recorder(path, clock="step", origin=origin, resume=True):
                raise error
        assert main(["gate", str(path), "--curve", "norm", "--gap", "0.1"]) == 2
        assert f"The gate judges finished runs only. {path} {state}" in capsys.readouterr().err
