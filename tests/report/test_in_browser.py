"""The demo page in a real browser: all charts drawn, no error, no request off the machine."""

import re
import shutil
import subprocess

import pytest

from tiltmeter.cli import main

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--virtual-time-budget=10000", "--enable-logging=stderr", "--v=0",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed on this machine.")
def test_the_demo_page_draws_all_its_charts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    page = tmp_path / "tiltmeter-demo.html"
    # Whatever name is looked up resolves to nowhere, so that a request off the machine would fail and be logged.
    command = [CHROMIUM, *FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run([*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120)
    charts = page.read_text(encoding="utf-8").count('<div class="chart"')
    drawn = len(re.findall(r'<div class="chart[^"]*" id="chart\d+"[^>]*>.*?<(?:canvas|svg)', done.stdout, re.DOTALL))
    assert charts >= 6
    assert drawn == charts
    problems = [line for line in done.stderr.splitlines() if "CONSOLE" in line or "ERR_NAME_NOT_RESOLVED" in line]
    assert problems == []
