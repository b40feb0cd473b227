"""The tables of measures and interventions in the docs are what these say of themselves: `python docs/draw/tables.py`."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

MEASURES = pytest.importorskip("tiltmeter_lab.measures.catalogue").MEASURES

DOCS = Path(__file__).parents[1] / "docs"
KINDS = ("group", "gradient", "point", "batch", "data", "step", "model")


def _tables():
    spec = importlib.util.spec_from_file_location("docs_tables", DOCS / "draw" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


TABLES = _tables()


def test_the_page_shows_the_measures():
    assert TABLES.shown("lab/measures.md") == TABLES.measure_table()


def test_the_page_shows_the_interventions():
    assert TABLES.shown("interventions.md") == TABLES.intervention_table()


def test_the_page_shows_how_close_previews_were():
    assert TABLES.shown("preview.md") == TABLES.preview_table()


def test_every_measure_has_a_page():
    table = TABLES.measure_table()
    for name in MEASURES:
        assert re.search(rf"^\| \[`{name}`\]\(measure-[\w-]+\.md\) \|", table, re.MULTILINE), f"no page names {name}"


@pytest.mark.parametrize("row", TABLES.intervention_rows(), ids=lambda row: row.name)
def test_every_intervention_stands_on_the_page_of_its_kind_and_says_what_it_does(row):
    assert row.kind in KINDS
    page = re.search(rf"^\| \[`{row.name}\([^)]*\)`\]\(([\w/-]+\.md)\)", TABLES.intervention_table(), re.MULTILINE)
    assert page, f"no page names {row.name}"
    assert f"`{row.name}" in (DOCS / page[1]).read_text(encoding="utf-8")
    assert 10 < len(row.title) < 130
    assert row.cannot


def test_costs_are_those_of_the_interventions():
    costs = {row.name: row.cost for row in TABLES.intervention_rows()}
    assert [costs[name] for name in ("GroupDRO", "UPGrad", "JTT")] == ["1", "G + 1", "1 + 75 / steps"]


def test_code_tests_and_pages_have_one_order():
    root = Path(__file__).parents[1]
    for kind in KINDS:
        assert (root / "src/tiltmeter/interventions" / f"{kind}.py").exists()
        assert list((root / "tests/interventions" / kind).glob("test_*.py"))
        assert f"<interventions-{kind}>\n" in (DOCS / "howto.md").read_text(encoding="utf-8")
