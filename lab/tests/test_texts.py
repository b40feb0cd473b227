"""Every text of the laboratory runs: the doctests of its modules and the code blocks of its pages."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import tiltmeter_lab

PAGES = sorted((Path(__file__).parents[2] / "docs" / "lab").glob("*.md"))
MODULES = sorted(module.name for module in pkgutil.walk_packages(tiltmeter_lab.__path__, "tiltmeter_lab."))
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page, tmp_path, monkeypatch, capsys):
    """Python blocks share one namespace per page; a block `text printed` is what the one before it prints."""
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": page.stem}, ""
    for language, kind, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, page.name, "exec"), namespace)
            printed = capsys.readouterr().out
        elif kind.strip() == "printed":
            assert printed.split() == text.split()
