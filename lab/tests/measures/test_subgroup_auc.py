"""Areas and gaps of normal scores are known in closed form; the sign of a gap is that of the group's shift."""

import numpy as np
import pytest
from scipy.stats import norm
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.subgroup_auc import SubgroupAUC, auc

SHIFT, SEPARATION, POINTS = 0.8, 2.0, 20_000


def normal_scores(shift, seed=0):
    """Unit-variance scores, positives `SEPARATION` above negatives, the group "sub" shifted up."""
    rng = np.random.default_rng(seed)
    group = np.repeat(["others", "sub"], 2 * POINTS)
    y = np.tile([0, 1], 2 * POINTS)
    score = rng.normal(size=len(y)) + SEPARATION * y + shift * (group == "sub")
    return tm.GroupedData(score[:, None], y, group)


def test_areas_and_gaps_of_shifted_normal_scores():
    readings = lab.measure(SubgroupAUC(), nn.Identity(), normal_scores(SHIFT))
    expected = {
        "subgroup_auc": norm.cdf(SEPARATION / np.sqrt(2)),
        "bpsn_auc": norm.cdf((SEPARATION - SHIFT) / np.sqrt(2)),
        "bnsp_auc": norm.cdf((SEPARATION + SHIFT) / np.sqrt(2)),
        "positive_aeg": norm.cdf(SHIFT / np.sqrt(2)) - 0.5,
        "negative_aeg": norm.cdf(SHIFT / np.sqrt(2)) - 0.5,
    }
    for name, value in expected.items():
        found, error = (float(readings[key].sel(group="sub")) for key in (name, f"{name}_se"))
        assert error < 0.005
        assert found == pytest.approx(value, abs=4 * error), name  # five curves at 4 standard errors


def test_a_gap_is_positive_for_the_group_that_scores_higher():
    """A published implementation hides the sign in the order of its arguments."""
    readings = lab.measure(SubgroupAUC(), nn.Identity(), normal_scores(SHIFT))
    for name in ("positive_aeg", "negative_aeg"):
        assert float(readings[name].sel(group="sub")) > 0.2
        assert float(readings[name].sel(group="others")) < -0.2


def test_without_a_shift_nothing_differs_from_the_null():
    readings = lab.measure(SubgroupAUC(), nn.Identity(), normal_scores(0.0))
    for name in ("subgroup_auc", "bpsn_auc", "bnsp_auc"):
        assert readings[name].values == pytest.approx(readings[f"{name}_null"].values, abs=0.01)
    assert readings["positive_aeg"].values == pytest.approx([0.0, 0.0], abs=0.012)


def test_area_and_its_error_by_counting_pairs_and_by_drawing_again():
    rng = np.random.default_rng(1)
    high, low = rng.integers(2, 9, 60).astype(float), rng.integers(0, 7, 40).astype(float)
    value, error = auc(high, low)
    above = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    assert value == pytest.approx(above.mean(), abs=1e-12)
    again = [auc(rng.choice(high, 60), rng.choice(low, 40))[0] for _ in range(400)]
    assert error == pytest.approx(np.std(again), rel=0.15)  # the bootstrap's own error is 1/sqrt(800) = 3.5 %


def test_two_outputs_say_the_same_as_their_difference():
    data = normal_scores(SHIFT)
    two = nn.Linear(1, 2)
    two.weight.data[:], two.bias.data[:] = two.weight.new_tensor([[-1.0], [1.0]]), 0.0
    one, other = (lab.measure(SubgroupAUC(), model, data) for model in (nn.Identity(), two))
    assert all(np.allclose(one[key], other[key], atol=1e-6) for key in one)


def test_more_than_two_labels_are_refused():
    data = tm.GroupedData(np.zeros((90, 2)), [0, 1, 2] * 30, [0, 1] * 45)
    with pytest.raises(ValueError, match=r"needs two labels. Found 3 labels\."):
        lab.measure(SubgroupAUC(), nn.Linear(2, 3), data)
