"""Pages in a real browser: all charts of the demo's theory drawn, no error, no request off the machine; few words at first."""

import re
import shutil
import subprocess

import pytest

import tiltmeter as tm
from tiltmeter.cli import main

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--virtual-time-budget=10000", "--enable-logging=stderr", "--v=0",
]  # fmt: skip

CELLS = [(380, 20, 60, 40), (340, 60, 30, 70), (300, 30, 40, 40), (280, 50, 35, 50), (150, 12, 20, 12)]
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
