"""Many runs on the page: compared, grouped by seed, filtered by the thousand; a choice stays what it was."""

import importlib.util
import shutil
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("made_runs", Path(__file__).with_name("made_runs.py"))
_made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made)
write = _made.write

pytestmark = pytest.mark.slow

LINE = "#chart-runs svg .mark-line path"


def chosen(page):
    return page.eval_on_selector_all("#run-table tr[aria-selected=true]", "all => all.map((one) => one.dataset.run)")


def test_seeds_are_added_grouped_and_taken_apart(tmp_path, start_explorer, open_page):
    for seed in range(3):
        write(tmp_path / f"seed-{seed}", evaluations=12, seed=seed)
    write(tmp_path / "other", evaluations=12, lr=0.5)
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs?run=seed-0")
        page.wait_for_selector(LINE, state="attached")
        page.get_by_role("button", name="Add runs that differ by their seed").click()
        page.wait_for_function("() => document.querySelectorAll('#run-table tr[aria-selected=true]').length === 3")
        assert sorted(chosen(page)) == ["seed-0", "seed-1", "seed-2"]
        page.wait_for_function(f"() => document.querySelectorAll('{LINE}').length === 8")  # 3 x 2 thin, 2 means
        page.get_by_label("seeds together").uncheck()
        page.wait_for_function(f"() => document.querySelectorAll('{LINE}').length === 6")
        assert "seeds=apart" in page.url
        page.get_by_role("checkbox", name="show other").check()
        page.wait_for_function("() => document.querySelectorAll('#compared tbody tr').length === 4")
        rows = page.locator("#compared tbody tr").all_inner_texts()
        assert sorted(row.split("\t")[0] for row in rows) == ["other", "seed-0", "seed-1", "seed-2"]
        page.close()


def test_time_is_log_or_linear_and_the_address_says_so(tmp_path, start_explorer, open_page):
    write(tmp_path / "mine", evaluations=30)
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs?run=mine")
        page.wait_for_selector(LINE, state="attached")
        before = page.locator(LINE).first.get_attribute("d")
        button = page.get_by_role("button", name="log time")
        assert button.get_attribute("aria-pressed") == "true"
        button.click()
        page.wait_for_function(
            f"before => ![null, before].includes(document.querySelector('{LINE}')?.getAttribute('d') ?? null)",
            arg=before,
        )
        assert "time=linear" in page.url
        page.close()


def test_what_is_chosen_stays_chosen_when_a_run_appears(tmp_path, start_explorer, open_page):
    write(tmp_path / "first")
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs")
        page.wait_for_selector("#run-table tr[aria-selected=true]")
        assert chosen(page) == ["first"]  # who comes without a choice sees the newest run
        write(tmp_path / "second")
        page.wait_for_function("() => document.querySelectorAll('#run-table tbody tr').length === 2")
        assert chosen(page) == ["first"]
        page.get_by_label("follow the latest").check()
        page.wait_for_function(
            "() => document.querySelector('#run-table tr[aria-selected=true]')?.dataset.run === 'second'"
        )
        page.close()


def test_an_empty_folder_says_what_to_do(tmp_path, start_explorer, open_page):
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs")
        page.wait_for_function("() => document.querySelector('#why')?.textContent.startsWith('There are no runs')")
        write(tmp_path / "first")
        page.wait_for_selector(LINE, state="attached")
        page.close()


def test_a_click_anywhere_in_a_row_chooses_it_and_without_a_choice_there_is_no_empty_chart(
    tmp_path, start_explorer, open_page
):
    for name in ("one", "two"):
        write(tmp_path / name, evaluations=12, lr=0.1 if name == "one" else 0.2)
    (tmp_path / "study" / "cells").mkdir(parents=True)
    (tmp_path / "study" / "study.json").write_text("{}")
    write(tmp_path / "study" / "cells" / "0f0f", lr=0.3)
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs?run=one")
        page.wait_for_selector(LINE, state="attached")
        page.locator("#run-table tr[data-run=two] td").nth(4).click()
        page.wait_for_function("() => document.querySelector('tr[data-run=two]').ariaSelected === 'true'")
        assert chosen(page) == ["two"]
        page.locator("#run-table tr[data-run=one] td").nth(5).click(modifiers=["Control"])
        assert sorted(chosen(page)) == ["one", "two"]
        page.wait_for_function("() => document.querySelector('#why').textContent.startsWith('two: ')")
        for name in ("one", "two"):
            page.locator(f"#run-table tr[data-run={name}] td").nth(2).click(modifiers=["Control"])
        assert chosen(page) == []
        assert page.locator("#why").inner_text().startswith("Click a run in the table")
        for part in ("#chart-runs", "#curve", "#stopping", "#stop-at"):
            assert not page.locator(part).is_visible(), part
        text = page.locator("#main").inner_text()
        assert "2 of 2 runs shown. 1 more was made by studies and left out" in text
        page.get_by_label("runs of studies").check()
        page.wait_for_selector("#run-table tr[data-run='study/cells/0f0f']")
        page.goto(found.address + "#forecast")
        page.wait_for_function("() => document.querySelectorAll('#over option').length > 1")
        runs = page.eval_on_selector_all("#over option", "all => all.map((one) => one.value)")
        assert sorted(runs) == ["", "one", "two"]
        page.close()


def test_two_thousand_runs_do_not_stall_the_page(tmp_path, start_explorer, open_page):
    write(tmp_path / "r0", evaluations=12)
    for number in range(1, 2000):
        shutil.copytree(tmp_path / "r0", tmp_path / f"r{number}")
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs")
        page.wait_for_function("() => document.body.textContent.includes('100 of 2000 runs shown')")
        page.get_by_label("filter").fill("r1999")
        page.wait_for_function("() => document.querySelectorAll('#run-table tbody tr').length <= 2")
        page.get_by_role("link", name="r1999", exact=True).click()
        page.wait_for_selector(LINE, state="attached")
        assert chosen(page) == ["r1999"]
        page.get_by_label("filter").fill("")
        page.get_by_role("button", name="Show more").click()
        page.wait_for_function("() => document.querySelectorAll('#run-table tbody tr').length >= 400")
        awake = page.evaluate(
            """async () => { let longest = 0; let before = performance.now();
            for (let i = 0; i < 120; i += 1) { await new Promise(requestAnimationFrame); const now = performance.now();
            longest = Math.max(longest, now - before); before = now; } return longest; }"""
        )
        assert awake < 2000
        page.close()
