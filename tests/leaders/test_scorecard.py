"""The scorecard: numbers of exact theory, hand-computed runs with seeds, and what it refuses."""

import json

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.record import Origin

TIMES = np.append(0.0, np.geomspace(60.0 / 3000.0, 60.0, 600))
INTERVENTIONS = tm.interventions
WAYS = {
    "plain": tm.SGD(lr=0.2),
    "balanced": tm.SGD(lr=0.2, interventions=(INTERVENTIONS.Balanced(by="draws"),)),
    "leveller": tm.SGD(lr=0.2, weights={"+": 0.035 / 0.75, "-": 0.965 / 0.25}),
    "damped": tm.SGD(lr=0.2, interventions=(INTERVENTIONS.GroupDRO(30.0, 150.0, begin="shares", by="draws"),)),
    "ringing": tm.SGD(lr=0.2, interventions=(INTERVENTIONS.GroupDRO(30.0, begin="shares", by="draws"),)),
}


@pytest.fixture(scope="module")
def card():
    problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    return tm.scorecard({name: tm.predict(problem, sgd, TIMES) for name, sgd in WAYS.items()})


@pytest.mark.parametrize(
    ("name", "worst", "worst_area", "gap_area"),
    [
        ("plain", 0.3512, 0.3445, 0.0872),
        ("balanced", 0.2888, 0.3020, 0.0421),
        ("leveller", 0.4259, 0.4305, 0.0009),
        ("damped", 0.2732, 0.2864, 0.0009),
    ],
)
def test_pinned_numbers_of_case_a(card, name, worst, worst_area, gap_area):
    row = card[name]
    found = row.worst.value, row.worst_area.value, row.gap_area.value
    assert np.round(found, 4).tolist() == [worst, worst_area, gap_area]


def test_who_pays_and_levelling_down(card):
    paid = {one.group: round(one.change.value, 3) for one in card["leveller"].paid}
    assert paid == {"+": 0.188, "-": 0.074}
    assert [row.name for row in card.rows if row.levels_down] == ["leveller"]
    assert {one.group: round(one.change.value, 3) for one in card["damped"].paid} == {"+": 0.035}
    assert card["plain"].paid == ()  # negative control: the baseline pays nothing to itself
    assert "It levels down" in str(card)


def test_ringing_creates_crossings(card):
    assert card["ringing"].crossings == 15
    assert (card["ringing"].created, card["ringing"].removed) == (14, 0)
    assert (card["balanced"].created, card["balanced"].removed) == (0, 1)
    assert round(card["ringing"].peak.gap, 3) == 0.032
    assert card["ringing"].peak.worse == "-"


def test_a_level_that_a_leveller_never_reaches_is_not_a_number(card):
    assert np.isnan([one.value for one in card["leveller"].loss_clock]).all()
    assert np.isfinite([one.value for one in card["damped"].loss_clock]).all()


def run(values, seeds=None, times=(0, 10, 20), settings=None, groups=("a", "b")):
    """A run with values (time, group) or (seed, time, group)."""
    dims = ("time", "group") if seeds is None else ("seed", "time", "group")
    coords = {"time": list(times), "group": list(groups), **({} if seeds is None else {"seed": list(seeds)})}
    curve = xr.DataArray(np.asarray(values, dtype=float), dims=dims, coords=coords).transpose("time", ...)
    return tm.Trajectory({"loss": curve}, "step", Origin("training", settings=settings or {}))


PLAIN = [[[1.0, 1.0], [0.4, 0.8], [0.2, 0.6]], [[1.0, 1.0], [0.4, 0.6], [0.2, 0.4]]]
CURED = [[[1.0, 1.0], [0.6, 0.6], [0.4, 0.5]], [[1.0, 1.0], [0.6, 0.4], [0.3, 0.3]]]


def test_hand_computed_seeds_are_paired():
    card = tm.scorecard({"plain": run(PLAIN, (3, 7)), "cured": run(CURED, (3, 7))})
    cured = card["cured"]
    assert cured.worst.value == pytest.approx(0.4)
    assert cured.worst_change.value == pytest.approx(-0.1)  # .5 - .6 and .3 - .4
    assert cured.worst_change.error == pytest.approx(0.0, abs=1e-12)  # paired: the seeds' own level cancels
    # a: +.2 and +.1, so .15 with standard error .05; b: -.1 twice.
    assert [(one.group, round(one.change.value, 3), round(one.change.error, 3)) for one in cured.paid] == [
        ("a", 0.15, 0.05)
    ]
    # Worst over training of seed 3: (1 + .6) / 2 and (.6 + .5) / 2 over ten steps each.
    assert cured.areas_by_seed[0][1] == pytest.approx((0.8 + 0.55) / 2)
    assert card.baseline.areas_by_seed[0][0] == pytest.approx((0.2 + 0.4) / 2)
    gaps = np.array([[0.0, 0.0, -0.1], [0.0, 0.2, 0.0]])
    floor = np.sqrt(2 / np.pi) * np.trapezoid(gaps.std(axis=0, ddof=1), [0, 10, 20]) / 20
    assert cured.noise_floor == pytest.approx(floor)
    assert "2 seeds" in card.basis
    assert "equal shares" in card.basis


def test_seeds_in_another_order_are_still_paired():
    one = tm.scorecard({"plain": run(PLAIN, (3, 7)), "cured": run(CURED, (3, 7))})
    two = tm.scorecard({"plain": run(PLAIN, (3, 7)), "cured": run(CURED[::-1], (7, 3))})
    assert one["cured"].worst_change == two["cured"].worst_change


def test_seeds_in_common_with_nobody_give_the_errors_of_both():
    card = tm.scorecard({"plain": run(PLAIN, (3, 7)), "cured": run(CURED, (4, 8))})
    assert card["cured"].worst_change.error == pytest.approx(np.hypot(0.1, 0.1))


def test_the_loss_clock_weighs_groups_as_in_training():
    settings = {"train": {"sizes": [["a", 30], ["b", 10]], "points": 40}}
    card = tm.scorecard({"plain": run(PLAIN[0], settings=settings), "cured": run(CURED[0])})
    # Plain falls from 1 to .75 * .2 + .25 * .6 = .3; half of it is .65. Cured passes from 1 to .6 in ten steps, alike.
    assert card["cured"].loss_clock[0].value == pytest.approx(0.65)
    # Plain: mean 1 -> .5; .65 at 70 % of the way, where b is 1 - .7 * .2.
    assert card["plain"].loss_clock[0].value == pytest.approx(0.86)
    assert card.shares == (0.75, 0.25)
    assert "equal shares" not in card.basis


def test_cost_counts_interventions_and_steps():
    settings = {"recipe": {"batch": 16}}
    doubled = {"recipe": {"batch": 32}}
    card = tm.scorecard({"plain": run(PLAIN[0], settings=settings), "more": run(CURED[0], settings=doubled)})
    assert card["more"].cost == 2.0
    unknown = tm.scorecard({"plain": run(PLAIN[0]), "more": run(CURED[0], settings=doubled)})
    assert np.isnan(unknown["more"].cost)
    assert "cost" not in str(unknown)


def test_measured_runs_are_compared_at_the_looks_that_both_have():
    long = run([*CURED[0], [0.1, 0.1]], times=(0, 10, 25, 40))
    card = tm.scorecard({"plain": run(PLAIN[0]), "long": long})
    assert card.end == 10
    assert card["long"].at_selected[0].value == 0.6
    assert "compared at the 2 evaluations that all runs have" in card.basis
    assert tm.scorecard({"plain": run(PLAIN[0]), "long": run([*CURED[0], [0.1, 0.1]], times=(0, 10, 20, 30))}).end == 20


def test_changes_of_leader_outside_the_common_looks_do_not_count():
    back = run([*PLAIN[0], [0.6, 0.2]], times=(0, 10, 20, 30))
    assert tm.leaders(back, "loss").changes
    assert tm.scorecard({"plain": run(PLAIN[0]), "back": back})["back"].crossings == 0


CASE_A = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
RINGING = tm.SGD(lr=0.2, interventions=(INTERVENTIONS.GroupDRO(30.0, begin="shares", by="draws"),))


@pytest.mark.parametrize("sgd", [tm.SGD(lr=0.2), RINGING])
@pytest.mark.parametrize(
    "evaluations",
    [
        ([1.0, 2.0], [1.0, 5.0, 7.0]),
        (np.geomspace(0.1, 60, 30), np.geomspace(0.1, 30, 30)),
        ([0.0, 3.0, 9.0], [0.5, 4.0, 8.0]),
    ],
)
def test_a_training_is_no_better_and_no_worse_than_itself_at_other_looks(evaluations, sgd):
    one, two = (tm.predict(CASE_A, sgd, times, curves=["loss"]) for times in evaluations)
    for runs in ({"a": one, "b": two}, {"b": two, "a": one}):
        row = tm.scorecard(runs).rows[1]
        assert row.paid == ()
        assert not row.levels_down
        assert (row.created, row.removed) == (0, 0)
        assert {row.worst_change.sign, row.worst_area_change.sign, row.gap_area_change.sign} == {0}


def test_few_looks_do_not_show_that_a_run_levels_down():
    """Means over training of two evaluations are too coarse to compare; a real difference at the end stays."""
    runs = {name: tm.predict(CASE_A, WAYS[name], [0.0, 60.0], curves=["loss"]) for name in ("plain", "balanced")}
    row = tm.scorecard(runs)["balanced"]
    assert [one.group for one in row.paid] == ["+"]
    assert row.worst_change.sign == -1
    few = {name: tm.predict(CASE_A, WAYS[name], [0.0, 30.0, 60.0], curves=["loss"]) for name in ("plain", "balanced")}
    assert tm.scorecard(few)["balanced"].gap_area_change.resolution > 1e-3


def test_a_stored_theory_is_exact_too(tmp_path):
    tm.save(tm.predict(CASE_A, WAYS["plain"], [1.0, 2.0], curves=["loss"]), tmp_path / "a")
    card = tm.scorecard({"a": tm.load(tmp_path / "a"), "b": tm.predict(CASE_A, WAYS["plain"], [1.0, 1.7, 3.0])})
    assert card.exact
    assert card["b"].paid == ()


def test_measured_runs_without_looks_in_common_are_refused():
    with pytest.raises(ValueError, match=r"two evaluations in common, at least\. Found 1 between"):
        tm.scorecard({"plain": run(PLAIN[0]), "x": run(PLAIN[0], times=(5, 10, 15))})


def test_selection_on_the_same_points_is_called_optimistic():
    rises = [[1.0, 1.0], [0.4, 0.5], [0.2, 0.9]]
    runs = {"plain": run(PLAIN[0]), "late": run(rises)}
    assert tm.scorecard(runs)["late"].worst.value == 0.9
    best = tm.scorecard(runs, select=tm.fairness.selections.BestWorst())
    assert best["late"].worst.value == 0.5
    assert "optimistic" in str(best)
    assert best["late"].reopened.value == pytest.approx(0.4)
    other = {name: run([[1.0, 1.0], [0.9, 0.9], [0.8, 0.8]]) for name in runs}
    judged = tm.scorecard(runs, select=tm.fairness.selections.BestWorst(on=other))
    assert judged["late"].worst.value == 0.9
    assert "optimistic" not in str(judged)
    assert tm.scorecard(runs, select=tm.fairness.selections.BestMean())["late"].worst.value == 0.5


def test_a_diverged_run_has_no_place():
    card = tm.scorecard({"plain": run(PLAIN[0]), "wild": run([[1.0, 1.0], [9.0, np.nan], [np.nan, np.nan]])})
    assert "wild: diverged" in str(card)
    assert json.dumps(card.to_json(), allow_nan=False)


def test_one_seed_speaks_of_these_runs_only():
    assert "holds for these runs only" in tm.scorecard({"plain": run(PLAIN[0]), "cured": run(CURED[0])}).basis


@pytest.mark.parametrize(
    ("runs", "settings", "sentence"),
    [
        ({}, {}, "at least one run"),
        ({"plain": run(PLAIN[0]), "x": run(PLAIN[0], groups=("a", "c"))}, {}, "same groups"),
        ({"plain": run(PLAIN[0]), "x": run(PLAIN[0], times=(30, 40, 50))}, {}, "overlap in time"),
        ({"plain": run(PLAIN[0]), "x": run(PLAIN[0])}, {"shares": {"a": 1.0}}, "name every group"),
        ({"plain": run(PLAIN[0]), "x": run(PLAIN[0])}, {"shares": {"a": -1.0, "b": 2.0}}, "non-negative"),
        ({"plain": run(PLAIN[0]), "x": run(PLAIN[0])}, {"select": tm.fairness.selections.BestMean(on={})}, "every run"),
    ],
)
def test_refusals(runs, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        tm.scorecard(runs, **settings)


def test_runs_without_names_are_refused():
    with pytest.raises(TypeError, match=r'should be \{name: run\}, as \{"plain": run, "dro": other\}. Found list.'):
        tm.scorecard([])


def test_curves_for_which_higher_is_better_are_refused():
    curve = run(PLAIN[0])["loss"].rename("tpr")
    runs = {name: tm.Trajectory({"tpr": curve}, "step", Origin("training")) for name in ("one", "two")}
    with pytest.raises(ValueError, match="lower is better"):
        tm.scorecard(runs, "tpr")


def test_pictures_hold_every_run():
    runs = {"plain": run(PLAIN, (3, 7)), "cured <b>": run(CURED, (3, 7))}
    card = tm.scorecard(runs)
    for chart in (tm.plot.loss_plane(runs), tm.plot.areas(card), tm.plot.pulls(runs), tm.plot.who_paid(card)):
        assert "cured <b>" in json.dumps(chart.to_dict())
    drawn = tm.plot.areas(card).to_dict()
    dots = drawn["datasets"][drawn["layer"][0]["data"]["name"]]
    assert len(dots) == 4  # two runs of two seeds
