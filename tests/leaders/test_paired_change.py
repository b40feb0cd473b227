"""paired_change: by hand, mirrored, covered, narrower than unpaired, and unknown for other points."""

import numpy as np
import pytest

from tiltmeter.fairness.last_evaluation import LastEvaluation, paired_change, same_points


def decisions(rng, count=300, share=0.6, seeds=1):
    codes, positive = np.repeat([0, 1], count), rng.random(2 * count) < 0.5
    return LastEvaluation(
        ("a", "b"), codes, positive, rng.random((seeds, 2 * count)) < share, np.ones((seeds, 2 * count)), 9.0
    )


def changed(evaluation, where, to):
    return LastEvaluation(
        evaluation.groups,
        evaluation.codes,
        evaluation.positive,
        np.where(where, to, evaluation.decided),
        evaluation.loss,
        evaluation.time,
    )


def test_all_positives_of_one_group_said_yes():
    base = decisions(np.random.default_rng(0))
    mine = (base.codes == 0) & base.positive
    other = changed(base, mine, True)
    found = paired_change(base, other, "tpr", (0, 1))
    assert found.value == pytest.approx(1.0 - base.decided[0, mine].mean())
    assert found.shown
    back = paired_change(other, base, "tpr", (0, 1))
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low))
    whole = paired_change(base, other, "error")
    assert whole.value == pytest.approx(-(mine & ~base.decided[0]).mean())


def test_the_same_decisions_change_nothing_and_have_no_width():
    base = decisions(np.random.default_rng(1))
    found = paired_change(base, changed(base, np.zeros(600, dtype=bool), True), "tpr", (0, 1))
    assert tuple(found) == (0.0, 0.0, 0.0)
    assert not found.shown


def test_what_runs_share_cancels():
    """Few decisions differ: the limits are narrower than those of the two differences apart."""
    base = decisions(np.random.default_rng(2))
    other = changed(base, np.arange(600) % 40 == 0, True)
    found = paired_change(base, other, "tpr", (0, 1))
    drawn = base.redrawn.tpr[:, 0] - base.redrawn.tpr[:, 1]
    assert found.high - found.low < 0.5 * np.ptp(np.quantile(drawn, [0.025, 0.975]))


def test_other_points_are_not_compared():
    one, two = decisions(np.random.default_rng(3)), decisions(np.random.default_rng(4))
    assert not same_points(one, two)
    assert not paired_change(one, two, "tpr", (0, 1)).known


@pytest.mark.slow
def test_the_change_of_the_population_is_covered():
    """400 draws of 5 seeds at 5 %: more than 36 misses have a probability below 0.001."""
    missed = 0
    for draw in range(400):
        rng = np.random.default_rng([5, draw])
        base = decisions(rng, 150, seeds=5)
        flipped = rng.random((5, 300)) < np.where(base.codes == 0, 0.3, 0.1)
        found = paired_change(base, changed(base, flipped, True), "tpr", (0, 1))
        truth = 0.4 * 0.3 - 0.4 * 0.1  # those said no who are said yes now
        missed += not found.low <= truth <= found.high
    assert missed <= 36
