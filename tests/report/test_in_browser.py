"""Pages in a real browser: charts drawn, no error, no request off the machine, few words at first, nothing unreadable."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tiltmeter as tm
from tiltmeter.cli import main

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--virtual-time-budget=10000", "--enable-logging=stderr", "--v=0",
]  # fmt: skip

CELLS = [(380, 20, 60, 40), (340, 60, 30, 70), (300, 30, 40, 40), (280, 50, 35, 50), (150, 12, 20, 12)]
FAULTS = (Path(__file__).parents[1] / "page_faults.js").read_text(encoding="utf-8")
WIDTHS, SCHEMES = (1440, 1024, 390), ("light", "dark", "print")
FIVE = ["African-American men", "African-American women", "White men", "White women", "Native American and other"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed on this machine.")
def test_the_theory_page_of_the_demo_draws_all_its_charts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    page = tmp_path / "tiltmeter-demo-theory.html"
    # Whatever name is looked up resolves to nowhere, so that a request off the machine would fail and be logged.
    command = [CHROMIUM, *FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run([*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120)
    charts = page.read_text(encoding="utf-8").count('<div class="chart"')
    drawn = len(re.findall(r'<div class="chart[^"]*" id="chart\d+"[^>]*>.*?<(?:canvas|svg)', done.stdout, re.DOTALL))
    assert charts >= 6
    assert drawn == charts
    problems = [line for line in done.stderr.splitlines() if "CONSOLE" in line or "ERR_NAME_NOT_RESOLVED" in line]
    assert problems == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed on this machine.")
@pytest.mark.parametrize(("cells", "groups", "most"), [(CELLS[:2], ["women", "men"], 180), (CELLS, FIVE, 200)])
def test_the_first_screen_has_few_words(tmp_path, made, cells, groups, most):
    """Few of them above the folded questions at 1440 x 900, for two groups and for five with long names."""
    playwright = pytest.importorskip("playwright.sync_api")
    page = tm.report([made.decided(cells, groups)], tmp_path / "page.html")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        shown = browser.new_page(viewport={"width": 1440, "height": 900})
        shown.goto(page.as_uri())
        words = shown.evaluate(VISIBLE)
        browser.close()
    count = sum(any(letter.isalpha() for letter in word) for word in words.split())
    assert 60 < count <= most


#: The text that can be seen without scrolling or opening anything.
VISIBLE = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = [];
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement, range = document.createRange();
    const folded = parent.closest("details:not([open])") && !parent.closest("summary");
    if (folded || parent.closest(".skip, .questions, script, style")) continue;
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect();
    if (box.width > 1 && box.top < 900 && box.bottom > 0) seen.push(walker.currentNode.textContent);
  }
  return seen.join(" ");
}"""


def predicted():
    """A table of predictions in six groups of two attributes: one evaluation."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["F", "M"], 3000), "race": rng.choice(["x", "y", "z"], 3000)})
    table["label"] = rng.integers(0, 2, 3000)
    right = rng.random(3000) < np.where(table.sex == "F", 0.7, 0.9)
    return tm.predictions.run(
        table.assign(score=np.where(right == table.label, 0.8, 0.2)), label="label", group=["sex", "race"]
    )


PAGES = {
    "two groups": lambda made: [made.decided(CELLS[:2], ["women", "men"])],
    "several runs": lambda made: [made.decided(CELLS[:2], ["a", "b"]), made.decided(CELLS[2:4], ["a", "b"])],
    "five groups": lambda made: [made.decided(CELLS, FIVE)],
    "eight groups": lambda made: [made.decided([*CELLS, *CELLS[:3]], [f"group number {n}" for n in range(8)])],
    "seeds": lambda made: [made.decided(CELLS[:2], ["women", "men"], seeds=6, wobble=0.02)],
    "one evaluation": lambda made: [predicted()],
    "theory": lambda made: [tm.predict(*tm.theory.cases.centred_crossing())],
}


def faults_of(browser, page):
    """What is wrong with a page at three widths, light, dark and in print; and what the browser says of it."""
    found = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            shown = browser.new_page(
                viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
            )
            shown.on("console", lambda said: found.append(said.text))
            shown.on("pageerror", lambda error: found.append(str(error)))
            shown.emulate_media(media="print" if scheme == "print" else "screen")
            shown.goto(page.as_uri())
            shown.wait_for_function(
                "() => [...document.querySelectorAll('.chart')].every((one) => one.children.length)"
            )
            found.extend(f"{width} {scheme}: {fault}" for fault in shown.evaluate(FAULTS))
            shown.close()
    return found


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed on this machine.")
    with playwright.sync_playwright() as p:
        started = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_report_can_be_read_at_every_width_light_dark_and_on_paper(tmp_path, made, browser, name):
    assert faults_of(browser, tm.report(PAGES[name](made), tmp_path / "page.html")) == []


@pytest.mark.slow
def test_both_pages_of_the_demo_can_be_read(tmp_path, monkeypatch, browser):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    for name in ("tiltmeter-demo.html", "tiltmeter-demo-theory.html"):
        assert faults_of(browser, tmp_path / name) == []


@pytest.mark.slow
def test_faults_are_found_where_there_are_some(tmp_path, browser):
    """Control: faint text, a wide box, a tab order by hand and an error in the console."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<body style='background:#fff'><main><p style='color:#999'>faint</p><div style='width:2000px'>wide</div>"
        "<a href='#' tabindex='3'>first</a></main><script>console.error('no')</script>"
    )
    text = " ".join(faults_of(browser, page))
    for fault in ("contrast 2.85: faint", "the page is", "DIV sticks out by", "tabindex 3", "no"):
        assert fault in text


@pytest.mark.slow
def test_tab_goes_down_the_page(tmp_path, made, browser):
    shown = browser.new_page(viewport={"width": 1440, "height": 900})
    shown.goto(tm.report(PAGES["two groups"](made), tmp_path / "page.html").as_uri())
    order = []
    for _ in range(60):
        shown.keyboard.press("Tab")
        order.append(
            shown.evaluate("() => [...document.querySelectorAll('a[href], summary')].indexOf(document.activeElement)")
        )
    stops = [place for place in order if place >= 0]
    last = stops.index(max(stops))
    assert stops[: last + 1] == list(range(last + 1))  # every link and fold, in the order of the page
    assert last + 1 == shown.locator("a[href], summary").count()
    shown.close()
