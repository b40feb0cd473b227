"""What the evidence tab of the explorer shows."""

import shutil

import pytest

from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.evidence import demo, verdict_answers, verdict_picture


def test_every_experiment_is_listed(tmp_path):
    told = verdict_answers(str(tmp_path))
    assert [one["name"] for one in told] == list(EXPERIMENTS)
    assert all(one["title"] and one["outcomes"] == [] for one in told)


@pytest.mark.slow
def test_outcomes_are_shown_and_links_out_are_not(tmp_path):
    import tiltmeter_lab.reproduce as room

    root, outside = tmp_path / "root", tmp_path / "outside"
    room.reproduce("three-phases", to=root / "reproduce")
    found = next(one for one in verdict_answers(str(root)) if one["name"] == "three-phases")["outcomes"][0]
    assert found["claims"]
    assert all(claim["verdict"] in ("holds", "does not hold", "not run") for claim in found["claims"])
    assert "$schema" in verdict_picture(str(root), "three-phases", "quick", 0)
    with pytest.raises(ValueError, match="no such picture"):
        verdict_picture(str(root), "three-phases", "../quick", 0)
    shutil.move(root / "reproduce" / "three-phases", outside)
    (root / "reproduce" / "three-phases").symlink_to(outside)
    assert next(one for one in verdict_answers(str(root)) if one["name"] == "three-phases")["outcomes"] == []


@pytest.mark.slow
def test_the_demo_of_the_explorer_has_an_outcome(tmp_path):
    assert demo(tmp_path) == ["learning-rates"]
    assert demo(tmp_path) == []
    judged = [one for one in verdict_answers(str(tmp_path)) if one["outcomes"]]
    assert [one["name"] for one in judged] == ["learning-rates"]
    assert {claim["verdict"] for claim in judged[0]["outcomes"][0]["claims"]} == {"holds", "does not hold"}
