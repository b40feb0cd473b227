"""The daily names: all are documented, explained, and nothing else shows after `tm.<TAB>`."""

import inspect
import re
from pathlib import Path

import pytest

import tiltmeter as tm

NAMES = [name for name in tm.__all__ if not name.startswith("__") and not inspect.ismodule(getattr(tm, name))]


def test_completion_shows_the_daily_names_only():
    assert [name for name in dir(tm) if not name.startswith("__")] == sorted(set(tm.__all__) - {"__version__"})


@pytest.mark.parametrize("name", NAMES)
def test_every_daily_name_says_what_it_is(name):
    assert inspect.getdoc(getattr(tm, name))


@pytest.mark.parametrize("name", [name for name in tm.__all__ if not name.startswith("__")])
def test_every_daily_name_is_on_a_page_that_a_user_reads(name):
    """Besides the pages of the reference, which are made from the names themselves."""
    docs = Path(__file__).parents[1] / "docs"
    pages = (p for p in docs.rglob("*.md") if p.relative_to(docs).parts[0] not in ("_build", "api", "evidence"))
    assert any(re.search(rf"\btm\.{name}\b", page.read_text(encoding="utf-8")) for page in pages)
