"""Every sentence of the page against cases whose numbers are worked out by hand."""

import html
import re

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.fairness.estimate import Estimate
from tiltmeter.fairness.why import BaseRateSplit, split_sentence
from tiltmeter.report import answers, changes, first_screen, onset
from tiltmeter.report.findings import findings
from tiltmeter.report.positive_label import positive_label
from tiltmeter.report.reasons import claim

BENEFIT, BURDEN = tm.Question(kind="benefit"), tm.Question("flagged", "reoffended", "burden")
APART = [(380, 20, 60, 40), (340, 60, 30, 70)]


@pytest.fixture(scope="session")
def census(made):
    """150 of 4,251 women and 536 of 3,749 men are positive; found are 33 and 231; wrongly selected 38 and 70."""
    return findings(made.census(), "census", BENEFIT)


@pytest.fixture(scope="session")
def equal(made):
    """The same rates in both groups: 40 of 100 positives found."""
    return findings(made.decided([(380, 20, 60, 40)] * 2, ["a", "b"]), "", BENEFIT)


@pytest.fixture(scope="session")
def five(made):
    return findings(made.decided(APART, ["a", "b"], seeds=5, wobble=0.002), "five", BENEFIT)


@pytest.fixture(scope="session")
def many(made):
    cells = [(300, 20, 40, 160)] * 6 + [(300, 20, 160, 40), (40, 2, 2, 1)]
    return findings(made.decided(cells, list("abcdefgh")), "many", BENEFIT)


@pytest.fixture(scope="session")
def four(made):
    cells = [(300, 20, 100, 100), (300, 20, 40, 160), (300, 20, 160, 40), (300, 20, 100, 100)]
    return findings(made.decided(cells, list("abcd")), "", BENEFIT)


def test_of_many_groups_bars_gap_and_headline_compare_the_same(many):
    """The headline's group and all others: their difference in the picture is the gap beside it and above it."""
    screen = first_screen.dots(many)
    row = re.search(
        r"True positive rate of every group</title><desc>g ([\d.]+), all others ([\d.]+)<", html.unescape(screen)
    )
    group, together = map(float, row.groups())
    assert many.judged.headline.pair == ("g", "all others")
    assert many.groups[many.focus] == "g"
    assert round(100 * (together - group)) == 60  # (6 * 160 + 1) / 1203 - 40 / 200
    assert first_screen._how_much(many)[0] == "60 points"
    assert "<span>60 points worse" in screen
    assert first_screen._how_much(many)[1].startswith("percentage points apart;")


class TestHeadline:
    def test_a_benefit_is_about_whom_the_model_misses(self, census):
        assert census.judged.headline.claim == ("Women have the lower true positive rate: 22 % against 43 %.")

    def test_a_burden_is_about_whom_it_meets_wrongly(self, made):
        found = findings(made.decided(APART, ["a", "b"]), "", BURDEN)
        assert found.judged.headline.claim == (
            "Of those who did not reoffend, 15 % of group b are flagged and 5 % of group a."
        )
        assert found.rows["positive_rate"].better_off() == ("a",)
        assert first_screen.in_words(found).startswith("10 points apart, 5 to 15.")

    def test_without_a_question_error_is_asked_first_and_what_is_clear_is_told_after_it(self, made):
        found = findings(made.decided(APART, ["a", "b"]))
        assert found.judged.headline.claim == "Group b has an error of 18 %, group a of 16 %."
        assert found.judged.headline.also == "The true positive rates differ: 40 % of group a, 70 % of group b."
        assert found.judged.headline == tm.leaders(found.run).headline

    def test_the_page_says_what_the_terminal_says(self, census, five, many, four):
        for found in (census, five, many, four):
            assert found.judged.headline == tm.leaders(found.run, question=BENEFIT).headline

    def test_what_is_not_clear_is_no_headline(self, equal):
        assert equal.judged.headline.claim == "Group a has a true positive rate of 40 %, group b of 40 %."
        assert equal.judged.headline.gap.endswith(" points: not clear.")
        assert first_screen._how_much(equal)[0] == "not clear"
        assert first_screen._since(equal)[0] == "never"
        assert first_screen._how_sure(equal)[0] == "may be chance"

    def test_another_rate_that_is_clear_is_told_second(self, made):
        found = findings(made.decided([(300, 20, 44, 156), (200, 120, 40, 160)], list("ab")))
        assert found.judged.headline.claim == "Group b has the higher error: 31 % against 12 %."
        assert found.judged.headline.also == "The false positive rates differ: 38 % of group b, 6 % of group a."

    def test_of_four_groups_the_worst_off_and_never_the_smallest_groups(self, four):
        assert four.judged.headline.claim == "Group c is worst off: true positive rate 20 % against 60 %."
        assert [four.names[place] for place in four.pair] == ["c", "b"]

    def test_a_tiny_group_is_no_headline(self, made):
        """Group c finds 0 of 8, but eight positives are too few: the pair a and b is told."""
        found = findings(made.decided([*APART, (40, 2, 8, 0)], list("abc")), "", BENEFIT)
        assert {found.names[place] for place in found.pair} == {"a", "b"}
        assert "group c" not in found.judged.headline.claim.lower()
        assert "c: fewer than 20 positives" in answers.unknown(found)

    def test_error_may_hide_it_or_say_the_opposite(self, census, made):
        assert first_screen.in_words(census).endswith(
            "But all wrong decisions together are more frequent for men: 10 % against 3.6 %."
        )
        found = findings(made.decided(APART, ["a", "b"]), "", BENEFIT)
        assert "wrong decisions" not in first_screen.in_words(found)
        assert "not clear" in first_screen._verdict(found, found.rows["error"])

    def test_the_positive_label_is_named_and_whether_anybody_declared_it(self, made):
        run = made.decided(APART, ["a", "b"])
        guessed = findings(made.read_as(run, ["approved", "denied"], None), "", BENEFIT)
        assert "positive case: denied" in first_screen.kicker(guessed)
        assert "Nobody declared denied to be the positive label" in first_screen.licence(guessed)
        declared = findings(made.read_as(run, ["denied", "approved"], "approved"), "", BENEFIT)
        assert "Nobody" not in first_screen.licence(declared)

    def test_labels_that_are_numbers_or_many_have_no_name(self, made):
        assert positive_label(made.census()) is None
        assert positive_label(made.read_as(made.census(), ["a", "b", "c"], None)) is None
        assert positive_label(made.read_as(made.census(), ["a", "b" * 90], None)).name == "b" * 40 + "…"

    def test_a_question_that_the_run_cannot_answer_is_refused(self, made):
        run = made.census()
        bare = run.replace({name: run[name] for name in ("loss", "error")})
        with pytest.raises(ValueError, match="asked of the curve 'tpr', which the run does not have"):
            findings(bare, "", BENEFIT)


class TestFacts:
    def test_how_much_since_when_how_sure(self, census):
        large, small = first_screen._how_much(census)
        assert large == "21 points"
        low, high = (
            f"{100 * abs(limit):.0f}"
            for limit in (census.headline.differences[0].high, census.headline.differences[0].low)
        )
        assert small == f"percentage points apart; likely {low} to {high}"
        assert first_screen._since(census) == ("at step 500", "clear at the end of the training only")
        assert first_screen._how_sure(census) == (
            "hardly chance",
            "the gap is larger than chance would make it",
        )
        assert first_screen.licence(census) == "One training; another may differ."
        assert first_screen._tried((), []) == ("no change tried", "the command “tiltmeter advise” tries changes")

    def test_seeds_are_counted(self, five):
        assert first_screen.licence(five) == "5 trainings; the gap has the same direction in all."

    def test_against_all_together(self, many):
        large, small = first_screen._how_much(many)
        assert large == "60 points"  # 20 % against 961 of 1,203
        assert small.startswith("percentage points apart; likely ")  # the headline names both

    def test_every_measure_has_its_verdict(self, census):
        drawn = first_screen.dots(census)
        assert drawn.count('class="tag real"') == 4
        assert drawn.index("Positive cases found") < drawn.index("Decided wrongly")
        assert "<span>true positive rate</span>" in drawn
        assert "<span>21 points</span>" in drawn


class TestAnswers:
    def test_who(self, census):
        gap = census.headline.differences[0]
        assert gap.value == pytest.approx(33 / 150 - 231 / 536)
        assert -0.36 < gap.low < -0.25
        assert -0.15 < gap.high < -0.05
        text = answers.who(census)
        assert text.startswith("Women, by true positive rate. True positive rate: men 21 points (")
        assert "False positive rate: men 1.3 points (" in text

    def test_who_when_nothing_is_clear(self, equal):
        assert answers.who(equal).startswith("Nobody clearly. No difference is clear in true positive rate (at most ")

    def test_pairs_of_several_groups(self, four):
        text = answers.who(four)
        assert text.startswith("C, by true positive rate. True positive rate: b 40 points (")
        assert "higher than all others" in text

    def test_chance_knows_one_run_from_several(self, census, five, equal):
        assert answers.chance(census).startswith("Hardly. With random groups among the positives, 95 of 100 ")
        assert "Of such pages about groups that are alike, at most 5 % name anybody." in answers.chance(census)
        assert answers.chance(census).endswith("One training only: another may differ.")
        assert "The sign is the same in 5 of 5 seeds, the difference " in answers.chance(five)
        assert answers.chance(equal).startswith("That is not ruled out.")

    def test_a_difference_that_only_one_evaluation_would_show_is_explained(self, made):
        """40 of 100 against 55 of 100 are 2.1 standard errors apart: enough for one evaluation, not for two, 5 curves."""
        found = findings(made.decided([(380, 20, 60, 40), (380, 20, 45, 55)], ["a", "b"]), "", BENEFIT)
        text = answers.chance(found)
        assert text.startswith("That is not ruled out. With random groups among the positives, 95 of 100 ")
        assert "This one is larger, but among so many evaluations and measures one of that size is not rare." in text

    def test_random_groups_by_the_normal_law(self, census):
        """Two standard errors of a difference of shares among 686 positives, 264 of them found."""
        share = 264 / 686
        expected = 196 * np.sqrt(share * (1 - share) * (1 / 150 + 1 / 536))
        told = float(answers.chance(census).split("stay below ")[1].split(" points")[0])
        assert told == pytest.approx(expected, abs=0.9)  # one person more

    def test_why_measures_disagree(self, census):
        assert answers.disagree(census)
        text = answers.reason(census)
        assert text.startswith(
            "The groups differ to begin with: 3.5 % of women and 14.3 % of men are positive in the data."
        )
        assert "the model removes for women no clear part (" in text
        assert "for men 30 % (" in text

    def test_an_audit(self, census, made):
        """71 of 4,251 against 301 of 3,749; in the data 150 of 4,251 against 536 of 3,749."""
        text = answers.audit(census)
        assert text.startswith(
            "The selection rate is 1.7 % for women and 8.0 % for men; their ratio, the impact ratio, is 0.21 (0.16 to "
        )
        assert "The rule of four fifths asks for 0.80: clearly not met." in text
        assert text.endswith("A model that is always right would have 0.25.")
        near = findings(made.decided([(370, 30, 60, 40), (360, 40, 50, 50)], ["a", "b"]), "", BENEFIT)
        assert "asks for 0.80: not met, but not clearly." in answers.audit(near)

    def test_when(self, census, equal):
        assert onset.when_did_it_arise(census).startswith("It is clear from step 500 of 500 on to the end.")
        assert onset.when_did_it_arise(equal) == "No difference is clear at any evaluation."

    def test_when_says_in_how_many_seeds(self, five, census):
        text = onset.when_did_it_arise(five)
        assert text.startswith(
            "It is clear from step 500 of 500 on to the end. It keeps its sign from there on in 5 of 5 seeds."
        )
        assert "seeds" not in onset.when_did_it_arise(census)

    def test_all_evaluations_that_were_clear_are_told(self, census):
        def one(first, last, evaluations):
            return onset.Stretch(first, last, "men", evaluations, 0.1)

        spans = [one(10, 20, 3), one(40, 40, 1)]
        assert onset._spans(census, spans) == "from step 10 to 20 and at step 40"
        assert onset._spans(census, [*spans, one(60, 80, 2), one(100, 100, 1)]) == (
            "at 7 evaluations between step 10 and 100"
        )

    def test_what_is_not_known(self, census, five, many):
        assert answers.unknown(census).startswith("What another training would give: only one was made.")
        assert "one run" not in answers.unknown(five)
        assert answers.unknown(many).startswith("What happens to h: fewer than 20 positives held out in each.")

    def test_calibration_names_whose_probabilities_are_wrong(self, census):
        """Probabilities of 0.05 and 0.7: men who are told no are positive in 305 of 3,448 cases, not in 172."""
        by_group = {one.group: one for one in census.calibration.groups}
        off = (3448 * abs(305 / 3448 - 0.05) + 301 * abs(231 / 301 - 0.7)) / 3749
        assert by_group["men"].error == pytest.approx(off, abs=1e-6)
        text = answers.calibration_sentence(census)
        assert text.startswith("Calibration: probabilities are clearly wrong for ")
        assert "men (off by 4.1 points" in text
        assert "too low on average" in text

    def test_a_group_against_all_together_by_hand(self, many):
        """Group g: 40 of 200 found, of all others 961 of 1,203."""
        difference = next(one for one in many.headline.judged if one.pair[0] == "g")
        assert difference.gap[-1] == pytest.approx(40 / 200 - 961 / 1203)


class TestStopping:
    """At step 100 the gap is smaller, but everybody is worse off: that is never offered."""

    def run(self, made, early):
        last = made.decided(APART, ["a", "b"], times=(0, 100, 500))
        first = made.decided(early, ["a", "b"], times=(0, 100, 500))
        curves = {name: curve.copy(deep=True) for name, curve in last.items()}
        for name in ("tpr", "fpr", "error", "positive_rate"):
            curves[name][1] = first[name].values[-1]
        curves["loss"][:] = np.array([[2.0, 2.0], [1.0, 1.0], [0.99, 0.99]])
        return findings(tm.Trajectory(curves, "step", last.origin, points=last.points), "", BENEFIT)

    def test_a_step_at_which_everybody_is_worse_off_is_not_offered(self, made):
        found = self.run(made, [(380, 20, 70, 30), (340, 60, 68, 32)])  # 30 and 32 % found instead of 40 and 70
        assert changes.best_stop(found) is None
        assert changes.stop_sentence(found).startswith("Stopping at another step would not help")

    def test_a_step_that_helps_somebody_is_offered_with_its_price(self, made):
        found = self.run(made, [(380, 20, 40, 60), (320, 80, 38, 62)])  # 60 and 62 % found; b errs more
        text = changes.stop_sentence(found)
        assert text.startswith("Stopping at step 100 leaves 2 points instead of 30 points in true positive rate;")
        assert "error rises most for b, by 5.6 points" in text
        assert text.endswith("It was chosen on the points that judge it.")


class TestClaim:
    @pytest.mark.parametrize(
        ("base", "within", "said"),
        [
            ((0.07, 0.06, 0.08), (-0.01, -0.02, 0.01), "The difference in error comes from base rates."),
            ((0.01, -0.01, 0.02), (0.05, 0.03, 0.07), "The difference in error comes from how cases with"),
            ((0.03, 0.02, 0.04), (0.03, 0.01, 0.05), "The difference in error comes from base rates and from how"),
            (
                (0.03, -0.01, 0.07),
                (0.03, -0.01, 0.07),
                "It is not clear whether the difference in error comes from base",
            ),
        ],
    )
    def test_which_part_is_named(self, base, within, said):
        parts = (Estimate(*one) for one in ((0.06, 0.05, 0.07), base, within))
        assert claim(BaseRateSplit("error", ("a", "b"), *parts, 0.05)).startswith(said)

    def test_groups_of_several_attributes_have_readable_names(self, made):
        cells = [(300, 20, 40, 160), (300, 20, 160, 40)]
        text = split_sentence(findings(made.decided(cells, [("x", "a"), ("x", "b")])).splits[0])
        assert "x & " in text
        assert "('x'" not in text


class TestEvents:
    def test_the_dated_list(self, census):
        events = [(event.first, event.text) for event in onset.events(census)]
        assert events[0] == (0.0, "At the first evaluation the selection rate is 0.0 % in both groups.")
        assert (500.0, "The model begins to select.") in events
        assert (500.0, "From here on the difference in true positive rate is clear, to the end.") in events
        assert events[-1][1] == (
            "At the end the difference in true positive rate between men and women is 21 points and clear."
        )

    def test_the_first_evaluation_of_many_groups_is_a_range(self, many):
        text = onset.events(many)[0].text
        assert text.startswith("At the first evaluation the selection rate is ")
        assert text.count("%") <= 2
