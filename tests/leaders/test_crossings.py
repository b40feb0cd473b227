"""crossings, leader, crossing_count: exact and measured curves."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter import SGD, Trajectory, load, predict, save, teacher_mixture
from tiltmeter.pairs import the_pair
from tiltmeter.record import Origin
from tiltmeter.theory import Mixture, cases


def measured(values, times=None, se=None, seeds=False, better="lower", name="loss"):
    """A recorded curve with groups a and b; `values` has shape (time, group) or (time, group, seed)."""
    values = np.asarray(values, dtype=float)
    times = np.arange(1.0, len(values) + 1) if times is None else times
    dims = ("time", "group", "seed") if seeds else ("time", "group")
    coords = {"time": times, "group": ["a", "b"]}
    curves = {name: xr.DataArray(values, dims=dims, coords=coords, attrs={"better": better})}
    if se is not None:
        curves[f"{name}_se"] = xr.DataArray(np.full(values.shape, se), dims=dims, coords=coords)
    return Trajectory(curves, "step", Origin("training"))


def gap(*differences):
    """A curve whose gap a - b takes these values."""
    return [[0.5 + d, 0.5] for d in differences]


class TestExact:
    def test_refined_far_beyond_the_looks(self):
        problem, sgd, _ = cases.centred_crossing()
        coarse = tm.leaders(predict(problem, sgd, [0.1, 100.0], ["loss"]), "loss")
        fine = tm.leaders(predict(problem, sgd, np.geomspace(0.01, 200, 3000), ["loss"]), "loss")
        assert coarse.changes[0].time == pytest.approx(fine.changes[0].time, rel=1e-10)
        values = predict(problem, sgd, [coarse.changes[0].time])["loss"].values[0]
        assert abs(values[0] - values[1]) < 1e-13
        assert coarse.changes[0].low == coarse.changes[0].time == coarse.changes[0].high

    def test_two_looks_are_enough_to_find_a_double_crossing(self):
        problem, sgd, _ = cases.three_phases()
        assert [round(c.time, 2) for c in tm.leaders(predict(problem, sgd, [0.01, 200.0]), "loss").changes] == [
            1.13,
            11.88,
        ]

    def test_nothing_before_the_first_or_after_the_last_look(self):
        problem, sgd, _ = cases.three_phases()
        assert len(tm.leaders(predict(problem, sgd, [2.0, 200.0]), "loss").changes) == 1
        assert len(tm.leaders(predict(problem, sgd, [2.0, 10.0]), "loss").changes) == 0

    def test_the_start_does_not_count(self):
        problem, sgd, _ = cases.centred_crossing()
        assert (
            len(tm.leaders(predict(problem, sgd, np.concatenate([[0.0], np.geomspace(1e-6, 100, 50)])), "loss").changes)
            == 1
        )

    def test_rounding_does_not_count(self):
        for case in (cases.no_bias, cases.spurious_correlation):
            found = tm.leaders(predict(*case()), "loss")
            assert found.changes == ()
            assert str(found) == "No group leads: the loss of all groups is the same up to rounding.\nExact theory."

    def test_losses_may_cross_while_errors_do_not(self):
        theory = predict(*cases.centred_crossing())  # centred: errors follow R, whose order never changes
        assert tm.leaders(theory, "error").headline.claim == "Group + has the lower error throughout."
        assert len(tm.leaders(theory, "loss").changes) == 1

    def test_a_loaded_run_is_refined_as_well(self, tmp_path):
        theory = predict(*cases.three_phases())
        save(theory, tmp_path / "run")
        again = load(tmp_path / "run")
        assert again.evaluate is None
        assert [c.time for c in tm.leaders(again, "loss").changes] == pytest.approx(
            [c.time for c in tm.leaders(theory, "loss").changes], rel=1e-12
        )
        assert str(tm.leaders(again, "loss")) == str(tm.leaders(theory, "loss"))

    def test_after_a_change_of_clock(self):
        theory = predict(*cases.centred_crossing())
        assert tm.leaders(theory.on_clock("step", d=100), "loss").changes[0].time == pytest.approx(
            100 * tm.leaders(theory, "loss").changes[0].time, rel=1e-9
        )

    def test_all_pairs_of_three_groups_or_one(self):
        three = Mixture(
            {"a": 0.8, "b": 0.1, "c": 0.1}, {"a": 0.5, "b": 1.5, "c": 1.0},
            np.block([[np.zeros((3, 3)), np.zeros((3, 3))], [np.zeros((3, 3)), 0.5 * np.eye(3) + 0.5]]),
        )  # fmt: skip
        theory = predict(three, SGD(lr=0.1), np.geomspace(0.01, 200, 50))
        every = tm.leaders(theory, "loss")
        assert {c.pair for c in every.changes} >= {("a", "b"), ("b", "c")}
        assert [c.time for c in every.changes] == sorted(c.time for c in every.changes)
        only = tm.leaders(theory, "loss", groups=("b", "a"))
        assert [c.time for c in only.changes] == [c.time for c in every.changes if c.pair == ("a", "b")]
        assert every.headline.claim.startswith("Group b has the lowest loss until t = ")

    def test_sentences(self):
        assert tm.leaders(predict(*cases.no_crossing()), "loss").headline.claim == (
            "Group + has the lower loss throughout (more data)."
        )
        assert (
            str(tm.leaders(predict(*cases.centred_crossing()), "loss").changes[0])
            == "the lead passes from - to + at 5.643"
        )


class TestMeasured:
    def test_a_change_between_decided_looks_with_its_interval(self):
        run = measured(gap(0.1, 0.09, 0.001, -0.002, -0.1), se=0.005)
        (found,) = tm.leaders(run, "loss").changes
        assert (found.low, found.high) == (2.0, 5.0)
        assert 3.0 < found.time < 4.0
        assert (found.leader_before, found.leader_after) == ("b", "a")

    def test_flicker_inside_the_noise_is_no_crossing(self):
        assert tm.leaders(measured(gap(0.1, -0.005, 0.004, -0.003, 0.1), se=0.005), "loss").changes == ()

    def test_without_any_error_every_look_counts(self):
        assert len(tm.leaders(measured(gap(0.1, -0.005, 0.004, -0.003, 0.1)), "loss").changes) == 4

    def test_seeds_count_as_one_ensemble(self):
        rng = np.random.default_rng(0)
        truth = np.array([0.1, 0.05, 0.0, -0.05, -0.1])
        noise = rng.normal(0, 0.02, size=(5, 2, 40))
        values = np.stack([0.5 + truth[:, None] + noise[:, 0], 0.5 + noise[:, 1]], axis=1)
        (found,) = tm.leaders(measured(values, seeds=True), "loss").changes
        assert 2.0 <= found.low < 3.0 + 1e-9
        assert found.high <= 4.0

    def test_higher_is_better_where_the_curve_says_so(self):
        low, high = (
            tm.leaders(measured(gap(0.1, -0.1), better=b), "loss").changes[0].leader_before for b in ("lower", "higher")
        )
        assert (low, high) == ("b", "a")

    def test_missing_values_are_undecided(self):
        (found,) = tm.leaders(measured(gap(0.1, np.nan, -0.1)), "loss").changes
        assert (found.low, found.high) == (1.0, 3.0)
        assert np.isfinite(found.time)

    def test_phases_of_a_measured_run_have_no_drivers(self):
        found = tm.leaders(measured(gap(0.1, 0.1, -0.1, -0.1)), "loss")
        assert [phase.leader for phase in found.phases] == ["b", "a"]
        assert [phase.driver for phase in found.phases] == [None, None]
        assert found.headline.line == (
            "Group b has the higher loss: 0.5 against 0.4. 0.1 apart. Clear from step 3 of 4 on. "
            "Until step 2 group b was better off; they changed places at step 3."
        )


class TestGrids:
    def test_leader_and_count_equal_the_single_answers(self):
        rho = [0.3, 0.6, 0.8, 0.95]
        grid = predict(
            teacher_mixture(("rho", rho), variance=(0.5, 1.5), overlap=0.5), SGD(lr=0.1), np.geomspace(0.01, 400, 300)
        )
        for share in rho:
            alone = predict(
                teacher_mixture(share, variance=(0.5, 1.5), overlap=0.5), SGD(lr=0.1), np.geomspace(0.01, 400, 300)
            )
            assert tm.theory.crossing_count(grid).sel(rho=share).item() == len(tm.leaders(alone, "loss").changes)
            assert (
                tm.theory.leader_on_grid(grid).sel(rho=share).isel(time=-1).item()
                == tm.theory.leader_on_grid(alone).isel(time=-1).item()
            )

    def test_ties_and_missing_values_have_no_leader(self):
        assert tm.theory.leader_on_grid(measured([[0.5, 0.5], [np.nan, np.nan], [0.4, 0.5]])).values.tolist() == [
            "",
            "",
            "a",
        ]

    def test_an_undecided_look_neither_hides_nor_makes_a_change(self):
        assert tm.theory.crossing_count(measured(gap(0.1, 0.0, -0.1))).item() == 1
        assert tm.theory.crossing_count(measured(gap(0.1, 0.0, 0.1))).item() == 0

    def test_diverged_points_count_nothing(self):
        with pytest.warns(UserWarning, match="stability limit"):
            grid = predict(teacher_mixture(0.8, variance=(0.5, 1.5)), SGD(lr=("lr", [0.1, 9.0])), [0.1, 1.0, 100.0])
        assert tm.theory.crossing_count(grid).sel(lr=9.0).item() == 0
        assert tm.theory.leader_on_grid(grid).sel(lr=9.0).values.tolist() == [""] * 3


GRID = predict(teacher_mixture(("rho", [0.3, 0.6])), SGD(lr=0.1), [0.1, 1.0])
THREE = Mixture({"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 1, "b": 1, "c": 1}, np.diag([0.0] * 3 + [1.0] * 3))
BAD = [
    (lambda: tm.leaders(GRID, "loss").changes, ValueError, "this one has a grid over rho. Use `theory.crossing_count` and `theory.leader_on_grid`"),
    (lambda: tm.leaders(predict(*cases.no_bias()), "lss").changes, KeyError, "No curve 'lss'. There are: loss"),
    (lambda: tm.leaders(predict(*cases.no_bias()), "M").changes, ValueError, "'M' is neither better high nor better low"),
    (lambda: tm.leaders(predict(*cases.no_bias()), "risk").changes, ValueError, "Curve 'risk' has no groups to compare."),
    (lambda: tm.leaders(predict(*cases.no_bias()), "loss", groups=("+", "x")).changes, KeyError, "No group 'x'. There are: '+', '-'."),
    (lambda: tm.leaders(predict(*cases.no_bias()), "loss", groups=("+", "+")).changes, ValueError, "`pair` should name two different groups"),
    (lambda: the_pair(predict(THREE, SGD(lr=0.1), [1.0, 2.0])["loss"], None), ValueError, "This compares two groups; there are 3: 'a', 'b', 'c'. Pass pair=('a', 'b') or another pair. `leaders` answers for all pairs."),
    (lambda: tm.leaders(measured(gap(0.1), better="sideways"), "loss").changes, ValueError, "says better = 'sideways'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "sentence"), BAD, ids=[sentence[:60] for _, _, sentence in BAD])
def test_bad_input_gets_one_clear_sentence(call, kind, sentence):
    with pytest.raises(kind) as raised:
        call()
    assert sentence in str(raised.value)


class TestLeaders:
    @pytest.mark.parametrize(
        ("gaps", "first", "last", "in_turn"),
        [
            ((0.0, 0.1, 0.1, -0.1, -0.1), "b", "a", ("b", "a")),
            ((0.1, 0.1, 0.1, 0.1, 0.0), "b", "", ("b",)),
            ((0.1, -0.1, -0.1, -0.1, 0.1), "b", "b", ("b", "a", "b")),
            ((0.001, -0.001, 0.0, 0.001, 0.001), "", "", ()),
        ],
    )
    def test_first_and_last_are_those_of_decided_looks(self, gaps, first, last, in_turn):
        found = tm.leaders(measured(gap(*gaps), se=0.005), "loss")
        assert (found.first, found.last, found.order) == (first, last, in_turn)
        assert bool(found.changes) == (len(in_turn) > 1)

    def test_where_higher_is_better_the_other_one_leads(self):
        loss = measured(gap(0.1, 0.1, 0.1, 0.1, -0.1), se=0.005)
        curves = {name: curve.assign_attrs(better="higher") for name, curve in loss.items()}
        found = tm.leaders(loss.replace(curves), "loss")
        assert (found.first, found.last) == ("a", "b")

    def test_of_several_groups_one_is_ahead_of_all_others_or_nobody_is(self):
        values = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.2]])
        coords = {"time": [1.0, 2.0], "group": ["a", "b", "c"]}
        loss = xr.DataArray(values, dims=("time", "group"), coords=coords)
        found = tm.leaders(Trajectory({"loss": loss}, "step", Origin("training")), "loss")
        assert found.first == "a"
        assert found.last == ""  # b and c are level at the last evaluation
        with pytest.raises(ValueError, match="Several pairs of groups have no common order"):
            _ = found.order
        circle = loss.copy(data=np.array([[0.1, 0.2, np.nan], [np.nan, 0.1, 0.2]]))
        assert tm.leaders(Trajectory({"loss": circle}, "step", Origin("training")), "loss").first == ""

    def test_a_gap_of_rounding_size_has_no_leader_without_an_error_either(self):
        found = tm.leaders(measured(gap(1e-15, -1e-15, 1e-15, 1e-15, 1e-15)), "loss")
        assert (found.changes, found.first) == ((), "")
