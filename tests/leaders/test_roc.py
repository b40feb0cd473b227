"""roc: areas by a second route, their errors by resampling, and which groups are left out."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from tiltmeter.fairness.last_evaluation import LastEvaluation
from tiltmeter.fairness.thresholds import roc


def evaluate(rng, sizes=(400, 200), shift=(1.0, 0.4), seeds=1, digits=None):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    positive = rng.random(len(codes)) < 0.3
    scores = (
        rng.normal(size=(seeds, len(codes))) * 0.3 + rng.normal(size=len(codes)) + np.array(shift)[codes] * positive
    )
    scores = scores if digits is None else scores.round(digits)
    return LastEvaluation(tuple("abc"[: len(sizes)]), codes, positive, scores > 0.5, scores, 9.0), scores


@pytest.mark.parametrize("digits", [None, 0])
def test_the_area_is_that_of_scikit_learn_with_and_without_ties(digits):
    seen, scores = evaluate(np.random.default_rng(0), seeds=3, digits=digits)
    for place, one in enumerate(roc(seen, scores)):
        own = seen.codes == place
        other = [roc_auc_score(seen.positive[own], scores[seed, own]) for seed in range(3)]
        assert one.auc == pytest.approx(np.mean(other), abs=1e-12)


def test_the_curve_passes_through_the_points_of_scikit_learn_and_the_threshold_in_use():
    seen, scores = evaluate(np.random.default_rng(1))
    one = roc(seen, scores)[0]
    own = seen.codes == 0
    fpr, tpr, _ = roc_curve(seen.positive[own], scores[0, own], drop_intermediate=False)
    highest = dict(zip(fpr, tpr, strict=True))  # at equal x the curve is vertical
    x = np.array(list(highest))
    np.testing.assert_allclose(one.tpr(x), [highest[value] for value in x], atol=1e-9)
    assert one.tpr(np.array([one.at[0]]))[0] == pytest.approx(one.at[1], abs=0.03)


def test_the_error_is_that_of_other_points_and_from_five_seeds_on_of_other_seeds():
    found = [roc(*evaluate(np.random.default_rng([2, draw]), seeds=5))[1] for draw in range(300)]
    scatter = np.std([one.auc for one in found], ddof=1)
    assert np.mean([one.error for one in found]) == pytest.approx(scatter, rel=0.15)


def test_groups_with_few_of_a_label_are_left_out():
    seen, scores = evaluate(np.random.default_rng(3), sizes=(400, 12), shift=(1.0, 1.0))
    assert [one.group for one in roc(seen, scores)] == ["a"]
