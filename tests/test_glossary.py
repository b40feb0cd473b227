"""One glossary: docs/glossary.md says what a word means, and the explorer and the report say the same."""

import importlib.util
import re
from pathlib import Path

import pytest

from tiltmeter.explorer.single_file import page_files
from tiltmeter.report.terms import TERMS

EXTENSION = Path(__file__).parents[1] / "docs" / "ext" / "glossary_tips.py"


@pytest.fixture(scope="module")
def tips():
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("glossary_tips", EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def meanings_of_the_explorer():
    block = re.search(r"^const MEANINGS = \{\n(.*?)^\};", page_files()["elements.js"], re.MULTILINE | re.DOTALL)[1]
    return dict(re.findall(r'^  "?([\w ]+?)"?: "(.*)",$', block, re.MULTILINE))


def test_the_explorer_says_what_the_glossary_says(tips):
    explorer = meanings_of_the_explorer()
    assert len(explorer) >= 20
    assert explorer == {word: tips.glossary().get(word) for word in explorer}


def test_every_word_that_the_explorer_marks_is_explained():
    pages = "".join(text for name, text in page_files().items() if name.endswith(".js"))
    marked = set(re.findall(r'\bterm\("([\w ]+)"', pages))
    assert len(marked) > 10
    assert marked <= set(meanings_of_the_explorer())


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_the_report_says_what_the_glossary_says(tips, term):
    assert term.meaning.lower() in tips.glossary()[term.name].lower()


def test_a_tip_is_text_whatever_it_holds(tips):
    assert tips.tip("a<b", 'say "x" & y') == (
        '<span class="term" tabindex="0" data-meaning="say &quot;x&quot; &amp; y" '
        'aria-description="say &quot;x&quot; &amp; y">a&lt;b</span>'
    )
