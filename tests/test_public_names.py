"""The daily names: all are documented, explained, and nothing else shows after `tm.<TAB>`."""

import inspect

import pytest

import tiltmeter as tm

NAMES = [name for name in tm.__all__ if not name.startswith("__") and not inspect.ismodule(getattr(tm, name))]


def test_completion_shows_the_daily_names_only():
    assert [name for name in dir(tm) if not name.startswith("__")] == sorted(set(tm.__all__) - {"__version__"})


@pytest.mark.parametrize("name", NAMES)
def test_every_daily_name_says_what_it_is(name):
    assert inspect.getdoc(getattr(tm, name))
