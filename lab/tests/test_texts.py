"""The doctests of the laboratory run; the code blocks of its pages are run with those of all pages."""

import doctest
import importlib
import pkgutil

import pytest

import tiltmeter_lab

MODULES = sorted(module.name for module in pkgutil.walk_packages(tiltmeter_lab.__path__, "tiltmeter_lab."))


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0
