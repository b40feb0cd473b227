"""The table of measures in the docs is what the measures say of themselves."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tiltmeter.measures.catalogue import MEASURES
from tiltmeter.measures.overview import END, START, markdown

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_shows_the_catalogue():
    """Write it with `python -m tiltmeter.measures.overview docs`."""
    text = (DOCS / "measures.md").read_text(encoding="utf-8")
    assert text.split(START)[1].split(END)[0].strip() == markdown(DOCS)


def test_every_measure_has_a_page():
    table = markdown(DOCS)
    for name in MEASURES:
        assert re.search(rf"^\| \[`{name}`\]\(measure-[\w-]+\.md\) \|", table, re.MULTILINE), f"no page names {name}"
