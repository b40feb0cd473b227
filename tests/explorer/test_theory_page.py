"""The theory page in Chromium: sliders by keyboard and pointer, presets, the map, the address, one file."""

import re
from urllib.parse import urlsplit

import pytest


def path_of(page, chart="loss"):
    return page.locator(f"#chart-{chart} svg .mark-line path").first.get_attribute("d")


def sentence(page):
    return page.locator("#why").inner_text()


def test_a_slider_moves_the_curves_in_the_browser(explorer, open_page):
    page = open_page(explorer.address + "#theory")
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    assert sentence(page) == "Group − has the lower loss until t = 5.643 (larger variance), then group + (more data)."
    before = path_of(page)
    slider = page.get_by_role("slider", name="Share of +", exact=True)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "before => document.querySelector('#chart-loss svg .mark-line path').getAttribute('d') !== before", arg=before
    )
    page.wait_for_function("() => location.hash.includes('rho=0.79')")
    assert sentence(page) != "Group − has the lower loss until t = 5.643 (larger variance), then group + (more data)."


@pytest.mark.slow
def test_the_theory_page_whole(explorer, open_page):
    page = open_page(explorer.address + "#theory")
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    assert page.get_by_role("slider").count() == 13
    page.get_by_role("button", name="three phases").click()
    assert (
        sentence(page)
        == "Group + has the lower loss until t = 1.128 (shift and label imbalance), then group − until t = 11.88 "
        "(larger variance), then group + (more data)."
    )
    assert page.get_by_role("list", name="Phases").get_by_role("listitem").count() == 3
    assert page.locator("#said").get_attribute("aria-live") == "polite"
    page.wait_for_function("() => document.querySelector('#said').textContent.includes('11.88')")
    page.wait_for_function("() => location.hash.includes('shift=4')")
    address = page.evaluate("() => location.href")
    for chart in ("drivers", "order"):
        page.locator(f"#chart-{chart}").scroll_into_view_if_needed()
        page.wait_for_selector(f"#chart-{chart} svg .mark-line path[d^=M]", state="attached")
    page.locator("#chart-rates").scroll_into_view_if_needed()
    page.wait_for_selector("#chart-rates svg .mark-line path[d^=M]", state="attached")
    page.wait_for_selector("#stopping tbody tr")
    assert page.locator("#stopping tbody tr").count() == 3
    assert (
        "tm.teacher_mixture(rho=0.7, shift=4, variance=(0.1, 1), overlap=0.9, shift_overlap=(0.1489"
        in page.locator("#copied").inner_text()
    )
    page.get_by_label("as", exact=True).select_option("shell")
    page.wait_for_function("() => document.querySelector('#copied').textContent.startsWith('tiltmeter predict')")
    again = open_page(address)
    again.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    assert sentence(again) == sentence(page)


@pytest.mark.slow
def test_the_map_follows_clicks_and_arrow_keys(explorer, open_page):
    page = open_page(explorer.address + "#theory")
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    canvas = page.locator(".map canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + 0.1 * box["width"], box["y"] + 0.1 * box["height"])
    page.wait_for_function(
        "() => document.querySelector('#why').textContent.startsWith('Group − has the lower loss throughout')"
    )
    canvas.focus()
    label = canvas.get_attribute("aria-label")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "label => document.querySelector('.map canvas').getAttribute('aria-label') !== label", arg=label
    )


@pytest.mark.slow
def test_what_cannot_be_is_said(explorer, open_page):
    page = open_page(explorer.address + "#theory?lr=3")
    page.wait_for_selector("#why.refused")
    assert sentence(page).startswith("Training diverges: the learning rate should stay below 2.15")
    page = open_page(explorer.address + "#theory?shift=1&overlap=0&alignment=0.9,0.9")
    page.wait_for_selector("#why.refused")
    assert sentence(page).startswith("No data has these overlaps together")


@pytest.mark.slow
def test_a_saved_lesson_works_from_a_disk_without_any_request(explorer, open_page, tmp_path, browser):
    answer = explorer.ask("/lesson.html?rho=0.7")
    assert answer.status == 200
    file = tmp_path / "lesson.html"
    file.write_text(answer.text, encoding="utf-8")
    explorer_requests = []
    page = open_page(file.as_uri())
    page.on("request", lambda request: explorer_requests.append(request.url))
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    assert re.search(r"lower loss", sentence(page))
    assert page.get_by_role("slider", name="Share of +", exact=True).get_attribute("aria-valuetext") == "0.7"
    page.wait_for_selector("#stopping tbody tr")
    page.get_by_role("button", name="three phases").click()
    page.wait_for_function("() => document.querySelector('#why').textContent.includes('11.88')")
    assert [url for url in explorer_requests if urlsplit(url).scheme not in ("file", "data", "blob")] == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (380, "light")])
def test_nothing_is_wider_than_the_window(explorer, open_page, width, scheme):
    page = open_page(explorer.address + "#theory", width=width, color_scheme=scheme)
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    for part in ("form", ".shown", ".more"):
        share = page.locator(f".columns > {part}").bounding_box()["width"] / width
        assert share > (0.85 if width < 600 else 0.2), part


@pytest.mark.slow
def test_everything_can_be_reached_by_keyboard(explorer, open_page):
    page = open_page(explorer.address + "#theory")
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "() => document.activeElement.id || document.activeElement.tagName + ':' + document.activeElement.textContent.slice(0, 20)"
            )
        )
    assert {"slider-rho", "slider-lr", "map-across", "copied", "BUTTON:three phases", "CANVAS:"} <= reached


@pytest.mark.slow
def test_a_slider_is_dragged_by_the_pointer(explorer, open_page):
    page = open_page(explorer.address + "#theory")
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    slider = page.get_by_role("slider", name="Share of +", exact=True)
    before, box = path_of(page), slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.8 * box["width"], middle)
    page.mouse.down()
    seen = set()
    for share in (0.7, 0.6, 0.5, 0.4, 0.3):
        page.mouse.move(box["x"] + share * box["width"], middle)
        page.wait_for_timeout(60)
        seen.add(path_of(page))
    page.mouse.up()
    assert before not in seen
    assert len(seen) >= 3  # the curves move with the pointer, not only when it is let go
    page.wait_for_function("() => location.hash.includes('rho=')")
    assert 0.2 < float(slider.get_attribute("aria-valuetext")) < 0.4


@pytest.mark.slow
def test_words_are_explained_on_hover_and_on_focus(explorer, open_page):
    page = open_page(explorer.address + "#theory")
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    word = page.locator(".term", has_text="crossing").first
    shown = "(one) => getComputedStyle(one, '::after').content"
    assert word.evaluate(shown) == "none"
    word.hover()
    assert "A moment at which the lead passes" in word.evaluate(shown)
    page.mouse.move(0, 0)
    assert word.evaluate(shown) == "none"
    word.focus()
    assert "A moment at which the lead passes" in word.evaluate(shown)
    label = page.locator("label[for=slider-rho]")
    label.hover()
    assert "How much of the data belongs to each group" in label.evaluate(shown)


@pytest.mark.slow
def test_a_first_visitor_is_told_in_plain_words(explorer, open_page):
    page = open_page(explorer.address + "#theory")
    page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    plainly = page.locator("#plainly")
    assert plainly.inner_text() == (
        "At first the model does better on −, whose inputs vary more; then on +, which has more data."
    )
    pressed = page.locator("[aria-label=Presets] button[aria-pressed=true]")
    page.wait_for_function(
        "() => document.querySelectorAll('[aria-label=Presets] button[aria-pressed=true]').length === 1"
    )
    assert pressed.inner_text() == "centred crossing"
    assert (
        page.locator("#preset-about").inner_text() == "No shift; − has three times the variance, + four times the data."
    )
    page.get_by_role("button", name="no bias").click()
    assert plainly.inner_text() == "The model is equally good for both groups at all times."
    assert pressed.inner_text() == "no bias"
    page.get_by_role("slider", name="Share of +", exact=True).focus()
    page.keyboard.press("PageUp")
    page.wait_for_function(
        "() => document.querySelectorAll('[aria-label=Presets] button[aria-pressed=true]').length === 0"
    )
    page.get_by_role("link", name="the first lesson").click()
    page.wait_for_selector("text=Question 1 of 3")


@pytest.mark.slow
def test_a_lesson_is_saved_and_a_program_copied_by_their_buttons(explorer, open_page, tmp_path):
    page = open_page(explorer.address + "#theory?rho=0.6", permissions=["clipboard-read", "clipboard-write"])
    page.wait_for_function("() => document.querySelector('#copied')?.textContent.includes('rho=0.6')")
    page.get_by_role("button", name="Copy").click()
    page.wait_for_function("() => document.body.textContent.includes('copied')")
    assert page.evaluate("() => navigator.clipboard.readText()") == page.locator("#copied").text_content()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Save as lesson").click()
    waiting.value.save_as(tmp_path / "lesson.html")
    saved = open_page((tmp_path / "lesson.html").as_uri())
    saved.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
    assert saved.get_by_role("slider", name="Share of +", exact=True).get_attribute("aria-valuetext") == "0.6"
    assert saved.locator("#why").inner_text() == page.locator("#why").inner_text()
