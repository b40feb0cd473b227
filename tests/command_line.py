"""Fixtures of the tests of verbs, in whatever house: a folder of its own for every test, and one call of a verb."""

import pytest

from tiltmeter.cli import main


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    """Files that a verb writes land here; tables are wide enough not to wrap."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


@pytest.fixture
def run(capsys):
    """Exit code, stdout and stderr of one call."""

    def call(*argv):
        code = main(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return call
