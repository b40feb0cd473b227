"""The runs page in Chromium: live evaluations, hostile names, a killed server, a deleted run."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tiltmeter

_spec = importlib.util.spec_from_file_location("made_runs", Path(__file__).with_name("made_runs.py"))
_made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made)
write, day, hostile_folder = _made.write, _made.day, _made.hostile_folder

pytestmark = pytest.mark.slow

WRITER = textwrap.dedent(
    """
    import sys, time, xarray as xr
    from tiltmeter.record import Origin, Recorder
    with Recorder(sys.argv[1], clock="step", origin=Origin("example")) as recorder:
        for step in range(1, int(sys.argv[2]) + 1):
            values = [1.0 / step, 0.3]
            recorder.append(step, {"loss": xr.DataArray(values, dims="group", coords={"group": ["a", "b"]})})
            time.sleep(float(sys.argv[3]))
    """
)


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tiltmeter.__file__).parents[1])}


def writing(path, evaluations, pause):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(evaluations), str(pause)], env=ENVIRONMENT)


def test_a_live_run_grows_on_the_page(tmp_path, start_explorer, open_page):
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs?follow=latest")
        page.wait_for_selector("#run-table")
        writer = writing(tmp_path / "live", 120, 0.1)
        page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
        assert page.get_by_role("row").filter(has_text="live").get_attribute("aria-selected") == "true"
        write(tmp_path / "older")
        page.wait_for_function(
            "() => document.querySelector('#run-status').textContent.includes('120 evaluations, finished')"
        )
        assert writer.wait(30) == 0
        page.wait_for_selector("#stopping tbody tr")
        page.close()


def test_a_killed_server_comes_back_and_no_look_is_lost_or_doubled(tmp_path, start_explorer, open_page, browser):
    with start_explorer(tmp_path) as first:
        page = browser.new_page()
        page.set_default_timeout(240_000)
        page.goto(first.address + "#runs?run=live")
        page.wait_for_selector("#run-status", state="attached")
        writer = writing(tmp_path / "live", 150, 0.1)
        page.wait_for_function("() => /live: \\d+ evaluations/.test(document.querySelector('#run-status').textContent)")
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        page.wait_for_function("() => document.querySelector('#run-status').textContent.includes('does not answer')")
        with start_explorer(tmp_path, port=first.port) as second:
            assert second.port == first.port
            page.wait_for_function(
                "() => document.querySelector('#run-status').textContent.includes('150 evaluations, finished')"
            )
            assert writer.wait(30) == 0
            told = second.json("/api/curves?run=live&curve=loss")["live"]
            assert told["times"] == [float(step) for step in range(1, 151)]
            page.close()


def test_hostile_names_are_shown_and_not_obeyed(tmp_path, start_explorer, open_page):
    root = hostile_folder(tmp_path / "root")
    with start_explorer(root) as found:
        page = open_page(found.address + "#runs")
        page.wait_for_function("() => document.querySelectorAll('#run-table tbody tr').length >= 30")
        boxes = page.get_by_role("checkbox", name="show")
        for place in range(6):
            boxes.nth(place).check()
        page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
        page.wait_for_timeout(1500)
        assert page.evaluate("() => window.pwned") is None
        assert page.locator("main script, main img, main iframe").count() == 0
        page.close()


def test_a_run_deleted_while_shown_is_said_to_be_gone(tmp_path, start_explorer, open_page):
    write(tmp_path / "mine")
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs?run=mine")
        page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
        shutil.rmtree(tmp_path / "mine")
        page.wait_for_function("() => document.querySelector('#run-status').textContent.includes('no longer there')")
        page.close()


def test_the_report_is_a_click_away_and_has_no_rights_of_the_page(tmp_path, start_explorer, open_page):
    write(tmp_path / "mine")
    with start_explorer(tmp_path) as found:
        answer = found.ask("/report?run=mine")
        assert answer.status == 200
        assert answer.getheader("Content-Security-Policy").startswith("sandbox allow-scripts")
        page = open_page(found.address + "#runs?run=mine")
        page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="Report").click()
        report = opened.value
        report.wait_for_selector("svg[aria-label='Loss of every group by step'] .line", state="attached")
        assert report.evaluate("() => window.origin") == "null"
        assert report.evaluate("() => fetch('/api/start').then(() => 'read', () => 'refused')") == "refused"
        report.close()
        page.close()


@pytest.mark.parametrize("width", [390, 640])
def test_a_phone_and_200_percent_zoom_show_everything_below_one_another(tmp_path, start_explorer, open_page, width):
    write(tmp_path / "mine")
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs?run=mine", width=width, device_scale_factor=2)
        page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
        page.wait_for_selector("#run-table tbody tr", state="attached")
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
        for part in (".shown", ".panel"):
            assert page.locator(f".columns > {part}").bounding_box()["width"] > 0.85 * width, part
        legend = page.locator("#chart-runs svg .role-legend-label text").all_text_contents()
        assert legend == ["a", "b"]
        page.close()


def test_eight_pages_at_once_stay_live(tmp_path, start_explorer, open_page):
    with start_explorer(tmp_path) as found:
        write(tmp_path / "mine")
        pages = [open_page(found.address + "#runs?run=mine", width=700) for _ in range(8)]
        for page in pages:
            page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
        for page in pages:
            page.close()


def test_a_days_run_of_100_000_looks_is_drawn_and_the_page_stays_awake(tmp_path, start_explorer, open_page):
    day(tmp_path / "day")
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs?run=day")
        page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
        status = page.locator("#run-status").inner_text()
        assert "day: 100000 evaluations, died" in status
        assert "drawn (every extreme and every crossing kept)" in status
        drawn = page.eval_on_selector_all(
            "#chart-runs svg .mark-line path", "all => all.map((one) => one.getAttribute('d').length)"
        )
        assert max(drawn) < 100_000
        awake = page.evaluate(
            """async () => { let longest = 0; let before = performance.now();
            for (let i = 0; i < 120; i += 1) { await new Promise(requestAnimationFrame); const now = performance.now();
            longest = Math.max(longest, now - before); before = now; } return longest; }"""
        )
        assert awake < 2000  # a page that draws 100,000 looks at every poll stops for many seconds
        page.close()
