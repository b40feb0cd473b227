"""The daily names: all are documented, explained, and nothing else shows after `tm.<TAB>`."""

import inspect
import re
from pathlib import Path

import pytest

import tiltmeter as tm
from tiltmeter.measures.catalogue import MEASURES, find

API = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
LISTED = {name for line in re.findall(r":members:((?:.*,\n)*.*)", API) for name in re.findall(r"\w+", line)}
NAMES = [name for name in tm.__all__ if not name.startswith("__") and not inspect.ismodule(getattr(tm, name))]


def test_completion_shows_the_daily_names_only():
    assert [name for name in dir(tm) if not name.startswith("__")] == sorted(set(tm.__all__) - {"__version__"})


@pytest.mark.parametrize("name", NAMES)
def test_every_daily_name_says_what_it_is_and_stands_in_the_reference(name):
    value = getattr(tm, name)
    assert inspect.getdoc(value)
    listed = name if inspect.isclass(value) or inspect.isfunction(value) else type(value).__name__
    assert listed in LISTED


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_stands_in_the_reference(name):
    assert find(name).__name__ in LISTED


def test_every_picture_stands_in_the_reference():
    for name in tm.plot.__all__:
        assert f"automodule:: tiltmeter.plot.{name}\n" in API
