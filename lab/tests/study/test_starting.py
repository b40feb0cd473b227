"""Processes that are started: no code of the current folder, and a death at the start stops nothing."""

import os
import signal
import subprocess
import sys
import time

import cells_for_tests as cells
import pytest

from tiltmeter.child_process import module_command, module_environment
from tiltmeter_lab.study import Study, engine
from tiltmeter_lab.study.engine import Slot

#: Modules that are part of the interpreter itself cannot be replaced by a file.
STANDARD = sorted(set(sys.stdlib_module_names) - set(sys.builtin_module_names) - {"__future__", "this", "antigravity"})


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A current folder with a file of the name of every module of the standard library, each of which leaves a mark."""
    folder = tmp_path / "runs"
    folder.mkdir()
    marks = tmp_path / "marks"
    for name in [*STANDARD, "numpy", "xarray", "tiltmeter"]:
        text = f"open({str(marks)!r}, 'a').write({name!r} + '\\n')\nraise ImportError('of the current folder')\n"
        (folder / f"{name}.py").write_text(text)
    monkeypatch.chdir(folder)
    return lambda: marks.read_text().split() if marks.exists() else []


@pytest.mark.parametrize("given", [None, ""])
def test_a_slot_runs_nothing_of_the_current_folder(trap, tmp_path, monkeypatch, given):
    if given is not None:
        monkeypatch.setattr(sys, "path", [*sys.path, given])  # as in a notebook
    study = Study(cells.numbers, {"a": [1]}, to=tmp_path / "study")
    assert study.run(progress=False, jobs=1).done == 1
    assert trap() == []


def test_a_worker_of_the_explorer_runs_nothing_of_the_current_folder(trap, run_async):
    from tiltmeter.explorer.state import Worker

    async def ask():
        worker = Worker()
        try:
            return await worker.ask("rows", root=".")
        finally:
            process = worker._process
            worker.stop()
            await process.wait()

    assert run_async(ask()) is not None
    assert trap() == []


def test_the_current_folder_is_on_the_path_only_if_the_user_put_it_there(trap, monkeypatch):
    here = os.getcwd()
    monkeypatch.setattr(sys, "path", ["", here, *sys.path])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert here not in module_environment()["PYTHONPATH"].split(os.pathsep)
    monkeypatch.setenv("PYTHONPATH", here)
    assert here in module_environment()["PYTHONPATH"].split(os.pathsep)
    assert trap() == []


def test_a_slot_that_dies_while_it_starts_is_replaced(tmp_path, monkeypatch):
    starts = []

    def killed_at_first(*args, **options):
        process = subprocess.Popen(*args, **options)
        starts.append(process.pid)
        if len(starts) <= 3:
            process.kill()
        return process

    class Module:
        Popen = staticmethod(killed_at_first)

        def __getattr__(self, name):
            return getattr(subprocess, name)

    monkeypatch.setattr(engine, "subprocess", Module())
    study = Study(cells.numbers, {"a": [1]}, to=tmp_path / "study")
    assert study.run(progress=False, jobs=1).done == 1
    assert len(starts) == 4


def test_a_program_that_never_starts_is_said(monkeypatch):
    monkeypatch.setattr(engine, "module_command", lambda module: [sys.executable, "-c", ""])
    with pytest.raises(RuntimeError, match=r"ended at once, 5 times in a row"):
        Slot()._ready()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("when", ["at once", "ready"])
def test_a_slot_whose_driver_died_ends_without_an_abort(when):
    read, write = os.pipe()
    process = subprocess.Popen(
        module_command("tiltmeter_lab.study.slot_process"),
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
        env=module_environment(),
        start_new_session=True,
    )
    os.close(write)
    if when == "ready":
        os.read(read, 1)
    os.close(read)
    process.stdin.close()
    begun = time.monotonic()
    errors = process.stderr.read().decode()
    process.wait(20)
    assert time.monotonic() - begun < 20
    assert process.returncode in (-signal.SIGKILL, 1), errors
    assert "Fatal Python error" not in errors


def test_a_table_holds_no_formula_and_no_command(tmp_path, capsys):
    from tiltmeter_lab.cli.study import table

    Study(cells.curve, {"a": [1.0], "note": ["=1+1", "a\x1b[2Jb"]}, to=tmp_path / "study").run(progress=False, jobs=1)
    table(tmp_path / "study", csv=tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text()
    assert "'=1+1" in text
    assert "\x1b" not in text
    table(tmp_path / "study")
    assert "\x1b" not in capsys.readouterr().out
