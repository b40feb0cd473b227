"""The page: self-contained, escaped, and with its charts."""

import pytest

from tiltmeter import plot, predict
from tiltmeter.report import Section, Table, write_page
from tiltmeter.theory import cases


def test_the_page_holds_its_texts_tables_and_charts_and_fetches_nothing(tmp_path):
    chart = plot.curves(predict(*cases.centred_crossing(), curves=("loss",)))
    table = Table(("group", "loss"), (("+", "0.23"), ("<b>", "0.44")))
    page = write_page(
        tmp_path / "p.html", "A <title>", [Section("Results", ["a < b"], [table], [chart, chart])], "foot"
    )
    text = page.read_text(encoding="utf-8")
    assert "<h1>A &lt;title&gt;</h1>" in text
    assert "<td>&lt;b&gt;</td>" in text
    assert text.count('<div class="chart"') == 2
    assert text.count("vegaEmbed('#chart'") == 1
    head = text.split("<script>")[0]
    assert "http:" not in head
    assert "https:" not in head
    assert "<script src" not in text
    assert "<link" not in text


def test_a_page_without_charts_has_no_script(tmp_path):
    page = write_page(tmp_path / "p.html", "t", [Section("only words", ["hello"])])
    assert "<script" not in page.read_text()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        write_page(tmp_path / "absent" / "p.html", "t", [])
