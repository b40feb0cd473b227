"""`tiltmeter study`: files, folders, tables and sentences."""

import contextlib
import json
import os
import sys
from pathlib import Path

import pytest

import tiltmeter as tm
from tiltmeter.cli import main

FILE = """
[study]
cell = "cells_for_tests:numbers"
to = "found"
seeds = 2
[factors]
a = [1, 2]
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[1] / "study")])
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path / "mine.toml"


def test_run_status_and_table(file, capsys):
    assert main(["study", "status", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left"] == 4
    assert main(["study", str(file), "--jobs", "1", "--only", "a=2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 2
    folder = str(file.parent / "found")
    assert main(["study", "table", folder, "--csv", str(file.parent / "t.csv")]) == 0
    assert "2 of 4 cells done" in capsys.readouterr().out
    assert (file.parent / "t.csv").read_text().splitlines()[0] == "a,seed,k,x,y"
    assert main(["study", "failures", folder]) == 0
    assert capsys.readouterr().out == "0 cells failed.\n"


def test_only_a_run_imports_the_function(tmp_path, monkeypatch, capsys):
    """A module that cannot be imported any more, as on a machine without its packages: what is there can be read."""
    (tmp_path / "vanishing.py").write_text(
        "import xarray as xr\ndef f(settings): return xr.Dataset({'x': settings['a']})"
    )
    file = tmp_path / "mine.toml"
    file.write_text(FILE.replace("cells_for_tests:numbers", "vanishing:f"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["study", str(file), "--jobs", "1"]) == 0
    monkeypatch.delitem(sys.modules, "vanishing")
    text = (tmp_path / "vanishing.py").read_text()
    (tmp_path / "vanishing.py").write_text(f"raise RuntimeError('imported')\n{text}")
    capsys.readouterr()
    for place in (file, tmp_path / "found"):
        assert main(["study", "status", str(place)]) == 0
        said = capsys.readouterr().out
        assert said.startswith("4 of 4 cells done, 0 failed, 0 left. 4 were made by another version of the file")
        assert main(["study", "table", str(place)]) == 0
        assert main(["study", "failures", str(place)]) == 0
    assert "vanishing" not in sys.modules
    with pytest.raises(RuntimeError, match="imported"):
        main(["study", str(file)])


BAD = [
    ("[study]\nto='x'", "`cell` is missing"),
    ("[study]\ncell='mine'", 'should be "module:function"'),
    ("[study]\ncell='no_such_module:f'", "No module 'no_such_module'"),
    ("[study]\ncell='cells_for_tests:nothing'", "no function 'nothing'"),
    ("[study]\ncell='cells_for_tests:numbers'", "takes `factors`, or an explicit list"),
    ("[study]\ncel='cells_for_tests:numbers'", "Did you mean 'cell'?"),
    ("[study]\ncell='cells_for_tests:numbers'\nlimit=-1\n[factors]\na=[1]", "`limit` should be a number above 0"),
    ("[study]\ncell='cells_for_tests:numbers'\n[factors]\na=1", "should be a list of at least one value"),
]


@pytest.mark.parametrize(("text", "sentence"), BAD)
def test_bad_files_are_refused_in_one_sentence(file, text, sentence, capsys):
    file.write_text(text)
    assert main(["study", str(file)]) == 2
    assert sentence in capsys.readouterr().err


def test_bad_flags_are_refused_in_one_sentence(file, capsys):
    for flags, sentence in [
        (["--only", "a"], "as in width=64"),
        (["--only", "b=1"], "`only` should name factors"),
        (["--jobs", "0"], "`jobs` should be a number of processes"),
        (["--dask", "tcp://127.0.0.1:1", "--jobs", "2"], "leave it out with the address"),
    ]:
        assert main(["study", str(file), *flags]) == 2
        assert sentence in capsys.readouterr().err


def test_resume_says_how_a_study_goes_on(run):
    code, _, error = run("study", "resume", "mine.toml")
    assert code != 0
    assert "There is no `study resume`: `tiltmeter study mine.toml` goes on where it stopped." in error


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("address", ["local", "tcp"])
def test_dask_from_the_command_line(file, address, capsys, monkeypatch):
    distributed = pytest.importorskip("distributed")
    folder = str(Path(__file__).parents[1] / "study")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*filter(None, sys.path), folder]))
    with contextlib.ExitStack() as stack:
        if address == "tcp":
            cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
            address = stack.enter_context(cluster).scheduler_address
        assert main(["study", str(file), "--dask", address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 4
    by_dask = tm.study.Study.load(file.parent / "found").table()
    file.write_text(FILE.replace('"found"', '"slots"'))
    assert main(["study", str(file), "--jobs", "2"]) == 0
    assert by_dask.identical(tm.study.Study.load(file.parent / "slots").table()), "the same table to the bit"
