"""The daily names: all are documented, explained, and nothing else shows after `tm.<TAB>`."""

import importlib.util
import inspect
from pathlib import Path

import pytest

import tiltmeter as tm
from tiltmeter.measures.catalogue import MEASURES, find

_spec = importlib.util.spec_from_file_location("api_page", Path(__file__).parents[1] / "docs" / "ext" / "api_page.py")
NAMES = [name for name in tm.__all__ if not name.startswith("__") and not inspect.ismodule(getattr(tm, name))]


@pytest.fixture(scope="module")
def reference():
    pytest.importorskip("sphinx")
    module = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(module)
    return module.page()


def test_completion_shows_the_daily_names_only():
    assert [name for name in dir(tm) if not name.startswith("__")] == sorted(set(tm.__all__) - {"__version__"})


@pytest.mark.parametrize("name", NAMES)
def test_every_daily_name_says_what_it_is(name):
    assert inspect.getdoc(getattr(tm, name))


def test_every_name_stands_in_the_reference(reference):
    for name in NAMES:
        assert f"tiltmeter.{name}\n" in reference or f"``tiltmeter.{name}``" in reference
    for name in MEASURES:
        assert f":: tiltmeter.measures.{find(name).__name__}\n" in reference
    for name in tm.plot.__all__:
        assert f":: tiltmeter.plot.{name}\n" in reference or inspect.ismodule(getattr(tm.plot, name))
