"""Runs that the tests of reports share."""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("made_runs", Path(__file__).with_name("made.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)


@pytest.fixture(scope="session")
def made():
    """The module of runs made by hand."""
    return _module
