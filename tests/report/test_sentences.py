"""Every sentence of the page against cases whose numbers are worked out by hand."""

import numpy as np
import pytest

from tiltmeter.fairness.estimate import Estimate
from tiltmeter.fairness.why import BaseRateSplit, split_sentence
from tiltmeter.plot.theme import group_name
from tiltmeter.report import answers, headline, onset
from tiltmeter.report.changes import what_would_change
from tiltmeter.report.claim import claim
from tiltmeter.report.findings import findings
from tiltmeter.report.positive_label import positive_label


@pytest.fixture(scope="session")
def census(made):
    """150 of 4,251 women and 536 of 3,749 men are positive; found are 33 and 231; wrongly said yes 38 and 70."""
    return findings(made.census(), "census", "benefit")


@pytest.fixture(scope="session")
def equal(made):
    """The same rates in both groups: 40 of 100 positives found."""
    return findings(made.decided([(380, 20, 60, 40), (380, 20, 60, 40)], ["a", "b"]), "", "benefit")


@pytest.fixture(scope="session")
def five(made):
    return findings(
        made.decided([(380, 20, 60, 40), (340, 60, 30, 70)], ["a", "b"], seeds=5, wobble=0.002), "five", "benefit"
    )


@pytest.fixture(scope="session")
def many(made):
    cells = [(300, 20, 40, 160)] * 6 + [(300, 20, 160, 40), (40, 2, 2, 1)]
    return findings(made.decided(cells, [("x", c) for c in "abcdefgh"]), "many", "benefit")


class TestHeadline:
    def test_a_benefit_is_about_whom_the_model_finds(self, census):
        assert headline.headline(census) == "The model finds 22% of the positives in women and 43% in men."

    def test_a_burden_is_about_whom_it_wrongly_says_yes_to(self, made):
        found = findings(made.decided([(380, 20, 60, 40), (340, 60, 30, 70)], ["a", "b"]), "", "burden")
        assert headline.headline(found) == "The model wrongly says yes to 5.0% of the negatives in a and 15.0% in b."
        assert found.rows["positive_rate"].better_off(found.groups) == ("a",)
        assert "b has more positives found (tpr 70% against 40%)." in headline.lead(found)

    def test_undeclared_it_says_both_and_that_nothing_was_declared(self, made):
        found = findings(made.decided([(380, 20, 60, 40), (340, 60, 30, 70)], ["a", "b"]))
        assert headline.headline(found) == (
            "The model finds 40% of the positives in a and 70% in b; it wrongly says yes to 5.0% and 15.0% of the negatives."
        )
        assert (
            'It was not declared what a yes does to a person (positive="benefit" or "burden").'
            in headline.scope_line(found)
        )
        assert "b has more yeses (positive rate 26% against 12%)." in headline.lead(found)

    def test_the_positive_label_is_named_and_whether_anybody_declared_it(self, made):
        run = made.decided([(380, 20, 60, 40), (340, 60, 30, 70)], ["a", "b"])
        guessed = findings(made.read_as(run, ["approved", "denied"], None), "", "benefit")
        assert headline.headline(guessed) == "The model finds 40% of the positives (denied) in a and 70% in b."
        assert "yes = denied" in headline.kicker(guessed)
        guess = (
            "Nobody declared denied to be the positive label: it is the last in sorted order. If a yes should mean the other "
            "label, everything here is the wrong way round: say positive= where the table is read. "
        )
        assert headline.lead(guessed).startswith(f"{guess}b is better off by positives found")
        yes, rightly = (
            '"Yes" is the decision for the positive label, denied. ',
            "To find someone is to say yes rightly.",
        )
        assert headline.scope_line(guessed).startswith(f"{yes}{rightly}")
        undeclared = findings(made.read_as(run, ["approved", "denied"], None))
        assert headline.scope_line(undeclared).startswith(f"{yes}{guess}{rightly}")
        assert "Nobody" not in headline.lead(undeclared)
        declared = findings(made.read_as(run, ["denied", "approved"], "approved"), "", "burden")
        assert headline.headline(declared).startswith("The model wrongly says yes (approved) to 5.0% of the negatives")
        assert "Nobody" not in headline.scope_line(declared) + headline.lead(declared)
        assert "yes = approved" in headline.kicker(declared)

    def test_labels_that_are_numbers_or_many_have_no_name(self, made):
        assert positive_label(made.census()) is None
        assert positive_label(made.read_as(made.census(), ["a", "b", "c"], None)) is None
        assert positive_label(made.read_as(made.census(), ["a", "b" * 90], None)).name == "b" * 40 + "…"

    def test_what_is_not_shown_is_no_headline(self, made, equal):
        assert headline.headline(equal) == (
            "The model finds 40% of the positives in a and 40% in b: no difference is shown."
        )
        cells = [(300, 20, 44, 156), (300, 20, 40, 160), (300, 20, 42, 158)]
        found = findings(made.decided(cells, list("abc")), "", "benefit")
        assert headline.headline(found) == (
            "No group is shown to be found less often than the rest (78% in a, 80% in b)."
        )
        undeclared = findings(made.decided([(300, 20, 44, 156), (200, 120, 40, 160)], list("ab")))
        assert headline.headline(undeclared) == (
            "The model finds 78% of the positives in a and 80% in b; it wrongly says yes to 6.2% and 37.5% of the negatives. "
            "Only the latter difference is shown."
        )

    def test_of_four_groups_the_worst_and_the_best(self, made):
        cells = [(300, 20, 100, 100), (300, 20, 40, 160), (300, 20, 160, 40), (300, 20, 100, 100)]
        found = findings(made.decided(cells, list("abcd")), "", "benefit")
        assert headline.headline(found) == "The model finds 20% of the positives in c and 80% in b."
        assert headline.lead(found).startswith("c is worse off than the rest by positives found (tpr 20%)")

    def test_many_groups_are_counted(self, many):
        assert headline.headline(many) == "1 of 8 groups is found less often than the rest: x & g; 1 cannot be judged."

    def test_what_the_numbers_are_of(self, census, five):
        assert headline.scope_line(census).endswith(
            "Numbers are of this run at its last evaluation, step 500, on 8,000 points held out from training; brackets are 95% "
            "limits."
        )
        assert "the mean of 5 starts at their last evaluation" in headline.scope_line(five)

    def test_what_is_not_declared_well_is_refused(self, made):
        with pytest.raises(ValueError, match="`positive` should be"):
            findings(made.census(), "", "good")
        run = made.census()
        bare = run.replace({name: run[name] for name in ("loss", "error")})
        with pytest.raises(ValueError, match="`positive` is for runs that decide between two labels"):
            findings(bare, "", "benefit")


class TestFirstParagraph:
    def test_both_facts_and_the_reason_stand_there(self, census):
        text = headline.lead(census)
        assert text.startswith(
            "men is better off by positives found (tpr 43% against 22%) and yeses (positive rate 8.0% against 1.7%), where "
            "higher is better. women is better off by wrong yeses (fpr 0.9% against 2.2%), wrong decisions (error 3.6% "
            "against 10.0%) and loss (0.151 against 0.240), where lower is better. Measures disagree because base rates differ: 3.5% of women and 14.3% of men are positive, so that "
            "saying no errs less for women."
        )

    def test_nothing_shown_is_said_with_the_values(self, equal):
        assert headline.lead(equal).startswith(
            "No difference is shown in positives found (tpr 40% for a, 40% for b); wrong yeses (fpr 5.0% for a, 5.0% for b); "
            "yeses (positive rate 12% for a, 12% for b); wrong decisions (error 16% for a, 16% for b); loss (0.324 for a, "
            "0.324 for b)."
        )

    def test_calibration_names_whose_probabilities_are_wrong(self, census):
        """Probabilities of .05 and .7: men who are told no are positive in 305 of 3,448 cases, not in 172."""
        by_group = {one.group: one for one in census.calibration.groups}
        off = (3448 * abs(305 / 3448 - 0.05) + 301 * abs(231 / 301 - 0.7)) / 3749
        assert by_group["men"].error == pytest.approx(off, abs=1e-6)
        text = headline.calibration_sentence(census)
        assert text.startswith("Calibration: probabilities are shown to be wrong for ")
        assert "men (off by 4.1 points" in text
        assert "too low on average" in text


class TestAnswers:
    def test_who(self, census):
        gap = census.headline.differences[0]
        assert gap.value == pytest.approx(33 / 150 - 231 / 536)
        text = answers.who(census)
        assert text.startswith(
            "women. Of 150 positives in women the model finds 33, of 536 in men 231: 21 points apart ("
        )
        assert -0.36 < gap.low < -0.25
        assert -0.15 < gap.high < -0.05

    def test_who_when_nothing_is_shown(self, equal):
        text = answers.who(equal)
        assert text.startswith(
            "No difference is shown in positives found. Of 100 positives in a the model finds 40, of 100 in b 40: "
        )
        assert text.endswith("points, which is too wide to tell.")

    def test_who_names_the_measure_that_is_shown(self, made):
        """All groups are found alike, and c has half as many positives: it gets fewer yeses, as it should."""
        cells = [(300, 0, 20, 180), (300, 0, 20, 180), (900, 0, 20, 180)]
        found = findings(made.decided(cells, list("abc")), "", "benefit")
        text = answers.who(found)
        assert text.startswith(
            "No difference from the rest is shown for any group in positives found. Worse off by yeses ("
        )
        assert "by yeses (positive rate): c" in text
        reason = answers.reason(found)
        assert "Base rates account for the difference in yeses, as far as is shown: the yeses of c and " in reason
        assert "have the ratio 0.45, their base rates 0.45." in reason
        more = findings(made.decided([(300, 0, 20, 180)] * 2 + [(300, 0, 120, 80)], list("abc")), "", "benefit")
        assert "Yeses differ more than base rates do: the yeses of c and " in answers.reason(more)

    def test_undecided_in_three_ways(self, census):
        row = census.headline
        narrow, wide = Estimate(0.001, -0.012, 0.014), Estimate(0.01, -0.2, 0.2)
        between = Estimate(0.01, -0.03, 0.05)
        assert answers.undecided(row, narrow) == (
            "the difference lies between −1.2 and 1.4 points; more than 1.4 points are ruled out"
        )
        assert (
            answers.undecided(row, wide) == "the difference lies between −20 and 20 points, which is too wide to tell"
        )
        assert answers.undecided(row, between) == "the difference lies between −3.0 and 5.0 points"

    def test_chance_knows_one_run_from_several(self, census, five, equal):
        assert answers.chance(census).startswith(
            "Hardly. With groups shuffled among the positives, 95 of 100 differences "
        )
        assert "The limits hold for 2 evaluations and 5 measures; any of them is wrong in at most 5%" in answers.chance(
            census
        )
        assert answers.chance(census).endswith("One run only: another start may differ.")
        assert "The sign is the same in 5 of 5 starts, the difference " in answers.chance(five)
        assert answers.chance(equal).startswith("That is not ruled out.")

    def test_a_difference_that_only_one_look_would_show_is_explained(self, made):
        """40 of 100 against 55 of 100 are 2.1 standard errors apart: enough for one evaluation, not for 3 evaluations,
        5 curves."""
        found = findings(made.decided([(380, 20, 60, 40), (380, 20, 45, 55)], ["a", "b"]), "", "benefit")
        text = answers.chance(found)
        assert text.startswith("That is not ruled out. With groups shuffled among the positives, 95 of 100 ")
        assert "This one is larger, but among so many evaluations and measures one of that size is not rare." in text
        assert "This one is larger" not in answers.chance(
            findings(made.decided([(380, 20, 60, 40)] * 2, ["a", "b"]), "", "benefit")
        )

    def test_shuffled_groups_by_the_normal_law(self, census):
        """Two standard errors of a difference of shares among 686 positives, 264 of them found."""
        share = 264 / 686
        expected = 196 * np.sqrt(share * (1 - share) * (1 / 150 + 1 / 536))
        told = float(answers.chance(census).split("stay below ")[1].split(" points")[0])
        assert told == pytest.approx(expected, abs=0.9)  # one person more

    def test_why_measures_disagree(self, census):
        assert headline.disagree(census)
        assert answers.measures(census).startswith(
            "The error of women is lower, 3.6% against 10.0%; fewer of women are positive: 3.5% against 14.3%. The best "
            "constant answer would err for 3.5% and 14.3%. Of such errors the model removes for women none that is shown ("
        )
        assert "30% for men (" in answers.measures(census)

    def test_an_audit(self, census):
        """71 of 4,251 against 301 of 3,749; in the data 150 of 4,251 against 536 of 3,749."""
        text = answers.audit(census)
        assert text.startswith(
            "Yes for 1.7% of women and 8.0% of men: impact ratio 0.21 (0.16 to 0.27), below four fifths."
        )
        assert text.endswith("A model that is always right would have 0.25.")

    def test_when(self, census, equal):
        assert onset.when_did_it_arise(census).startswith("It is shown from step 500 of 500 on to the end.")
        assert onset.when_did_it_arise(equal) == "No difference is shown at any evaluation."

    def test_when_says_in_how_many_starts(self, five, made):
        """Three evaluations, shown from the last one on: five starts decide nearly alike, so all keep the sign."""
        text = onset.when_did_it_arise(five)
        assert text.startswith(
            "It is shown from step 500 of 500 on to the end. It keeps its sign from there on in 5 of 5"
        )
        assert "starts" not in onset.when_did_it_arise(findings(made.census(), "", "benefit"))

    def test_all_looks_that_showed_it_are_told(self, census):
        def one(first, last, evaluations):
            return onset.Stretch(first, last, "men", evaluations, 0.1)

        spans = [one(10, 20, 3), one(40, 40, 1)]
        assert onset._spans(census, spans) == "from step 10 to 20 and at step 40"
        assert onset._spans(census, [*spans, one(60, 80, 2), one(100, 100, 1)]) == (
            "at 7 evaluations between step 10 and 100"
        )

    def test_why_of_several_groups_begins_with_base_rates(self, made, many):
        """Of 700 in c 350 are positive; of 1,560 others 600."""
        cells = [(300, 20, 100, 100), (300, 20, 40, 160), (175, 175, 310, 40), (300, 20, 100, 100)]
        found = findings(made.decided(cells, list("abcd")), "", "benefit")
        assert found.headline.worse_off(found.groups) == ("c",)
        assert answers.measures(found).startswith("Base rates: 50% of c and 38% of the others are positive.")
        level = findings(made.decided([(380, 20, 60, 40)] * 3 + [(190, 10, 60, 40)], list("abcd")), "", "benefit")
        assert answers.measures(level).startswith("Base rates differ: from 20% positives in a to 33% in d.")
        assert answers.measures(many).startswith("Base rates: 38% of x & g and 38% of the others are positive.")

    def test_what_would_change_it(self, census, made):
        other = findings(
            made.decided([(4063, 38, 75, 75), (3143, 70, 305, 231)], ["women", "men"]), "heavier", "benefit"
        )
        text = what_would_change(census, (other,))
        assert text.startswith("With heavier: 50% for women, 43% for men, no difference shown (")
        assert "error of all 0.5 points less (0.4 to 0.7)." in text  # 42 of 8,000 people fewer, give or take 6.5
        assert what_would_change(census).endswith("No other training was tried.")

    def test_what_is_not_known(self, census, five, many):
        assert answers.unknown(census).startswith("What another start would give: this is one run.")
        assert "one run" not in answers.unknown(five)
        assert answers.unknown(many).startswith("What happens to x & h: fewer than 10 positives held out in each.")

    def test_groups_worse_off_by_the_same_measure_share_a_sentence(self, made):
        """a and b are said yes to in 10 of 100, six others in 50 of 100: once, with both values."""
        cells = [(90, 0, 0, 10)] * 2 + [(50, 0, 0, 50)] * 6
        found = findings(made.decided(cells, list("abcdefgh")), "", "benefit")
        told = "a and b are worse off than the rest by yeses (positive rate 10% and 10%), where higher is better."
        assert told in headline.lead(found)

    def test_the_first_look_of_many_groups_is_a_range(self, many):
        text = onset.events(many)[0].text
        assert text.startswith("At the first evaluation the model says yes to ")
        assert text.count("%") <= 2

    def test_many_groups_have_no_ranking(self, many):
        text = answers.who(many)
        assert text.startswith("Worse off than the rest by positives found (tpr): x & g (")
        assert "No difference from the rest is shown for" in text
        assert "Could be the worst off: " in text

    def test_a_group_against_the_rest_by_hand(self, many):
        """Group g: 40 of 200 found, of all others 960 of 1,200: a group of three positives does not count."""
        place = many.groups.index(("x", "g"))
        assert many.headline.differences[place].value == pytest.approx(40 / 200 - 960 / 1200)


class TestClaim:
    @pytest.mark.parametrize(
        ("base", "within", "said"),
        [
            ((0.07, 0.06, 0.08), (-0.01, -0.02, 0.01), "Base rates make the difference in error."),
            ((0.01, -0.01, 0.02), (0.05, 0.03, 0.07), "Decisions within labels make the difference in error, not base"),
            ((0.03, 0.02, 0.04), (0.03, 0.01, 0.05), "Base rates and decisions within labels both make the difference"),
            ((0.03, -0.01, 0.07), (0.03, -0.01, 0.07), "It is not shown whether base rates or decisions within labels"),
        ],
    )
    def test_which_part_is_named(self, base, within, said):
        parts = (Estimate(*one) for one in ((0.06, 0.05, 0.07), base, within))
        assert claim(BaseRateSplit("error", ("a", "b"), *parts, 0.05)).startswith(said)

    def test_groups_of_several_attributes_have_readable_names(self, many):
        text = split_sentence(many.splits[0], group_name)
        assert "x & " in text
        assert "('x'" not in text


class TestEvents:
    def test_the_dated_list(self, census):
        told = [(event.first, event.text) for event in onset.events(census)]
        assert told[0] == (0.0, "At the first evaluation the model says yes to 0.0% of both groups.")
        assert (500.0, "The model begins to say yes.") in told
        assert (500.0, "From here on the difference in positives found is shown, to the end.") in told
        assert told[-1][1] == "At the end the difference is 21 points and is shown."
