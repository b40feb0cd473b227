"""Verdicts as pages: everything that was found stands there, pictures are small, nothing is fetched."""

import re
from dataclasses import replace
from io import BytesIO

import pytest

from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.claim import Claim, not_run
from tiltmeter_lab.contradicted import SECOND, checked_again
from tiltmeter_lab.origins import OF_CLAIM, OF_EXPERIMENT, origin_of
from tiltmeter_lab.reproduce import reproduce, without
from tiltmeter_lab.verdict_page import TOPIC_STARTS, index_page, line, pages, read_outcomes, write_outcomes
from tiltmeter_lab.verdicts import MOST_BYTES, in_short, row, small_png, spoken, write_verdicts


@pytest.fixture
def outcomes(toy, tmp_path):
    return [reproduce("toy", to=tmp_path / "runs"), without("toy", "full", "No images here.")]


def test_the_page_holds_every_verdict_and_its_pictures(outcomes, tmp_path):
    text = write_verdicts(outcomes, tmp_path / "verdicts.html").read_text()
    for part in ("Walks spread | far", "measured. They never do.", "not run", "No images here.", "3 seeds", "ours"):
        assert part in text
    assert '"mark"' in text
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://', text)


def stored_pages(outcomes, tmp_path):
    """The pages of the outcomes, stored and read again."""
    return pages(read_outcomes(write_outcomes(outcomes, tmp_path / "verdicts.json")), "_static/verdicts")


def test_the_page_of_an_experiment_has_its_claims_pictures_and_command(outcomes, tmp_path):
    text = stored_pages(outcomes, tmp_path)["toy"]
    assert re.search(r"\*\*Walks spread \\\| far\*\* <br>Spread: [\d.]+, [\d.]+ to [\d.]+; 3 seeds; at least 0.5", text)
    assert f"Scale quick, 3 seeds, 0 s, {outcomes[0].date}, tiltmeter" in text
    assert "Not run (full" in text
    assert "<svg" in text
    assert "```" not in text
    (picture,) = re.findall(r"!\[Where they go\]\((.*)\)", text)
    assert 0 < (tmp_path / picture).stat().st_size < MOST_BYTES


def test_the_index_counts_and_marks_every_experiment(outcomes):
    text = index_page(outcomes, "evidence")
    assert "Reproduced: 0 of 0 published claims. All claims: 1 clear, 1 measured, 1 not run." in text
    assert "| ours | 3 | 1 | 0 | 0 | 1 | 1 |" in text
    assert '<a href="evidence/toy.html">toy</a>' in text
    assert 'data-marks="clear|measured|not run|ours|' in text
    assert "<td>&lt;b&gt;</td>" in index_page([replace(outcomes[0], title="<b>")], "evidence")
    assert set(TOPIC_STARTS) <= set(EXPERIMENTS)


def test_the_index_is_filtered_by_paper(outcomes):
    paper = "A question of Corbett-Davies and Goel (2018); Sarao Mannelli, Gerace and Saglietti, Bias-inducing (2022)"
    text = index_page([replace(outcome, paper=paper) for outcome in outcomes], "evidence")
    assert '|Corbett-Davies 2018|Sarao Mannelli 2022"><td>' in text
    assert "<option>Corbett-Davies 2018</option><option>Sarao Mannelli 2022</option></select>" in text


def test_a_dot_lies_between_what_is_neutral_and_what_is_asked():
    claim = Claim("Groups differ", 0.5, "gap", 1.0, error=0.0, seeds=10, neutral=0.0)
    x = {name: float(re.search(rf'{name}" (?:d="M|cx=")([\d.]+)', line(claim))[1]) for name in ("asked", "neutral")}
    dot = float(re.search(r'cx="([\d.]+)"', line(claim))[1])
    assert dot == pytest.approx((x["asked"] + x["neutral"]) / 2, abs=0.1)
    assert line(not_run("No", "")) == ""


def test_words_of_an_outcome_are_never_markup(outcomes, tmp_path):
    claim = Claim("<script> *a* [b](c) `d` $e$", 1.0, "x", 0.0)
    text = stored_pages([replace(outcomes[0], claims=(claim,))], tmp_path)["toy"]
    assert r"\<script\> \*a\* \[b\](c) \`d\` \$e\$" in text


def test_other_experiments_stay_in_the_store(outcomes, tmp_path):
    store = write_outcomes(outcomes, tmp_path / "verdicts.json")
    whole = store.read_text()
    for some in (outcomes[1:], outcomes[:1], []):
        write_outcomes(some, store)
        assert store.read_text() == whole, "what was there is kept, word for word and picture by picture"
    assert [one.variant for one in read_outcomes(store)] == ["quick", "full"]


def test_the_best_scale_speaks_and_the_others_are_folded_below(toy, tmp_path):
    toy.FULL = replace(toy.FULL, seeds=9)
    found = [reproduce("toy", scale, to=tmp_path / "runs") for scale in ("full", "quick")]
    found.append(reproduce("toy", "full", seeds=4, to=tmp_path / "runs"))
    assert next(claim.seeds for _, claim in spoken(found)) == 9
    assert len(spoken(found)) == 2
    above, _, folded = stored_pages(found, tmp_path)["toy"].partition("<details>")
    assert (above.count("**Walks rise**"), folded.count("**Walks rise**")) == (1, 2)
    same = replace(found[0], claims=(Claim("Twice", 1.0, "a", 0.0), Claim("Twice", 2.0, "b", 0.0), not_run("No", "")))
    assert [claim.what for _, claim in spoken([same])] == ["a", "b", ""]


def test_what_did_not_hold_is_listed_once_with_its_number():
    outcomes = read_outcomes()
    text = pages(outcomes, "")["what-did-not-hold"]
    wanted = [claim for _, claim in spoken(outcomes) if claim.verdict in ("contradicted", "undecided")]
    assert len(wanted) > 20
    assert text.count("**") == 2 * len(wanted)


def test_every_exception_of_an_origin_is_a_claim_on_the_page():
    sentences = {(one.name, claim.sentence) for one in read_outcomes() for claim in one.claims}
    assert {*OF_EXPERIMENT, *OF_CLAIM} <= set(EXPERIMENTS)
    assert origin_of("other-protocols", "With Adam, losses do not cross (control)") == "ours"
    unknown = [
        (name, start)
        for name, starts in OF_CLAIM.items()
        for start in starts
        if not any(other == name and sentence.startswith(start) for other, sentence in sentences)
    ]
    assert not unknown


def test_every_contradicted_claim_is_checked_in_a_second_setting_or_named_as_ours():
    claims = spoken(read_outcomes())
    contradicted = [(name, claim) for name, claim in claims if claim.verdict == "contradicted" and name != SECOND]
    assert len(contradicted) > 20
    open_claims = [claim.sentence for name, claim in contradicted if not checked_again(name, claim, claims)]
    assert not open_claims
    for name, claim in contradicted:
        checked = checked_again(name, claim, claims)
        assert isinstance(checked, str) == (origin_of(name, claim.sentence) == "ours"), claim.sentence


def test_words_and_numbers_agree_in_sign_on_the_page():
    """A change that the sentence calls a fall asks for a number below 0, so that no negated number is shown."""
    less = re.compile(r"smaller|spares|ahead early|lowers")
    changed = [
        (one.name, claim)
        for one in read_outcomes()
        for claim in one.claims
        if re.match(r"(size of the )?change of", claim.what) and claim.threshold == 0 and one.name == "pipeline-atlas"
    ]
    assert len(changed) > 20
    for name, claim in changed:
        assert claim.asked == ("at most 0" if less.search(claim.sentence) else "at least 0"), claim.sentence
        assert f": {claim.statistic:.3g}" in row(name, claim)[2]
    (grown,) = (
        claim
        for name, claim in spoken(read_outcomes())
        if name == "pipeline-atlas" and claim.sentence.startswith("AdamW leaves a smaller")
    )
    assert grown.statistic > 0
    assert grown.verdict == "contradicted"


def test_pictures_that_are_gone_from_the_store_are_gone_from_the_folder(outcomes, tmp_path):
    store = write_outcomes(outcomes, tmp_path / "verdicts.json")
    assert len(list((tmp_path / "_static" / "verdicts").iterdir())) == 1
    write_outcomes([replace(outcomes[0], pictures=())], store)
    assert not list((tmp_path / "_static" / "verdicts").iterdir())


def test_an_experiment_that_left_the_catalogue_leaves_the_store(outcomes, tmp_path, monkeypatch):
    store = write_outcomes(outcomes, tmp_path / "verdicts.json")
    monkeypatch.delitem(EXPERIMENTS, "toy")
    assert "toy" not in write_outcomes([], store).read_text()


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
    text = stored_pages(found, tmp_path)["toy"]
    assert "`tiltmeter reproduce toy --seeds 7`" in text
    assert len(set(re.findall(r"_static/verdicts/(.*)\)", text))) == 2


def test_a_chart_without_a_title_gets_that_of_the_picture(outcomes, tmp_path):
    assert '"text": "Where they go"' in write_verdicts(outcomes, tmp_path / "verdicts.html").read_text()
