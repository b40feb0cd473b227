"""tm.compare: changes by hand, what is not recommended, coverage, trainings, and random groups."""

import json

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.changes.change import Change
from tiltmeter.changes.compare import changes


def decided(errors, seed, count=4000, repaid=None):
    """A run of one evaluation whose decisions are wrong in a share of each group; groups and labels are fixed."""
    rng = np.random.default_rng(0)
    group, y = rng.choice(["a", "b"], count), rng.integers(0, 2, count)
    wrong = np.random.default_rng(seed).random(count) < np.vectorize(errors.get)(group)
    return tm.predictions.run(label=y, group=group, decision=np.where(wrong, 1 - y, y))


def test_the_gap_its_price_and_who_pays_by_hand():
    before, after = decided({"a": 0.4, "b": 0.2}, seed=1), decided({"a": 0.3, "b": 0.25}, seed=1)
    change = tm.compare(before, after)
    rates = [run["error"].isel(time=-1).values for run in (before, after)]
    assert change.pair == ("a", "b")
    assert change.gap.before == pytest.approx(rates[0][0] - rates[0][1], abs=1e-6)
    assert change.gap.after == pytest.approx(rates[1][0] - rates[1][1], abs=1e-6)
    assert change.pays == ("b",)
    assert change.reason == "the error of b clearly rises by more than 1 point"
    assert not change.helps
    assert tm.compare(before, after, price=0.1).helps
    assert Change.from_json(json.loads(json.dumps(change.to_json()))) == change


def test_a_gap_that_shrinks_for_nothing_helps():
    change = tm.compare(decided({"a": 0.4, "b": 0.2}, seed=1), decided({"a": 0.25, "b": 0.2}, seed=1))
    assert change.helps
    assert "with the second the gap falls from " in str(change)
    assert "nobody pays" in str(change)
    assert "These two models." in str(change)


def test_errors_for_everybody_are_not_recommended():
    runs = {"plain": decided({"a": 0.3, "b": 0.2}, 1), "worse": decided({"a": 0.5, "b": 0.49}, 2)}
    worse = changes(runs, "plain")["worse"]
    assert worse.gap.sign < 0
    assert worse.reason.startswith("the error of all clearly rises by more than 1 point")
    assert not worse.helps


def test_nothing_that_changed_is_nothing():
    run = decided({"a": 0.3, "b": 0.2}, 1)
    assert tm.compare(run, run).gap.sign == 0
    assert tm.compare(run, run).gap.change == 0.0
    assert "the gap stays at " in str(tm.compare(run, run))


def test_limits_cover_the_true_change():
    """Rates of 0.40 and 0.30 before, 0.33 and 0.30 after: the gap changes by -0.07."""
    missed = 0
    for draw in range(120):
        found = tm.compare(*(decided(rates, seed) for rates, seed in (
            ({"a": 0.40, "b": 0.30}, 2 * draw), ({"a": 0.33, "b": 0.30}, 2 * draw + 1),
        )))  # fmt: skip
        missed += not found.gap.low <= -0.07 <= found.gap.high
    assert missed <= 14  # 5 % of 120 is 6; more than 14 has probability 0.001


def test_trainings_that_differ_more_are_less_sure():
    def several(spread):
        rng = np.random.default_rng(3)
        return tm.stack(
            [decided({"a": 0.3 + spread * rng.normal(), "b": 0.2}, seed) for seed in range(5)], labels=range(5)
        )

    calm, wild, other = several(0.0), several(0.08), several(0.0)
    one, two = tm.compare(calm, other), tm.compare(calm, wild)
    assert one.scope == two.scope == "trainings"
    assert two.gap.high - two.gap.low > 1.5 * (one.gap.high - one.gap.low)
    models = tm.compare(calm, wild, scope="models").gap
    assert models.high - models.low < two.gap.high - two.gap.low


def test_what_the_data_cannot_answer_is_refused_with_its_price():
    one = decided({"a": 0.3, "b": 0.2}, 1)
    with pytest.raises(ValueError, match=r"at least 3 of each\. Found 1: .* or train 2 more of each"):
        tm.compare(one, one, scope="trainings")
    with pytest.raises(ValueError, match="points that both runs were judged on"):
        tm.compare(one, decided({"a": 0.3, "b": 0.2}, 1, count=3000))
    with pytest.raises(TypeError, match="before"):
        tm.compare(3, one)


def test_random_groups_are_seldom_said_to_change():
    named = 0
    for draw in range(60):
        runs = [decided({"a": 0.3, "b": 0.3}, 2 * draw + side, count=600) for side in (0, 1)]
        named += tm.compare(*runs).gap.sign != 0
    assert named <= 9  # 5 % of 60 is 3; the change is regressed from a gap that was chosen as positive
