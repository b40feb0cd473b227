"""Verdicts as pages: everything that was found stands there, pictures are small, nothing is fetched."""

import re
from dataclasses import replace
from io import BytesIO

import pytest

from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.reproduce import reproduce, without
from tiltmeter_lab.verdict_page import read_sections, write_markdown
from tiltmeter_lab.verdicts import MOST_BYTES, against, in_short, small_png, write_verdicts


@pytest.fixture
def outcomes(toy, tmp_path):
    return [reproduce("toy", to=tmp_path / "runs"), without("toy", "full", "No images here.")]


def test_the_page_holds_every_verdict_and_its_pictures(outcomes, tmp_path):
    text = write_verdicts(outcomes, tmp_path / "verdicts.html").read_text()
    for part in ("Walks spread | far", "does not hold. They never do.", "not run", "No images here.", "3 seeds"):
        assert part in text
    assert '"mark"' in text
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://', text)


def test_the_markdown_has_tables_dates_and_small_pictures(outcomes, tmp_path):
    page = write_markdown(outcomes, tmp_path / "verdicts.md")
    text = page.read_text()
    assert "2 experiments: 1 claim holds, 1 does not, 1 was not run." in text
    assert re.search(r"\| \[toy\]\(#toy\) \| quick \| 3 \| 0 s \| .* \| 1 of 2 \|", text)
    assert "| [toy](#toy-full) | full |" in text
    assert re.search(r"\| Walks spread \\\| far \| spread: [\d.]+ ± 0.1, 3 seeds \| at least 0.5 \| holds \|", text)
    assert f"Scale quick, 3 seeds, 0 s, {outcomes[0].date}, tiltmeter" in text
    assert "Not run (full" in text
    assert "```" not in text
    (picture,) = re.findall(r"!\[Where they go\]\((.*)\)", text)
    assert 0 < (tmp_path / picture).stat().st_size < MOST_BYTES


def test_sections_of_other_experiments_stay_on_the_page(outcomes, tmp_path):
    page = write_markdown(outcomes, tmp_path / "verdicts.md")
    whole = page.read_text()
    write_markdown(outcomes[1:], page)
    assert page.read_text() == whole, "the quick section was kept, word for word and picture by picture"
    write_markdown(outcomes[:1], page)
    assert page.read_text() == whole
    assert [one.heading for one in read_sections(whole)] == ["toy", "toy (full)"]


def test_pictures_that_are_gone_from_the_page_are_gone_from_the_folder(outcomes, tmp_path):
    page = write_markdown(outcomes, tmp_path / "verdicts.md")
    assert len(list((tmp_path / "_static" / "verdicts").iterdir())) == 1
    write_markdown([replace(outcomes[0], pictures=())], page)
    assert not list((tmp_path / "_static" / "verdicts").iterdir())


def test_an_experiment_that_left_the_catalogue_leaves_the_page(outcomes, tmp_path, monkeypatch):
    page = write_markdown(outcomes, tmp_path / "verdicts.md")
    monkeypatch.delitem(EXPERIMENTS, "toy")
    assert "toy" not in write_markdown([], page).read_text()


def test_a_picture_shrinks_until_it_fits(monkeypatch):
    import vl_convert

    monkeypatch.setattr("tiltmeter_lab.verdicts._few_colours", lambda png: png)
    asked = []

    def draw(spec, scale):
        asked.append(scale)
        return b"." * int(MOST_BYTES * scale)

    monkeypatch.setattr(vl_convert, "vegalite_to_png", draw)
    assert len(small_png({})) < MOST_BYTES
    assert asked == sorted(asked, reverse=True)
    monkeypatch.setattr(vl_convert, "vegalite_to_png", lambda spec, scale: b"." * 10**6)
    with pytest.raises(ValueError, match="smaller than 60000 bytes"):
        small_png({})


def test_few_colours_are_a_smaller_picture_of_the_same_size(toy):
    Image = pytest.importorskip("PIL.Image")
    import vl_convert

    spec = toy.pictures({})["Where they go"].to_dict()
    large, small = vl_convert.vegalite_to_png(spec, scale=2.0), small_png(spec)
    assert len(small) < len(large)
    assert Image.open(BytesIO(small)).size == Image.open(BytesIO(large)).size


def test_in_short_counts(outcomes):
    assert in_short(outcomes[:1]) == "1 experiment: 1 claim holds, 1 does not, 0 were not run."
    failed = [without("toy", "quick", "RuntimeError: boom", "failed")]
    assert in_short(failed) == "1 experiment: 0 claims hold, 0 do not, 0 were not run. Failed: toy."


def test_claims_that_do_not_hold_are_gathered(outcomes, tmp_path):
    assert [(name, sentence) for name, sentence, _ in against(outcomes)] == [("toy", "Walks rise")]
    assert "What does not hold" in write_verdicts(outcomes, tmp_path / "verdicts.html").read_text()


def test_other_seeds_have_their_own_heading_and_pictures(toy, tmp_path):
    found = [reproduce("toy", to=tmp_path / "runs"), reproduce("toy", seeds=7, to=tmp_path / "runs")]
    text = write_markdown(found, tmp_path / "verdicts.md").read_text()
    assert "## toy (quick-7-seeds)" in text
    assert "`tiltmeter reproduce toy --seeds 7`" in text
    assert len(set(re.findall(r"_static/verdicts/(.*)\)", text))) == 2


def test_a_chart_without_a_title_gets_that_of_the_picture(outcomes, tmp_path):
    assert '"text": "Where they go"' in write_verdicts(outcomes, tmp_path / "verdicts.html").read_text()
