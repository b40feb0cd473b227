"""The reference has a page for every public function and class, and every parameter is described once."""

import importlib.util
import inspect
from pathlib import Path

import pytest

from tiltmeter.measures.catalogue import MEASURES, find

EXTENSION = Path(__file__).parents[1] / "docs" / "ext" / "api_page.py"


def extension():
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("api_page", EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_parameter_of_a_public_name_is_described():
    api = extension()
    names = {address: value for address, value in api.public_names().items() if api.documented(value)}
    assert len(names) > 300
    missing = {
        address: sorted(set(api.parameters(value)) - set(api.described(value))) for address, value in names.items()
    }
    assert {address: names for address, names in missing.items() if names} == {}


def test_no_docstring_describes_a_parameter_that_is_not_there():
    api = extension()
    for address, value in api.public_names().items():
        if api.documented(value):
            _, _, arguments = (inspect.getdoc(value) or "").partition("\nArgs:\n")
            assert {match[0] for match in api.ARGUMENT.findall(arguments)} <= set(api.parameters(value)), address


def test_a_missing_description_is_noticed_and_an_inherited_one_is_found():
    api = extension()

    class Base:
        """A base.

        Args:
            a: What it is, in
                two lines.
        """

    class Child(Base):
        """A child.

        Args:
            b: Another.
        """

        def __init__(self, a, b, c):
            pass

    assert api.described(Child) == {"a": "What it is, in two lines.", "b": "Another."}
    assert api.parameters(Child) == ["a", "b", "c"]


def test_every_public_function_and_class_has_a_page_under_its_public_name():
    api = extension()
    pages = api.pages()
    assert {"tm.forecast", "tm.theory.leader_on_grid"} <= set(pages)
    assert {f"tm.measures.{find(name).__name__}" for name in MEASURES} <= set(pages)
    titles = {text.split("\n")[0] for text in pages.values()}
    assert {f"# {address}" for address, value in api.public_names().items() if api.documented(value)} <= titles
    assert len({name.lower() for name in pages}) == len(pages)
    assert "(api/tm.forecast.md)" in api.all_names()
