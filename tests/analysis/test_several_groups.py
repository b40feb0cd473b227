"""Three groups and more: pairs by name, sentences that say who is meant, and what the error rate covers."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.analysis.memorisation import Change
from tiltmeter.cli.summary import Summary
from tiltmeter.record import Origin

PROBLEM = tm.Mixture.from_vectors(
    weight={"north": 0.6, "south": 0.3, "islands": 0.1},
    variance={"north": 0.5, "south": 1.2, "islands": 2.0},
    means={"north": [0.4, 0, 0], "south": [0, 0.3, 0], "islands": [0, 0, -0.5]},
    teachers={"north": [0, 1, 0.2], "south": [0.6, 0.8, 0], "islands": [0, 0.5, 1]},
)
TIMES = np.geomspace(0.01, 50.0, 100)


@pytest.fixture(scope="module")
def theory():
    return tm.predict(PROBLEM, tm.SGD(lr=0.2), TIMES, curves=["loss"])


def measured(groups, points=120, looks=3):
    """A run whose first group has the lower losses from the second look on."""
    rng = np.random.default_rng(0)
    codes = np.arange(points * len(groups)) % len(groups)
    shift = np.where(codes == 0, -1.0, 0.0)[None] * (np.arange(looks) > 0)[:, None]
    losses = rng.normal(size=(looks, len(codes))) + shift
    means = np.stack([losses[:, codes == g].mean(1) for g in range(len(groups))], axis=1)
    labels = np.empty(len(groups), dtype=object)
    labels[:] = groups
    times = np.arange(looks) * 10
    loss = xr.DataArray(means, dims=("time", "group"), coords={"time": times, "group": labels})
    kept = xr.DataArray(losses, dims=("time", "point"), coords={"time": times, "group": ("point", labels[codes])})
    return tm.Trajectory({"loss": loss}, "step", Origin("training"), points={"loss": kept})


class TestPairs:
    def test_the_label_of_a_pair_is_accepted(self, theory):
        for ask in (tm.phases, tm.crossings):
            assert str(ask(theory, pair="north vs islands")) == str(ask(theory, pair=("north", "islands")))
        one, two = (tm.drivers(PROBLEM, tm.SGD(lr=0.2), [1.0], pair) for pair in ("south vs north", ("south", "north")))
        assert one == two
        assert tm.crossing_count(theory, pair="north vs south") == tm.crossing_count(theory, pair=("north", "south"))

    def test_a_label_of_no_pair_is_refused(self, theory):
        with pytest.raises(ValueError, match='as in "north vs south", "north vs islands", "south vs islands"'):
            tm.phases(theory, pair="north vs west")

    def test_the_message_gives_a_pair_to_pass(self):
        with pytest.raises(ValueError, match=r"Pass pair=\('north', 'south'\) or another pair"):
            tm.drivers(PROBLEM, tm.SGD(lr=0.2), [1.0])


class TestPhasesOfSeveralGroups:
    def test_exact_phases_are_those_of_the_lowest_curve(self, theory):
        found = tm.phases(theory)
        assert found.pair is None
        assert str(found) == "south leads until t = 8.378, then north."
        for phase in found:
            middle = tm.predict(PROBLEM, tm.SGD(lr=0.2), [(phase.start * phase.stop) ** 0.5], curves=["loss"])["loss"]
            assert str(middle.isel(time=0).idxmin("group").item()) == phase.leader
        assert [phase.start for phase in found[1:]] == [phase.stop for phase in found[:-1]]
        assert str(tm.crossings(theory)).startswith(f"Ahead of all others: {str(found)[:-1]}; never islands.")

    def test_a_measured_leader_is_ahead_of_every_other_group(self):
        found = tm.phases(measured(["a", "b", "c"]))
        assert [phase.leader for phase in found] == ["", "a"]
        assert str(found).startswith("Shown ahead of all others: a from step 10 to 20.\nIn this run (")

    def test_one_above_the_mean_among_many_is_no_leader(self):
        """a is below the mean loss of seven groups, but nobody else is shown to be above it."""
        found = tm.phases(measured(list("abcdefg")))
        assert found.standing.against_all
        assert str(found).startswith("No group is shown to be ahead of all others at any look.\n")
        assert tm.crossings(measured(list("abcdefg"))).last_leader == ""


class TestSentences:
    def test_crossings_say_who_leads_all_and_then_each_pair(self, theory):
        found = tm.crossings(theory)
        told = str(found)
        assert told.startswith("Ahead of all others: ")
        never = [g for g in PROBLEM.groups if g not in tm.leader(theory).values]
        assert all(f"never {group}" in told for group in never)
        for crossing in found:
            a, b = crossing.pair
            assert f"{a} and {b}: " in told
            assert f"t = {crossing.time:.4g}" in told

    def test_memorisation_names_both_groups(self):
        moved, gone = Change("moved", 1.0, 2.0, "a", ("a", "b")), Change("removed", 1.0, None, "c", ("a", "c"))
        assert moved.sentence(both=True) == "the change from b to a moves from t = 1 to 2"
        assert gone.sentence(both=True) == "the change from a to c at t = 1 disappears"
        assert str(moved) == "the change to a moves from t = 1 to 2"

    def test_a_pair_of_a_measured_run_has_its_own_line(self):
        lines = str(tm.standing(measured(["west", "south", "east"]), "loss")).splitlines()
        assert "3 pairs together, 5 %" in lines[0]
        assert "west has a lower loss than south from step 10 to 20" in "\n".join(lines)
        assert len(lines) == 4

    def test_two_groups_are_told_as_before(self):
        told = str(tm.standing(measured(["west", "south"]), "loss"))
        assert "\n" not in told
        assert "west has the lower loss from" in told

    def test_intersections_are_joined_without_brackets(self):
        run = measured([("north", "f"), ("north", "m"), ("south", "f")])
        told = str(tm.standing(run, "loss")) + str(tm.crossings(run)) + " ".join(Summary(run).doubts)
        assert "north & f has a lower loss than north & m" in told
        assert "('" not in told

    def test_doubts_about_several_pairs_in_the_same_looks_are_one_line(self):
        run = measured(["a", "b", "c", "d"], looks=6)
        summary = Summary(run)
        looks = {(one.low, one.high) for one in summary.crossings.undecided}
        assert len(summary.crossings.undecided) > len(looks)
        assert len(summary.doubts) == len(looks)


class TestErrorRate:
    def test_a_chosen_pair_says_that_the_choice_is_not_covered(self):
        run = measured(list("abcdef"))
        told = str(tm.phases(run, pair=("a", "f")))
        assert "5 % if this one of 15 pairs was chosen before looking" in told
        assert "a has a lower loss than f" in told

    def test_the_only_pair_needs_no_such_words(self):
        assert "chosen" not in str(tm.phases(measured(["a", "b"]), pair=("a", "b")))
        assert "chosen" not in str(tm.standing(measured(["a", "b", "c"]), "loss"))


class TestLookup:
    def test_either_order_with_the_sign_that_belongs_to_it(self):
        found = tm.standing(measured(["a", "b"]), "loss")
        one, two = found["loss", ("a", "b")], found["loss", ("b", "a")]
        assert two.pair == ("b", "a")
        assert (two.gap == -one.gap).all()
        assert (two.lower == -one.upper).all()
        assert two.leader.tolist() == one.leader.tolist()

    def test_a_curve_alone_is_answered_with_an_example(self):
        found = tm.standing(measured(["a", "b"]), "loss")
        for key in ("loss", ("loss", "a", "b"), ("loss", "a")):
            with pytest.raises(KeyError, match=r"found\['loss', \('a', 'b'\)\]"):
                found[key]

    def test_within_has_names(self):
        within = tm.standing(measured(["a", "b"]), "loss")["loss", ("a", "b")].within(5.0)
        assert (within.start, within.end) == (0.0, 20.0)
