"""Three groups and more: pairs by name, sentences that say who is meant, and what the error rate covers."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.cli.show import Summary
from tiltmeter.record import Origin
from tiltmeter.theory.memorisation import Change

PROBLEM = tm.theory.Mixture.from_vectors(
    weight={"north": 0.6, "south": 0.3, "islands": 0.1},
    variance={"north": 0.5, "south": 1.2, "islands": 2.0},
    means={"north": [0.4, 0, 0], "south": [0, 0.3, 0], "islands": [0, 0, -0.5]},
    teachers={"north": [0, 1, 0.2], "south": [0.6, 0.8, 0], "islands": [0, 0.5, 1]},
)
TIMES = np.geomspace(0.01, 50.0, 100)


@pytest.fixture(scope="module")
def theory():
    return tm.predict(PROBLEM, tm.SGD(lr=0.2), TIMES, curves=["loss"])


def measured(groups, points=120, evaluations=3):
    """A run whose first group has the lower losses from the second evaluation on."""
    rng = np.random.default_rng(0)
    codes = np.arange(points * len(groups)) % len(groups)
    shift = np.where(codes == 0, -1.0, 0.0)[None] * (np.arange(evaluations) > 0)[:, None]
    losses = rng.normal(size=(evaluations, len(codes))) + shift
    means = np.stack([losses[:, codes == g].mean(1) for g in range(len(groups))], axis=1)
    labels = np.empty(len(groups), dtype=object)
    labels[:] = groups
    times = np.arange(evaluations) * 10
    loss = xr.DataArray(means, dims=("time", "group"), coords={"time": times, "group": labels})
    kept = xr.DataArray(losses, dims=("time", "point"), coords={"time": times, "group": ("point", labels[codes])})
    return tm.Trajectory({"loss": loss}, "step", Origin("training"), points={"loss": kept})


class TestPairs:
    def test_the_label_of_a_pair_is_accepted(self, theory):
        asked = [tm.leaders(theory, "loss", groups=pair) for pair in ("north vs islands", ("north", "islands"))]
        assert str(asked[0]) == str(asked[1])
        one, two = (tm.drivers(PROBLEM, tm.SGD(lr=0.2), [1.0], pair) for pair in ("south vs north", ("south", "north")))
        assert one == two
        assert tm.theory.crossing_count(theory, pair="north vs south") == tm.theory.crossing_count(
            theory, pair=("north", "south")
        )

    def test_a_label_of_no_pair_is_refused(self, theory):
        with pytest.raises(ValueError, match='as in "north vs south", "north vs islands", "south vs islands"'):
            tm.leaders(theory, "loss", groups="north vs west")

    def test_the_message_gives_a_pair_to_pass(self):
        with pytest.raises(ValueError, match=r"Pass pair=\('north', 'south'\) or another pair"):
            tm.drivers(PROBLEM, tm.SGD(lr=0.2), [1.0])


class TestPhasesOfSeveralGroups:
    def test_exact_phases_are_those_of_the_lowest_curve(self, theory):
        found = tm.leaders(theory, "loss")
        assert found.headline.pair is None
        assert found.headline.claim == "Group south has the lowest loss until t = 8.378, then group north."
        for phase in found.phases:
            middle = tm.predict(PROBLEM, tm.SGD(lr=0.2), [(phase.start * phase.stop) ** 0.5], curves=["loss"])["loss"]
            assert str(middle.isel(time=0).idxmin("group").item()) == phase.leader
        assert [phase.start for phase in found.phases[1:]] == [phase.stop for phase in found.phases[:-1]]

    def test_a_measured_leader_is_ahead_of_every_other_group(self):
        found = tm.leaders(measured(["a", "b", "c"]), "loss")
        assert [phase.leader for phase in found.phases] == ["a"]
        assert found.headline.claim.startswith("Group c is worse off than all others together: loss ")

    def test_one_above_the_mean_among_many_is_no_leader(self):
        """a has a lower loss than all others together, but none of these is shown to be behind."""
        found = tm.leaders(measured(list("abcdefg"), points=60), "loss")
        assert found.headline.claim.startswith("All others together fall behind group a: loss ")
        assert found.headline.leader == "a"


class TestSentences:
    def test_every_pair_stands_in_the_table(self, theory):
        rows = tm.leaders(theory, "loss").to_frame()
        assert set(rows["pair"]) == {("north", "south"), ("north", "islands"), ("south", "islands")}
        last = tm.theory.leader_on_grid(theory).values[-1]
        assert [leader for pair, leader in zip(rows["pair"], rows["leader"], strict=True) if last in pair] == [last] * 2

    def test_memorisation_names_both_groups(self):
        moved, gone = Change("moved", 1.0, 2.0, "a", ("a", "b")), Change("removed", 1.0, None, "c", ("a", "c"))
        assert moved.sentence(both=True) == "the change from b to a moves from t = 1 to 2"
        assert gone.sentence(both=True) == "the change from a to c at t = 1 disappears"
        assert str(moved) == "the change to a moves from t = 1 to 2"

    def test_the_claim_stands_first_and_what_it_rests_on_second(self):
        lines = str(tm.leaders(measured(["west", "south", "east"]), "loss")).splitlines()
        assert lines[0].startswith("Group east is worse off than all others together: loss ")
        assert lines[1] == "One run; 360 points of 3 groups judged. At most 5 of 100 such statements are wrong."

    def test_two_groups(self):
        told = str(tm.leaders(measured(["west", "south"]), "loss"))
        assert told.startswith("Group south has the higher loss: ")

    def test_intersections_are_joined_without_brackets(self):
        run = measured([("north", "f"), ("north", "m"), ("south", "f")])
        told = str(tm.leaders(run, "loss")) + str(tm.leaders(run, "loss")) + " ".join(Summary(run).doubts)
        assert "Group north & f has a lower loss than all others together" in told
        assert "('" not in told

    def test_doubts_keep_the_names_of_groups_as_given(self):
        loss = xr.DataArray(
            [[0.2, 0.1], [0.1, 0.2], [0.2, 0.1]],
            dims=("time", "group"),
            coords={"time": [1, 2, 3], "group": ["B", "A"]},
        )
        run = tm.Trajectory({"loss": loss, "loss_se": 0.0 * loss + 1.0}, "step", Origin("training"))
        assert Summary(run).doubts == ["Not clear between 1 and 3 whether B or A leads."]

    def test_doubts_about_several_pairs_in_the_same_looks_are_one_line(self):
        run = measured(["a", "b", "c", "d"], evaluations=6)
        summary = Summary(run)
        evaluations = {(one.low, one.high) for one in summary.leaders.undecided}
        assert len(summary.doubts) == len(evaluations)


class TestErrorRate:
    def test_a_chosen_pair_says_that_the_choice_is_not_covered(self):
        run = measured(list("abcdef"))
        told = str(tm.leaders(run, "loss", groups=("a", "f")))
        assert "The pair should have been chosen, of 15, before the data were seen." in told
        assert "Group f has the higher loss" in told

    def test_the_only_pair_needs_no_such_words(self):
        assert "chosen" not in str(tm.leaders(measured(["a", "b"]), "loss", groups=("a", "b")))
        assert "chosen" not in str(tm.leaders(measured(["a", "b", "c"]), "loss"))


class TestLookup:
    def test_either_order_with_the_sign_that_belongs_to_it(self):
        found = tm.leaders(measured(["a", "b"]), "loss")
        one, two = found["loss", ("a", "b")], found["loss", ("b", "a")]
        assert two.pair == ("b", "a")
        assert (two.gap == -one.gap).all()
        assert (two.lower == -one.upper).all()
        assert two.leader.tolist() == one.leader.tolist()

    def test_a_curve_alone_is_answered_with_an_example(self):
        found = tm.leaders(measured(["a", "b"]), "loss")
        for key in ("loss", ("loss", "a", "b"), ("loss", "a")):
            with pytest.raises(KeyError, match=r"leaders\['loss', \('a', 'b'\)\]"):
                found[key]

    def test_within_has_names(self):
        within = tm.leaders(measured(["a", "b"]), "loss")["loss", ("a", "b")].within(5.0)
        assert (within.start, within.end) == (10.0, 20.0)
