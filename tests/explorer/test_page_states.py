"""What is chosen on a page: several runs by Ctrl-click, Back to what was chosen before, one job at a time."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

import tiltmeter as tm
from discovered_runs import made_run, margins, people

_spec = importlib.util.spec_from_file_location("made_runs", Path(__file__).with_name("made_runs.py"))
_made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made)

pytestmark = pytest.mark.slow


@pytest.fixture
def three(tmp_path, start_explorer):
    for name in ("first", "second", "third"):
        _made.write(tmp_path / name)
    with start_explorer(tmp_path) as explorer:
        yield explorer


def chosen(page):
    return page.eval_on_selector_all("#run-table tr[aria-selected=true]", "all => all.map((one) => one.dataset.run)")


@pytest.mark.parametrize("place", ["a", "td.state"])
@pytest.mark.parametrize("key", ["Control", "Meta"])
def test_a_click_with_ctrl_or_cmd_keeps_what_was_chosen(three, open_page, place, key):
    page = open_page(three.address + "#runs?run=first")
    row = page.locator("#run-table tr[data-run=second]")
    row.locator(place).click(modifiers=[key])
    assert sorted(chosen(page)) == ["first", "second"]
    assert "run=first&run=second" in page.url
    row.locator(place).click(modifiers=[key])
    assert chosen(page) == ["first"]
    row.locator(place).click()
    assert chosen(page) == ["second"]
    page.close()


def test_back_goes_back_within_the_page(three, open_page):
    page = open_page(three.address + "#runs?run=first")
    page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
    page.locator("#open-second").click()
    page.get_by_role("button", name="log time").click()
    page.get_by_role("link", name="Theory").click()
    slider = page.get_by_role("slider").first
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")  # what is being moved is no step of its own
    page.wait_for_function("() => location.hash.startsWith('#theory?')")
    page.go_back()
    page.wait_for_function("() => location.hash === '#runs?run=second&curve=loss&time=linear'")
    page.go_back()
    page.wait_for_function("() => location.hash === '#runs?run=second&curve=loss'")
    page.wait_for_selector("#run-table tr[data-run=second][aria-selected=true]")
    page.go_back()
    page.wait_for_selector("#run-table tr[data-run=first][aria-selected=true]")
    assert chosen(page) == ["first"]
    page.go_forward()
    page.wait_for_selector("#run-table tr[data-run=second][aria-selected=true]")
    page.close()


def test_a_button_that_waits_for_a_job_says_why(tmp_path, start_explorer, open_page):
    table = people()
    tm.save(made_run(margins(2000, late=table["job"] == "cook")), tmp_path / "mine")
    pd.DataFrame(table).to_csv(tmp_path / "people.csv", index=False)
    with start_explorer(tmp_path) as explorer:
        page = open_page(explorer.address + "#runs?run=mine")
        button = page.get_by_role("button", name="Find groups nobody named")
        button.click()
        assert button.is_disabled()
        page.get_by_text("One job at a time: wait for it, or cancel it.").wait_for()
        assert button.get_attribute("aria-describedby") == "job-reason"
        page.wait_for_selector("#found-groups table")
        assert button.is_enabled()
        assert page.get_by_text("One job at a time").is_hidden()
        page.close()


def test_what_was_never_allowed_stays_disabled_after_a_job(tmp_path, start_explorer, open_page):
    pytest.importorskip("torch")
    with start_explorer(tmp_path) as explorer:
        page = open_page(explorer.address + "#forecast")
        page.wait_for_selector("#forecast-key .legend", state="attached")
        best, train = (page.get_by_role("button", name=name) for name in ("Best weights", "Train it"))
        best.click()
        assert best.is_disabled()
        assert page.get_by_role("button", name="Compare interventions").is_disabled()
        page.wait_for_function("() => /forecast to/.test(document.querySelector('#job').textContent)")
        assert best.is_enabled()
        assert train.is_disabled()
        page.close()
