"""Verdicts as pages: everything that was found stands there, pictures are small, nothing is fetched."""

import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.claim import Claim, not_run
from tiltmeter_lab.origins import OF_CLAIM, OF_EXPERIMENT, origin_of
from tiltmeter_lab.reproduce import reproduce, without
from tiltmeter_lab.verdict_page import read_outcomes, write_markdown
from tiltmeter_lab.verdicts import MOST_BYTES, in_short, row, small_png, spoken, write_verdicts

PAGE = Path(__file__).parents[2] / "docs" / "lab" / "verdicts.md"


@pytest.fixture
def outcomes(toy, tmp_path):
    return [reproduce("toy", to=tmp_path / "runs"), without("toy", "full", "No images here.")]


def test_the_page_holds_every_verdict_and_its_pictures(outcomes, tmp_path):
    text = write_verdicts(outcomes, tmp_path / "verdicts.html").read_text()
    for part in ("Walks spread | far", "measured. They never do.", "not run", "No images here.", "3 seeds", "ours"):
        assert part in text
    assert '"mark"' in text
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://', text)


def test_the_markdown_has_tables_dates_and_small_pictures(outcomes, tmp_path):
    text = write_markdown(outcomes, tmp_path / "verdicts.md").read_text()
    assert "Reproduced: 0 of 0 published claims. All claims: 1 clear, 1 measured, 1 not run." in text
    assert "| ours | 3 | 1 | 0 | 0 | 1 | 1 |" in text
    assert re.search(r"\| \[toy\]\(#toy\) \| quick \| 3 \| 0 s \|", text)
    assert re.search(
        r"\| Walks spread \\\| far \| ours \| spread: [\d.]+, [\d.]+ to [\d.]+; 3 seeds \| at least 0.5 \|", text
    )
    assert f"Scale quick, 3 seeds, 0 s, {outcomes[0].date}, tiltmeter" in text
    assert "Not run (full" in text
    assert "```" not in text
    (picture,) = re.findall(r"!\[Where they go\]\((.*)\)", text)
    assert 0 < (tmp_path / picture).stat().st_size < MOST_BYTES


def test_other_experiments_stay_on_the_page(outcomes, tmp_path):
    page = write_markdown(outcomes, tmp_path / "verdicts.md")
    whole = page.read_text()
    for some in (outcomes[1:], outcomes[:1], []):
        write_markdown(some, page)
        assert page.read_text() == whole, "what was there is kept, word for word and picture by picture"
    assert [one.variant for one in read_outcomes(page)] == ["quick", "full"]


def test_the_best_scale_speaks_and_the_others_are_folded_below(toy, tmp_path):
    toy.FULL = replace(toy.FULL, seeds=9)
    found = [reproduce("toy", scale, to=tmp_path / "runs") for scale in ("full", "quick")]
    found.append(reproduce("toy", "full", seeds=4, to=tmp_path / "runs"))
    assert next(claim.seeds for _, claim in spoken(found)) == 9
    assert len(spoken(found)) == 2
    text = write_markdown(found, tmp_path / "verdicts.md").read_text()
    above, _, folded = text.partition("<details>")
    assert (above.count("| Walks rise |"), folded.count("| Walks rise |")) == (1, 2)
    same = replace(found[0], claims=(Claim("Twice", 1.0, "a", 0.0), Claim("Twice", 2.0, "b", 0.0), not_run("No", "")))
    assert [claim.what for _, claim in spoken([same])] == ["a", "b", ""]


def test_every_exception_of_an_origin_is_a_claim_on_the_page():
    sentences = {(one.name, claim.sentence) for one in read_outcomes(PAGE) for claim in one.claims}
    assert {*OF_EXPERIMENT, *OF_CLAIM} <= set(EXPERIMENTS)
    assert origin_of("other-protocols", "With Adam, losses do not cross (control)") == "ours"
    unknown = [
        (name, start)
        for name, starts in OF_CLAIM.items()
        for start in starts
        if not any(other == name and sentence.startswith(start) for other, sentence in sentences)
    ]
    assert not unknown


def test_words_and_numbers_agree_in_sign_on_the_page():
    """A change that the sentence calls a fall asks for a number below 0, so that no negated number is shown."""
    less = re.compile(r"smaller|spares|ahead early|lowers")
    changed = [
        (one.name, claim)
        for one in read_outcomes(PAGE)
        for claim in one.claims
        if re.match(r"(size of the )?change of", claim.what) and claim.threshold == 0 and one.name == "pipeline-atlas"
    ]
    assert len(changed) > 20
    for name, claim in changed:
        assert claim.asked == ("at most 0" if less.search(claim.sentence) else "at least 0"), claim.sentence
        assert f": {claim.statistic:.3g}" in row(name, claim)[2]
    (grown,) = (
        claim for _, claim in spoken(read_outcomes(PAGE)) if claim.sentence.startswith("AdamW leaves a smaller")
    )
    assert grown.statistic > 0
    assert grown.verdict == "contradicted"


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


def test_in_short_counts(outcomes, monkeypatch):
    assert in_short(outcomes[:1]).startswith("2 claims of 1 experiment. Reproduced: 0 of 0 published claims.")
    monkeypatch.setitem(OF_EXPERIMENT, "toy", "published")
    assert "Reproduced: 1 of 2 published claims." in in_short(outcomes[:1])
    failed = [without("toy", "quick", "RuntimeError: boom", "failed")]
    assert in_short(failed) == "0 claims of 1 experiment. Reproduced: 0 of 0 published claims. Failed: toy."


def test_claims_that_are_contradicted_are_gathered(outcomes, tmp_path):
    wrong = Claim("Walks rise", -1.0, "mean end", 0.0, error=0.1, seeds=9)
    found = [replace(outcomes[0], claims=(wrong,))]
    assert "What is contradicted" in write_verdicts(found, tmp_path / "verdicts.html").read_text()
    assert "What is contradicted" not in write_verdicts(outcomes, tmp_path / "verdicts.html").read_text()


def test_other_seeds_have_their_own_heading_and_pictures(toy, tmp_path):
    found = [reproduce("toy", to=tmp_path / "runs"), reproduce("toy", seeds=7, to=tmp_path / "runs")]
    text = write_markdown(found, tmp_path / "verdicts.md").read_text()
    assert text.count("## toy") == 1
    assert "`tiltmeter reproduce toy --seeds 7`" in text
    assert len(set(re.findall(r"_static/verdicts/(.*)\)", text))) == 2


def test_a_chart_without_a_title_gets_that_of_the_picture(outcomes, tmp_path):
    assert '"text": "Where they go"' in write_verdicts(outcomes, tmp_path / "verdicts.html").read_text()
