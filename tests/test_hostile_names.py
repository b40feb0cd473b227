"""Hostile names of groups through every output: shown as text, never obeyed."""

import csv
import importlib.util
import io
import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.cli import main

_spec = importlib.util.spec_from_file_location("hostile_names", Path(__file__).with_name("hostile_names.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
NAMES = _module.NAMES
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def run_of(names):
    times = np.arange(1.0, 6.0)
    values = np.add.outer(1.0 / times, 0.01 * np.arange(len(names)) * (times.mean() - 2.0))
    loss = xr.DataArray(values, dims=("time", "group"), coords={"time": times, "group": np.array(names, dtype=object)})
    held_out = {"sizes": [[name, 40] for name in names], "points": 40 * len(names)}
    origin = tm.record.Origin("training", problem={"held_out": held_out}, settings={"model": {"class": names[0]}})
    return tm.Trajectory({"loss": loss}, clock="step", origin=origin)


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def elements(text):
    parser = Elements()
    parser.feed(text)
    return parser.found


#: What a report is made of beside the elements of a plain page.
DRAWN = {
    *("a", "header", "main", "nav", "section", "footer", "figure", "figcaption", "details", "summary", "caption"),
    *("h3", "ul", "ol", "li", "dl", "dt", "dd", "b", "i", "span", "svg", "title", "desc", "g", "path", "rect", "line"),
    *("circle", "text"),
}


def check_page(text, scripts, drawn=frozenset()):
    found = elements(text)
    assert {tag for tag, _ in found} <= set(drawn) | {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "p",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "pre",
        "footer",
        "script",
    }
    assert sum(tag == "script" for tag, _ in found) == scripts
    assert not [attrs for _, attrs in found for name in attrs if name.startswith("on") or name == "src"]
    assert all(re.fullmatch(r"#[a-z]+", attrs["href"]) for _, attrs in found if "href" in attrs)
    policies = [attrs["content"] for tag, attrs in found if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    assert policies[0].startswith(f"default-src 'none'; script-src {chr(39)}{'none' if drawn else 'sha256-'}")
    assert "connect-src 'none'" in policies[0]
    assert "unsafe-eval" not in policies[0]
    # Scripts hold neither an end of themselves nor the start of a comment.
    for script in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
        assert "<!--" not in script
        assert "<script" not in script[-200_000:].lower()


def test_there_are_enough_names():
    assert len(set(NAMES)) >= 40


def test_the_page_of_a_picture(tmp_path):
    path = tm.plot.save(tm.plot.curves(run_of(NAMES)), tmp_path / "p.html")
    check_page(path.read_text(encoding="utf-8"), 2)


def test_the_report_and_its_model_card(tmp_path):
    text = tm.report([run_of(NAMES), run_of(NAMES[:2])], tmp_path / "r.html", title=NAMES[0]).read_text(
        encoding="utf-8"
    )
    check_page(text, 1, DRAWN)
    cards = re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL)
    assert len(cards) == 2
    for card in map(unescape, cards):
        assert "<" not in card
        assert not re.search(r"(?<!\\)[\[\]`]", card)


def test_a_vector_picture_has_no_active_part(tmp_path):
    text = tm.plot.save(tm.plot.curves(run_of(NAMES)), tmp_path / "p.svg").read_text(encoding="utf-8")
    found = elements(text)
    assert {tag for tag, _ in found} <= {
        "svg",
        "g",
        "path",
        "rect",
        "text",
        "tspan",
        "title",
        "defs",
        "clippath",
        "line",
        "style",
    }
    assert not [name for _, attrs in found for name in attrs if name.startswith("on") or "href" in name]


def test_cells_of_a_csv_file_are_no_formulas(tmp_path):
    text = tm.export.write(run_of(NAMES), tmp_path / "t.csv").read_text(encoding="utf-8")
    cells = [row[2] for row in list(csv.reader(io.StringIO(text, newline="")))[1:]]
    assert len(set(cells)) >= len(NAMES) - 1
    for cell in cells:
        assert not (len(cell.lstrip()) > 1 and cell.lstrip()[0] in "=+-@"), cell
        assert not OBEYED.search(cell)


def test_plus_and_minus_keep_their_names(tmp_path):
    text = tm.export.write(run_of(["+", "-"]), tmp_path / "t.csv").read_text(encoding="utf-8")
    assert {row[2] for row in list(csv.reader(io.StringIO(text)))[1:]} == {"+", "-"}


def test_event_files_stay_in_their_folder(tmp_path):
    pytest.importorskip("tensorboard")
    tm.export.write(run_of(NAMES), tmp_path / "in" / "events")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["events"]


@pytest.mark.parametrize("first", range(0, len(NAMES) - 1, 6))
def test_the_terminal_obeys_nothing(first, tmp_path, capsys):
    names = NAMES[first : first + 6]
    tm.save(run_of(names), tmp_path / "run")
    tm.save(run_of(names[:2]), tmp_path / "two")
    for command in (["show", "run"], ["show", "two"], ["compare", "run"], ["show", "run", "--json"]):
        places = [str(tmp_path / word) if word in ("run", "two") else word for word in command]
        assert main(places) == 0
        out, err = capsys.readouterr()
        assert not OBEYED.search(out.replace("\x1b[1m", "").replace("\x1b[0m", "")), command
        assert not OBEYED.search(err), command
        if "--json" in command:
            json.loads(out)


def test_errors_and_warnings_are_made_visible_too(tmp_path, capsys):
    assert main(["show", str(tmp_path / "a\x1b[31mb")]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert r"\x1b[31mb" in err


def test_half_a_character_is_no_name():
    with pytest.raises(ValueError, match="A group label should be text that can be written to a file"):
        tm.GroupedData(np.zeros((2, 1)), [0, 1], ["half \ud83d", "b"])


def test_notebooks_show_text():
    data = tm.GroupedData(
        np.zeros((40 * len(NAMES), 1)), np.zeros(40 * len(NAMES)), np.repeat(np.array(NAMES, dtype=object), 40)
    )
    assert {tag for tag, _ in elements(data._repr_html_())} <= {"div", "p", "table", "tr", "th", "td"}
    assert not OBEYED.search(repr(data))


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed on this machine.")
def test_in_a_browser_nothing_runs_and_everything_is_drawn(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    pages = {}
    for name, runs in (("first", [NAMES[:22]]), ("second", [NAMES[22:]]), ("both", [NAMES[:2], NAMES[2:4]])):
        pages[name] = tm.report([run_of(names) for names in runs], tmp_path / f"{name}.html", title=NAMES[0])
    for i in range(0, len(NAMES) - 1, 2):
        chart = tm.plot.curves(run_of(NAMES[i : i + 2]), leaders=tm.leaders(run_of(NAMES[i : i + 2]), "loss"))
        pages[f"{i}.html"] = tm.plot.save(chart, tmp_path / f"{i}.html")
        pages[f"{i}.svg"] = tm.plot.save(chart, tmp_path / f"{i}.svg")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for path in pages.values():
            assert problems_of(browser, path) == []
        browser.close()


def problems_of(browser, path):
    """Everything that a page says, asks for or runs beyond drawing itself."""
    page, problems = browser.new_page(), []
    own = (path.as_uri(), "data:", "blob:")
    page.on("console", lambda said: problems.append((path.name, said.text)))
    page.on("pageerror", lambda error: problems.append((path.name, str(error))))
    page.on("dialog", lambda box: problems.append((path.name, box.message)))
    page.on("request", lambda asked: None if asked.url.startswith(own) else problems.append((path.name, asked.url)))
    page.goto(path.as_uri())
    if path.suffix == ".html":
        charts = page.locator("div[id^=chart]").count()  # a report has none: its pictures are there at once
        drawn = f"() => document.querySelectorAll('div[id^=chart] svg').length >= {charts}"
        page.wait_for_function(drawn, timeout=60_000)
    if not page.evaluate("() => window.pwned === undefined"):
        problems.append((path.name, "a script ran"))
    page.close()
    return problems
