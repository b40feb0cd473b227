"""The reference has a page for every public function and class: parameters, an example that runs, what to see also."""

import doctest
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

lab = pytest.importorskip("tiltmeter_lab")

catalogue = pytest.importorskip("tiltmeter_lab.measures.catalogue")

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


def examples(value):
    """The lines of code in the docstring that it has itself: an inherited one is about another class."""
    doc = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return [example.source for example in doctest.DocTestParser().get_examples(doc or "")]


def test_every_public_function_and_class_has_an_example_that_runs():
    """`test_texts.py` runs them; one that is skipped would only look like an example."""
    api = extension()
    names = {address: value for address, value in api.public_names().items() if api.documented(value)}
    assert [address for address, value in names.items() if not examples(value)] == []
    assert [address for address, value in names.items() if "+SKIP" in "".join(examples(value))] == []


def test_an_inherited_example_is_no_example():
    class Base:
        """A base.

        >>> 1 + 1
        2
        """

    class Child(Base):
        pass

    assert examples(Base) == ["1 + 1\n"]
    assert examples(Child) == []


def test_every_page_names_what_to_see_also():
    api = extension()
    pages = api.pages()
    files = api.file_names({address: value for address, value in api.public_names().items() if api.documented(value)})
    for address, file in files.items():
        _, _, also = pages[file].partition("```{seealso}\n")
        linked = re.findall(r"\]\(((?:tm|lab)[^)]+)\.md\)", also)
        assert linked, address
        assert set(linked) <= set(files.values()) - {file}, address
    assert "(tm.methods.Rehearsal.md)" in pages["tm.forecast"]
    assert "(../forecast.md)" in pages["tm.forecast"]


def test_every_public_function_and_class_has_a_page_under_its_public_name():
    api = extension()
    pages = api.pages()
    assert {"tm.forecast", "tm.teacher_mixture", "tm.theory.leader_on_grid"} <= set(pages)
    assert {f"lab.measures.{catalogue.find(name).__name__}" for name in catalogue.MEASURES} <= set(pages)
    titles = {text.split("\n")[0] for text in pages.values()}
    assert {f"# {address}" for address, value in api.public_names().items() if api.documented(value)} <= titles
    assert len({name.lower() for name in pages}) == len(pages)
    assert "(api/tm.forecast.md)" in api.all_names()


def test_the_docs_import_public_names_only():
    """What a reader copies from a page is a name that stays. The mathematics of forecasts shows a solver as it is."""
    api = extension()
    public = {(id(value), address.rpartition(".")[2]) for address, value in api.public_names().items()}
    docs = EXTENSION.parents[1]
    pages = [path for path in docs.rglob("*.md") if not {"_build", "api"} & set(path.relative_to(docs).parts)]
    deep = re.compile(r"^\s*from (tiltmeter(?:\.\w+){2,}) import (.+)$", re.MULTILINE)
    private = {
        f"{module}.{name}"
        for page in (*pages, docs.parent / "README.md")
        for module, names in deep.findall(page.read_text(encoding="utf-8"))
        for name in re.split(r",\s*", names)
        if (id(getattr(importlib.import_module(module), name)), name) not in public
    }
    assert private == {"tiltmeter.forecast.kernel.solvers.square.lanczos"}
