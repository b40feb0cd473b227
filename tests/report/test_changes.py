"""What would change it: the table of changes, the scorecard on the page, the ROC, names of runs, and `why`."""

import html
import re
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.forecast.kernel.why import Why
from tiltmeter.report.changes import change_rows, change_table, comparable, offered, uses_group, what_would_change
from tiltmeter.report.comparison_section import score_of, score_table
from tiltmeter.report.findings import findings
from tiltmeter.report.reasons import roc_figure

BENEFIT = tm.Question(kind="benefit")
BEFORE, AFTER = [(380, 20, 60, 40), (340, 60, 30, 70)], [(380, 20, 30, 70), (340, 60, 30, 70)]


def words(page):
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def trained(run, name="", **recipe):
    """The run with a recipe in its origin."""
    settings = {**run.origin.settings, "recipe": {"batch": 16, "steps": 500, **recipe}}
    origin = replace(run.origin, settings=settings)
    return findings(tm.Trajectory(dict(run), run.clock, origin, points=dict(run.points)), name, BENEFIT)


def with_scores(run, spread=0.2):
    """Probabilities that are not all alike, on the same sides of one half."""
    rng = np.random.default_rng(0)
    old = run.points["probability"]
    moved = np.where(
        old.values > 0.5, 0.5 + spread * (0.01 + rng.random(old.shape)), 0.5 - spread * rng.random(old.shape)
    )
    points = {name: run.points[name] for name in run.points}
    return tm.Trajectory(
        dict(run), run.clock, run.origin, points={**points, "probability": old.copy(data=moved.astype(np.float32))}
    )


@pytest.fixture(scope="session")
def plain(made):
    return trained(made.decided(BEFORE, ["a", "b"]), "plain")


@pytest.fixture(scope="session")
def better(made):
    """30 more of 100 positives in a are found: the difference of 30 points is gone, and 30 of 1,000 errors."""
    return trained(made.decided(AFTER, ["a", "b"]), "better", weights=[["a", 4.0]])


def test_a_change_of_known_size(plain, better):
    (change,) = offered(plain, (better,))
    assert change.change.value == pytest.approx(-0.3)
    assert -0.41 <= change.change.low <= -0.37  # 30 of 100, give or take 9
    assert -0.23 <= change.change.high <= -0.19
    assert change.left.value == pytest.approx(0.0)
    assert change.price.startswith("wrong decisions fall by 3 points overall (")
    assert change.brief == "none, and wrong decisions fall by 3 points overall."
    text = what_would_change(plain, (better,))
    assert text.startswith(
        "With better the gap is 0 points instead of 30 points. Wrong decisions fall by 3 points overall ("
    )
    assert "It uses the group in training." in text


def test_who_pays_is_said(made, plain):
    """30 more of 100 positives in a are found, and 50 of 400 negatives in b are selected: b pays 10 points of error."""
    dear = trained(made.decided([(380, 20, 30, 70), (290, 110, 30, 70)], ["a", "b"]), "dear")
    (change,) = offered(plain, (dear,))
    assert " and by 10 points for b." in change.price
    # 60 of 400 before
    assert change.brief.endswith("and by 10 points for b, and the false positive rate of b rises to 28 %.")


def test_a_change_that_helps_nobody_is_never_offered(made, plain):
    """Both are found less often: the difference shrinks from 30 to 2 points, and is not offered."""
    low = trained(made.decided([(380, 20, 80, 20), (340, 60, 78, 22)], ["a", "b"]), "low")
    assert offered(plain, (low,)) == []
    assert "no group is better off: not offered" in words(change_table(plain, (low,)))
    assert "With low the gap is 2 points instead of 30 points, but no group is better off." in what_would_change(
        plain, (low,)
    )


def test_the_table_has_a_row_for_each_change(plain, better):
    text = words(change_table(plain, (better,)))
    assert "this run" in text
    assert "weights a: 4" in text
    assert "in training" in text
    assert re.search(r"\d+ to \d+ points smaller", text)
    assert "78\u202f% / 54\u202f%" in text  # 70 of 90 and 70 of 130 positive decisions are right


def test_no_change_is_said_to_be_none(plain, made):
    same = trained(made.decided(BEFORE, ["a", "b"]), "again")
    assert what_would_change(plain, (same,)).startswith(
        "No clear change of the difference with again and a lower threshold"
    )
    assert "no clear change (0.0 to 0.0 points)" in words(change_table(plain, (same,)))
    assert "the same settings" in words(change_table(plain, (same,)))


def test_a_difference_may_turn_round(plain, made):
    over = trained(made.decided([(380, 20, 2, 98), (340, 60, 60, 40)], ["a", "b"]), "over")
    text = words(change_table(plain, (over,)))
    assert "points larger" in text or "points smaller" in text
    assert "58 points" in text  # the new difference, 98 of 100 against 40


def test_a_threshold_of_its_own_is_a_row_that_uses_the_group(made):
    found = findings(with_scores(made.decided(BEFORE, ["a", "b"])), "", BENEFIT)
    rows = change_rows(found, ())
    assert rows[-1].name == "a lower threshold for a"
    assert rows[-1].uses_group == "at every decision"
    assert rows[-1].evaluation.rates().tpr[0] == pytest.approx(0.7, abs=0.011)
    assert rows[-1].evaluation.rates().tpr[1] == pytest.approx(0.7)
    assert "at every decision" in change_table(found, ())


def test_runs_on_other_points_are_not_paired(plain, made):
    other = trained(made.decided([(38, 2, 6, 4), (34, 6, 3, 7)], ["a", "b"]), "few")
    assert comparable(plain, (other,)) == ()
    assert "Not compared, since it decided about other points: few." in what_would_change(plain, (other,))


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ({}, "no"),
        ({"proportions": [["a", 0.5], ["b", 0.5]]}, "in training"),
        ({"interventions": [tm.interventions.GroupDRO(0.01).to_json()]}, "in training"),
        ({"interventions": [tm.interventions.JTT(times=2, scout=10).to_json()]}, "no"),
        ({"interventions": [tm.interventions.DFR().to_json()]}, "on held-out points"),
        ({"interventions": [{"kind": "mine.Intervention"}]}, "not known"),
    ],
)
def test_where_the_group_is_used(made, recipe, said):
    assert uses_group(trained(made.decided(BEFORE, ["a", "b"]), **recipe)) == said


def test_a_loop_of_ones_own_does_not_say(made):
    assert uses_group(findings(made.decided(BEFORE, ["a", "b"]))) == "not known"


class TestScorecard:
    def test_the_page_shows_the_numbers_of_tm_scorecard(self, plain, better):
        card = tm.scorecard({"plain": plain.run, "better": better.run})
        assert score_of([plain, better]).to_json() == card.to_json()
        text = words(score_table([plain, better]))
        assert f"{card['better'].worst.value:.3f}" in text
        assert "baseline" in text
        assert "nobody" in text

    def test_levelling_down_is_flagged(self, made):
        """Errors of 16 and 42 % become 60 and 60: the gap is smaller, and nobody gains."""
        apart = trained(made.decided([(380, 20, 60, 40), (250, 150, 60, 40)], ["a", "b"]), "apart")
        low = trained(made.decided([(160, 240, 60, 40)] * 2, ["a", "b"]), "low")
        assert "levels down" in score_table([apart, low])

    def test_runs_that_cannot_be_compared_have_none(self, plain, made):
        other = trained(made.decided([*BEFORE, (340, 60, 30, 70)], ["a", "b", "c"]), "three")
        assert score_of([plain, other]) == ""
        assert score_table([plain, other]) == ""

    def test_it_stands_on_the_page_of_several_runs(self, tmp_path, made):
        runs = {"plain": made.decided(BEFORE, ["a", "b"]), "heavier": made.decided(AFTER, ["a", "b"])}
        page = words(tm.report(runs, tmp_path / "page.html", question=BENEFIT).read_text(encoding="utf-8"))
        assert "Whole trainings against plain" in page
        assert "heavier: the whole page of this run" in page
        assert "Only these changes were tried." in page

    def test_forecasts_are_compared_with_one_another(self, tmp_path, made):
        run = made.decided(BEFORE, ["a", "b"])
        ahead = {
            name: tm.Trajectory(dict(one), "step", replace(one.origin, source="forecast"))
            for name, one in (("ahead", run), ("ahead, balanced", made.decided(AFTER, ["a", "b"])))
        }
        page = words(tm.report({"run": run, **ahead}, tmp_path / "page.html").read_text(encoding="utf-8"))
        assert "What the forecasts say, the first one as baseline:" in page
        assert "Whole trainings against ahead." in page


class TestRanking:
    def test_the_areas_stand_in_the_table_and_the_picture(self, made):
        found = findings(with_scores(made.decided(BEFORE, ["a", "b"])), "", BENEFIT)
        assert [one.group for one in found.rocs] == ["a", "b"]
        row = found.extra["auc"]
        assert row.values[0].value == pytest.approx(found.rocs[0].auc)
        assert row.differences[0].value == pytest.approx(found.rocs[0].auc - found.rocs[1].auc)
        drawn = roc_figure(found, None)
        assert f"a {found.rocs[0].auc:.2f}" in drawn
        assert "(AUC)" in drawn

    def test_without_probabilities_there_is_none(self, made):
        run = made.decided(BEFORE, ["a", "b"])
        kept = {name: run.points[name] for name in run.points if name != "probability"}
        found = findings(tm.Trajectory(dict(run), "step", run.origin, points=kept))
        assert found.rocs == ()
        assert "auc" not in found.extra
        assert roc_figure(found, None) == ""


def test_what_a_forecast_says_of_the_training_data_can_be_added(tmp_path, made):
    class Said(Why):
        def __init__(self):
            pass

        def __str__(self):
            return "With equal shares of the data 40 % of the gap would be left."

    page = words(
        tm.report([made.decided(BEFORE, ["a", "b"])], tmp_path / "p.html", why=Said()).read_text(encoding="utf-8")
    )
    assert "A forecast with one reason taken away at a time says: With equal shares of the data" in page


def test_the_causes_of_a_preview_stand_in_three_rows(tmp_path, made):
    from tiltmeter.preview.causes import Cause, Causes

    rows = tuple(Cause("position", phase, -0.06, 0.09, phase == "late") for phase in ("early", "middle", "late"))
    causes = Causes("tpr", "a", "b", rows)
    page = words(
        tm.report([made.decided(BEFORE, ["a", "b"])], tmp_path / "p.html", why=causes).read_text(encoding="utf-8")
    )
    assert "Position makes the gap of group a: in a population with the same position it would be 3" in page
    assert "in populations in which one difference is absent." in page
    assert " ".join(page.split()).count("-6 3") == 3


def test_a_dataset_is_no_mapping_of_runs(tmp_path):
    with pytest.raises(ValueError, match="takes datasets of trained students"):
        tm.report(xr.Dataset({"x": 1.0}), tmp_path / "p.html")
    with pytest.raises(ValueError, match="`report` needs at least one run"):
        tm.report({}, tmp_path / "p.html")
