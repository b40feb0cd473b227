"""Every page in Chromium: by keyboard alone, in grey, narrow and wide, light and dark; studies and forecasts."""

import importlib.util
from pathlib import Path

import pytest

import tiltmeter as tm
from tiltmeter.plugins import PARTS, is_installed

lab = pytest.importorskip("tiltmeter_lab")
example_cell = pytest.importorskip("tiltmeter_lab.study.example_cell")

_spec = importlib.util.spec_from_file_location("made_runs", Path(__file__).with_name("made_runs.py"))
_made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made)
write = _made.write

pytestmark = pytest.mark.slow

FAULTS = (Path(__file__).parents[1] / "page_faults.js").read_text(encoding="utf-8")
PAGES = [
    "start",
    "theory",
    "runs",
    "forecast",
    "studies",
    *(["verdicts"] if is_installed(PARTS, "evidence") else []),
    "lessons",
]
#: Something that is there when a page has its content.
READY = {
    "start": "input[type=file]",
    "theory": "#chart-loss svg .mark-line path[d^=M]",
    "runs": "#run-table tbody tr",
    "forecast": "#dial-lr",
    "studies": "#heat-map td a",
    "verdicts": "#verdicts details",
    "lessons": "article",
}
FILE = """
[data]
source = "people.csv"
label = "income"
group = "sex"
[model]
hidden = [8]
[training]
lr = 0.05
steps = 60
batch = 32
loss = "logistic"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("pages") / "runs"
    for seed in range(3):
        write(root / f"seed-{seed}", evaluations=12, seed=seed)
    lab.Study(example_cell.final_gap, {"rho": [0.6, 0.9], "lr": [0.1, 0.2]}, seeds=2, to=root / "gaps").run(
        progress=False, jobs=1
    )
    tm.save(tm.predict(*tm.theory.cases.centred_crossing()), root / "theory")
    rows = [
        f"{i % 7},{(3 * i) % 5},{'f' if i % 3 else 'm'},{int((i % 7) * (1 if i % 3 else -1) > 0)}" for i in range(90)
    ]
    (root / "people.csv").write_text("\n".join(["a,b,sex,income", *rows]))
    (root / "training.toml").write_text(FILE)
    return root


@pytest.fixture(scope="module")
def served(folder, start_explorer):
    with start_explorer(folder, "--allow-runs") as found:
        yield found


def opened(open_page, served, page, **settings):
    found = open_page(f"{served.address}#{page}", **settings)
    found.wait_for_selector(READY[page.partition("?")[0]], state="attached")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_every_width_and_its_controls_have_names(served, open_page, page):
    found = opened(open_page, served, page)
    for width in (1280, 640, 390):
        found.set_viewport_size({"width": width, "height": 800})
        found.wait_for_function("() => document.documentElement.scrollWidth <= window.innerWidth")
    nameless = found.evaluate(
        """() => [...document.querySelectorAll('main input, main select, main button, main canvas')].filter((one) =>
        !(one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim())).map((one) =>
        one.outerHTML)"""
    )
    assert nameless == []
    assert found.locator("h1").count() == 1
    found.close()


@pytest.mark.parametrize("page", [*PAGES, "runs?run=seed-0", "forecast?source=file/training.toml"])
def test_a_page_can_be_read_at_every_width_light_dark_and_on_paper(served, open_page, page):
    for scheme in ("light", "dark"):
        found = opened(open_page, served, page, color_scheme=scheme)
        found.wait_for_function(
            "() => !/Working out|takes some seconds|…$/.test(document.querySelector('#why')?.textContent)"
        )
        for width in (1440, 1024, 390):
            found.set_viewport_size({"width": width, "height": 900})
            found.wait_for_function("() => document.documentElement.scrollWidth <= window.innerWidth")
            for media in ("screen", "print") if scheme == "light" else ("screen",):
                found.emulate_media(media=media)
                assert found.evaluate(FAULTS) == [], (page, scheme, width, media)
        found.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_used_by_keyboard_alone(served, open_page, page):
    found = opened(open_page, served, page)
    # The elements themselves are remembered: their places change while the page is drawn.
    found.evaluate("() => { window.reached = new Set(); }")
    for _ in range(90):
        found.keyboard.press("Tab")
        found.evaluate("() => { window.reached.add(document.activeElement); }")
    wanted = found.evaluate(
        """() => { return [...document.querySelectorAll('main a[href], main button:not(:disabled), main input, main select:not(:disabled), main canvas, main summary')]
          .filter((one) => one.checkVisibility() && one.tabIndex >= 0).slice(0, 40).map((one) => [window.reached.has(one), one.outerHTML.slice(0, 80)]); }"""
    )
    missed = [text for was_reached, text in wanted if not was_reached and 'type="radio"' not in text]
    assert missed == []
    ring = found.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert ring in ("solid", "auto", "none")
    found.close()


def test_curves_differ_without_colours(served, open_page):
    """In grey and in forced colours lines are told apart by dashes and by their names."""
    found = opened(open_page, served, "theory", forced_colors="active")
    dashes = found.eval_on_selector_all(
        "#chart-drivers .mark-line path", "all => all.map((one) => one.getAttribute('stroke-dasharray'))"
    )
    assert len(set(dashes)) == len(dashes) == 5
    ends = found.locator("#chart-loss .part-ends text").all_text_contents()
    assert ends == ["+", "−"]
    assert found.locator(".maplegend i").all_text_contents() != []
    found.close()


def test_nothing_jumps_while_a_slider_moves(served, open_page):
    found = opened(open_page, served, "theory")
    place = lambda: found.locator("#chart-loss").bounding_box()  # noqa: E731
    before = place()
    slider = found.get_by_role("slider", name="Variance of −", exact=True)
    slider.focus()
    for _ in range(12):
        found.keyboard.press("ArrowLeft")
        assert place() == before
    found.close()


def test_a_third_group_and_a_fixed_set_are_shown(served, open_page):
    found = opened(open_page, served, "theory")
    found.get_by_label("a third group").check()
    found.wait_for_function("() => document.querySelectorAll('#chart-loss .part-ends text').length === 3")
    assert found.get_by_role("slider", name="Share of the third group").is_visible()
    assert "tm.theory.Mixture(" in found.locator("#copied").inner_text()
    found.get_by_label("used").select_option("2")
    found.wait_for_function("() => location.hash.includes('samples=2') && !location.hash.includes('third')")
    found.wait_for_function("() => document.querySelectorAll('#chart-loss .part-ends text').length === 2")
    found.close()


@pytest.mark.parametrize("state", ["rho=0.7", "third=0.2,1,0.2&weights=1,2"])
def test_the_copied_python_runs_and_says_the_same(served, open_page, state):
    found = open_page(f"{served.address}#theory?{state}")
    found.wait_for_function(
        "() => document.querySelector('#copied')?.textContent.includes('import') && "
        "document.querySelector('#why').textContent.includes('loss')"
    )
    said = []
    exec(found.locator("#copied").text_content(), {"print": lambda value: said.append(str(value))})
    told = found.locator("#why").text_content().replace("−", "-")
    assert said[0].splitlines()[0] == told
    found.close()


def test_a_map_over_any_two_parameters(served, open_page):
    found = opened(open_page, served, "theory")
    found.get_by_label("across", exact=True).select_option("lr")
    found.get_by_label("up", exact=True).select_option("until")
    canvas = found.locator(".map canvas")
    canvas.focus()
    found.keyboard.press("Shift+ArrowUp")
    found.wait_for_function("() => location.hash.includes('until=')")
    assert "Show until t" in canvas.get_attribute("aria-label")
    found.get_by_label("up", exact=True).select_option("lr")
    assert found.get_by_text("Choose two different parameters.").is_visible()
    found.close()


def test_studies_show_their_grid_numbers_and_shares(served, open_page):
    found = opened(open_page, served, "studies")
    assert found.locator("#why").inner_text() == "8 of 8 cells done, 0 failed, 0 left."
    assert found.locator("#status-grid .mark-done").all_text_contents() == ["●●"] * 4
    assert found.locator("#heat-map td a").count() == 4
    found.wait_for_selector("#shares tbody tr")
    assert "rho" in found.locator("#shares").inner_text()
    found.get_by_label("across").select_option("lr")
    found.wait_for_function("() => location.hash.includes('across=lr')")
    found.locator("#heat-map td a").first.click()
    found.wait_for_function("() => location.hash.startsWith('#runs?run=gaps')")
    found.close()


def test_a_file_is_forecast_bent_improved_and_trained_in_the_browser(served, open_page):
    pytest.importorskip("torch")
    found = open_page(f"{served.address}#forecast?source=file/training.toml")
    found.wait_for_selector("#chart-forecast svg .mark-line path", state="attached")
    found.wait_for_function("() => document.querySelector('#promise').textContent.length > 20")
    slider = found.get_by_role("slider", name="Share of f")
    slider.focus()
    found.keyboard.press("ArrowRight")
    found.wait_for_function("() => location.hash.includes('shares=')")
    assert not found.locator("#why.refused").count()
    found.get_by_role("button", name="Reset").click()
    found.wait_for_function("() => !location.hash.includes('shares=')")
    found.get_by_role("button", name="Best weights").click()
    found.wait_for_function("() => /forecast to/.test(document.querySelector('#job').textContent)")
    found.get_by_role("button", name="Compare interventions").click()
    found.wait_for_selector("#compared tbody tr")
    assert found.locator("#compared tbody tr").count() == 12
    found.get_by_role("button", name="group DRO").click()
    found.wait_for_function("() => location.hash.includes('law=group')")
    found.get_by_role("button", name="Train it").click()
    found.wait_for_function("() => document.querySelector('#job').textContent.startsWith('Trained')")
    found.wait_for_selector("#chart-forecast svg .mark-symbol path", state="attached")
    found.get_by_label("compare with").select_option("seed-0")
    found.wait_for_function("() => location.hash.includes('over=seed-0')")
    found.close()


def test_work_is_cancelled_in_the_browser_and_goes_on_after_it(served, open_page):
    pytest.importorskip("torch")
    pytest.importorskip("tiltmeter_lab")
    found = open_page(f"{served.address}#verdicts")
    found.wait_for_selector("#verdicts details")
    entry = found.locator("#verdicts > details").filter(has_text="learning-rates:")
    entry.locator("summary").first.click()
    entry.get_by_role("button", name="Run quick").click()
    found.get_by_role("button", name="Cancel").click()
    found.wait_for_function("() => document.querySelector('#job').textContent.includes('cancelled')")
    entry.get_by_role("button", name="Run quick").click()
    found.wait_for_function("() => document.querySelector('#job').textContent === 'learning-rates: done'")
    found.get_by_label("state").select_option(
        "nothing contradicted"
    )  # what is chosen stays while the list is read again
    found.wait_for_function(
        "() => document.querySelector('#verdicts > details strong').textContent === 'learning-rates'"
    )  # what was run here comes first
    assert found.get_by_label("state").input_value() == "nothing contradicted"
    found.close()


@pytest.mark.parametrize("name", ["Best weights", "Compare interventions", "Train it"])
def test_long_work_shows_progress_and_can_be_cancelled(served, open_page, name):
    pytest.importorskip("torch")
    steps = "?steps=60000" if name == "Train it" else ""
    found = open_page(f"{served.address}#forecast{steps}")
    found.get_by_role("button", name=name).click()
    bar = found.get_by_role("progressbar", name="Progress")
    bar.wait_for(state="visible")
    if name == "Train it":
        found.wait_for_function("() => /step [1-9]/.test(document.querySelector('#job').textContent)")
        assert 0 < bar.evaluate("(one) => one.value") < 1
        found.wait_for_selector("#chart-forecast svg .mark-symbol path", state="attached")
    found.get_by_role("button", name="Cancel").click()
    found.wait_for_function("() => document.querySelector('#job').textContent.startsWith('Cancelled.')")
    assert not bar.is_visible()
    found.get_by_role("slider", name="Learning rate").focus()  # the page goes on
    found.keyboard.press("ArrowRight")
    found.wait_for_function("() => location.hash.includes('lr=')")
    found.close()


def test_verdicts_are_filtered_by_paper(served, open_page):
    pytest.importorskip("tiltmeter_lab")
    found = opened(open_page, served, "verdicts")
    papers = found.get_by_label("paper").locator("option").all_text_contents()
    assert len(papers) > 5
    all_of_them = found.locator("#verdicts > details").count()
    found.get_by_label("paper").select_option(papers[1])
    shown = found.locator("#verdicts > details")
    assert 0 < shown.count() < all_of_them
    shown.first.locator("summary").first.click()
    assert papers[1] in shown.first.inner_text()
    assert "paper=" in found.url
    found.close()


def test_rules_move_the_stop_marker(served, open_page):
    found = open_page(f"{served.address}#runs?run=theory")
    found.get_by_role("button", name="best mean").click()
    text = found.locator("output[for=stop-at]").inner_text()
    assert text.startswith("t 2")
    assert "from its best" in text
    found.keyboard.press("ArrowLeft")
    found.wait_for_function("before => document.querySelector('output[for=stop-at]').textContent !== before", arg=text)
    found.close()
