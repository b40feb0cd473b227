"""The table of interventions in the docs is what the interventions say of themselves."""

from pathlib import Path

import pytest

from tiltmeter.interventions.overview import END, START, markdown, rows

DOCS = Path(__file__).parents[2] / "docs"
KINDS = ("group", "gradient", "point", "batch", "data", "step", "model")


def test_the_page_shows_the_laws():
    """Write it with `python -m tiltmeter.interventions.overview docs`."""
    text = (DOCS / "interventions.md").read_text(encoding="utf-8")
    assert text.split(START)[1].split(END)[0].strip() == markdown()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_every_law_stands_on_the_page_of_its_kind_and_says_what_it_does(row):
    assert row.kind in KINDS
    assert f"`{row.name}" in (DOCS / f"interventions-{row.kind}.md").read_text(encoding="utf-8")
    assert 10 < len(row.title) < 130
    assert row.cannot


def test_code_tests_and_pages_have_one_order():
    root = Path(__file__).parents[2]
    for kind in KINDS:
        assert (root / "src/tiltmeter/interventions" / kind / "__init__.py").exists()
        assert list((root / "tests/interventions" / kind).glob("test_*.py"))
        assert f"<interventions-{kind}>\n" in (DOCS / "howto.md").read_text(encoding="utf-8")
