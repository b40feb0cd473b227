"""What the evidence tab of the explorer shows."""

import dataclasses
import shutil

import pytest

from tiltmeter.record.directory.atomic_files import write_sealed_json
from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.claim import VERDICTS
from tiltmeter_lab.evidence import DEMO, PLACE, demo, verdict_answers, verdict_picture
from tiltmeter_lab.reproduce import OUTCOME, PICTURES, outcomes_in, without
from tiltmeter_lab.verdict_page import read_outcomes


def here(answer):
    """The outcomes of an experiment that the folder holds."""
    return [outcome for outcome in answer["outcomes"] if outcome["here"]]


def test_every_experiment_is_listed_with_what_the_laboratory_brings(tmp_path):
    answers = verdict_answers(str(tmp_path))
    assert [answer["name"] for answer in answers] == list(EXPERIMENTS)
    assert all(answer["title"] and here(answer) == [] for answer in answers)
    brought = [outcome for answer in answers for outcome in answer["outcomes"]]
    assert len(brought) == len(read_outcomes()) > 50
    assert not any(outcome["pictures"] for outcome in brought), "they are not shipped"


def test_an_outcome_of_the_folder_hides_the_same_variant_that_the_laboratory_brings(tmp_path):
    place = tmp_path / PLACE / DEMO / "quick"
    place.mkdir(parents=True)
    write_sealed_json(place / OUTCOME, without(DEMO, "quick", "too long").to_json())
    (answer,) = [answer for answer in verdict_answers(str(tmp_path)) if answer["name"] == DEMO]
    assert [(shown["state"], shown["here"]) for shown in answer["outcomes"] if shown["variant"] == "quick"] == [
        ("not run", True)
    ]


@pytest.mark.slow
def test_outcomes_are_shown_and_links_out_are_not(tmp_path):
    import tiltmeter_lab.reproduce as room

    root, outside = tmp_path / "root", tmp_path / "outside"
    room.reproduce("three-phases", to=root / "reproduce")
    found = next(one for one in verdict_answers(str(root)) if one["name"] == "three-phases")["outcomes"][0]
    assert found["claims"]
    assert all(claim["verdict"] in VERDICTS for claim in found["claims"])
    assert "$schema" in verdict_picture(str(root), "three-phases", "quick", 0)
    with pytest.raises(ValueError, match="no such picture"):
        verdict_picture(str(root), "three-phases", "../quick", 0)
    shutil.move(root / "reproduce" / "three-phases", outside)
    (root / "reproduce" / "three-phases").symlink_to(outside)
    assert here(next(one for one in verdict_answers(str(root)) if one["name"] == "three-phases")) == []


@pytest.mark.slow
def test_the_demo_of_the_explorer_has_an_outcome(tmp_path):
    assert demo(tmp_path) == ["learning-rates"]
    assert demo(tmp_path) == []
    judged = [one for one in verdict_answers(str(tmp_path)) if here(one)]
    assert [one["name"] for one in judged] == ["learning-rates"]
    assert {claim["verdict"] for claim in judged[0]["outcomes"][0]["claims"]} == {"clear", "measured"}


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[1]", b"torn", b"\xff\xfe", b'{"claims": 3}'], ids=range(5))
def test_one_bad_outcome_hides_no_other(tmp_path, text):
    """Deeply nested, torn or of another kind: it is shown as one that failed, and the others are there."""
    good, bad = (tmp_path / PLACE / DEMO / name for name in ("quick", "published"))
    for place in (good / PICTURES, bad):
        place.mkdir(parents=True)
    outcome = dataclasses.replace(without(DEMO, "quick", "too long"), pictures=(("Whole", "whole"), ("Bad", "bad")))
    write_sealed_json(good / OUTCOME, outcome.to_json())
    (good / PICTURES / "whole.json").write_text('{"mark": "line"}')
    (good / PICTURES / "bad.json").write_bytes(text)
    (bad / OUTCOME).write_bytes(text)
    (answer,) = [answer for answer in verdict_answers(str(tmp_path)) if answer["name"] == DEMO]
    assert [shown["state"] for shown in here(answer)] == ["not run", "failed"]
    assert "should be what reproduce wrote. Found something else: remove it." in answer["outcomes"][1]["made"]
    assert verdict_picture(str(tmp_path), DEMO, "quick", 0) == {"mark": "line"}
    if not text.startswith((b"[1", b"{")):
        with pytest.raises(ValueError, match=r"^This picture is damaged\.$"):
            verdict_picture(str(tmp_path), DEMO, "quick", 1)
    with pytest.raises(ValueError, match="should be what `reproduce` wrote"):
        outcomes_in(tmp_path / PLACE)
