"""A closed pipe (`tiltmeter ... | head`) ends every verb quietly, and no other broken pipe is hidden by it."""

import os
import subprocess
import sys

import pytest

import tiltmeter.cli as cli
from tiltmeter.cli import terminal as closed_pipe


@pytest.mark.parametrize("words", [["data", "list"], ["--help"]])
def test_a_verb_ends_quietly_when_nobody_reads(words):
    """The reader closes before the first byte arrives."""
    made = subprocess.Popen(
        [sys.executable, "-m", "tiltmeter", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    made.stdout.close()
    told = made.stderr.read()
    assert made.wait() == closed_pipe.CODE
    assert told == ""


def test_another_broken_pipe_is_told(monkeypatch, capsys):
    def app():
        def broken(*_, **__):
            raise BrokenPipeError(32, "Broken pipe")

        return broken

    monkeypatch.setattr(cli, "make_app", app)
    assert cli.main(["show", "x"]) == 2
    assert "Broken pipe" in capsys.readouterr().err


def test_an_exit_of_other_reasons_stays(monkeypatch):
    def app():
        def leave(*_, **__):
            raise SystemExit(7)

        return leave

    monkeypatch.setattr(cli, "make_app", app)
    with pytest.raises(SystemExit) as end:
        cli.main(["show", "x"])
    assert end.value.code == 7
