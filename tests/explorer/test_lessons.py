"""Lessons: every sentence is what the theory says, every number in the words is a number of the curves."""

from urllib.parse import parse_qsl

import pytest

from tiltmeter.explorer.lessons import NAMES, lesson_named, lessons
from tiltmeter.explorer.theory_answers import theory_answers

STEPS = [(lesson.name, place, step) for lesson in lessons() for place, step in enumerate(lesson.steps)]
SLOW = [
    pytest.param(step, marks=pytest.mark.slow if "samples" in step.state else (), id=f"{name}-{place + 1}")
    for name, place, step in STEPS
]


def test_five_lessons_are_shipped():
    assert len(NAMES) == len(lessons()) == 5
    assert all(len(lesson.steps) >= 3 for lesson in lessons())
    with pytest.raises(ValueError, match=r"There is no lesson 'alchemy'. There are: one-crossing,"):
        lesson_named("alchemy")


@pytest.mark.parametrize("step", SLOW)
def test_a_step_says_what_the_theory_says(step):
    assert theory_answers(dict(parse_qsl(step.state)))["sentence"] == step.sentence
    assert 0 <= step.answer < len(step.choices)


def losses(state):
    told = theory_answers(dict(parse_qsl(state)))
    return told["times"], told["curves"]["loss"]


def test_the_price_of_the_cure_is_as_told():
    plain = losses("rho=0.9&variance=0.5,0.5&overlap=0.5")[1][-1]
    cured = losses("rho=0.9&variance=0.5,0.5&overlap=0.5&weights=1,9")[1][-1]
    slower = losses("rho=0.9&variance=0.5,0.5&overlap=0.5&weights=1,9&lr=0.05")[1][-1]
    assert [round(one, 2) for one in plain] == [0.19, 0.45] or [round(one, 2) for one in plain] == [0.19, 0.44]
    assert [round(one, 2) for one in cured] == [0.30, 0.30]
    assert [round(one, 2) for one in slower] == [0.28, 0.28]
    assert round(0.9 * plain[0] + 0.1 * plain[1], 2) == 0.22
    assert round(plain[1] - cured[1], 2) == 0.15
    assert round(cured[0] - plain[0], 2) == 0.11


@pytest.mark.slow
def test_the_two_clocks_are_as_told():
    for samples, plus, minus in (("2", 17, 7), ("8", 40, 11)):
        times, curves = losses(f"rho=0.8&variance=1,1&overlap=0.5&samples={samples}")
        best = [times[min(range(len(times)), key=lambda i, g=g: curves[i][g])] for g in (0, 1)]
        assert best[0] == pytest.approx(plus, rel=0.1)
        assert best[1] == pytest.approx(minus, rel=0.1)


def test_only_lessons_that_exist_can_be_saved(explorer):
    assert explorer.ask("/lesson.html?lesson=../../etc").status == 400


@pytest.mark.slow
def test_a_lesson_can_be_saved(explorer):
    page = explorer.ask("/lesson.html?lesson=one-crossing")
    assert page.status == 200
    assert "One crossing" in page.text
    assert page.getheader("Content-Disposition") == 'attachment; filename="one-crossing.html"'


@pytest.mark.slow
def test_a_lesson_in_the_browser_from_a_disk(explorer, open_page, tmp_path):
    file = tmp_path / "lesson.html"
    file.write_text(explorer.ask("/lesson.html?lesson=two-clocks").text, encoding="utf-8")
    page = open_page(file.as_uri())
    page.get_by_label("no", exact=True).check()
    page.get_by_role("button", name="Reveal").click()
    page.wait_for_selector("#chart-loss svg .mark-line path", state="attached")
    assert page.locator("#why").inner_text().startswith("Right. Group + has the lower loss throughout")
    page.get_by_role("link", name="Next").click()
    page.wait_for_function("() => document.body.textContent.includes('Question 2 of 3')")
    page.get_by_label("+", exact=True).check()
    page.get_by_role("button", name="Reveal").click()
    page.wait_for_selector("#chart-loss svg .mark-line path", state="attached")
    page.wait_for_function("() => document.querySelector('#why').textContent.startsWith('Not quite: −.')")
    assert "second clock" in page.locator("#because").inner_text()


@pytest.mark.slow
def test_lessons_on_the_served_page(explorer, open_page):
    page = open_page(explorer.address + "#lessons")
    page.wait_for_selector("article")
    assert page.get_by_role("article").count() == 5
    page.get_by_role("link", name="Three phases").click()
    page.get_by_role("button", name="Reveal").click()
    page.wait_for_selector("#chart-loss svg .mark-line path", state="attached")
    page.get_by_role("link", name="Play with this problem").click()
    page.wait_for_selector("#slider-rho")
    assert page.get_by_role("slider", name="Share of +", exact=True).get_attribute("aria-valuetext") == "0.7"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_lesson_works_from_a_disk_to_its_last_question(explorer, open_page, tmp_path, name):
    file = tmp_path / f"{name}.html"
    file.write_text(explorer.ask(f"/lesson.html?lesson={name}").text, encoding="utf-8")
    page = open_page(file.as_uri())
    lesson = lesson_named(name)
    for place, step in enumerate(lesson.steps, 1):
        page.wait_for_selector(f"text=Question {place} of {len(lesson.steps)}")
        page.get_by_label(step.choices[step.answer], exact=True).check()
        page.get_by_role("button", name="Reveal").click()
        page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
        page.wait_for_function("() => document.querySelector('#why').textContent.startsWith('Right. ')")
        said = page.locator("#why").inner_text().replace("−", "-")
        assert said == f"Right. {step.sentence}".replace("−", "-")
        assert page.locator("#because").inner_text() == step.why
        if place < len(lesson.steps):
            page.get_by_role("link", name="Next").click()
