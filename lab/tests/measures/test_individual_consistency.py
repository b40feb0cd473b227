"""Individual consistency: neighbours by hand, and no excess where groups are dealt at random."""

import numpy as np
import pytest
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.individual_consistency import IndividualConsistency, nearest


def linear(weight):
    model = nn.Linear(len(weight), 1, bias=False)
    model.weight.data[:] = model.weight.data.new_tensor([weight])
    return model


@pytest.mark.parametrize("same", [False, True])
def test_neighbours_are_those_of_all_distances(same):
    rng = np.random.default_rng(0)
    x, codes = rng.normal(size=(70, 3)), rng.integers(0, 3, 70)
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    distance[(codes[:, None] == codes) != same] = np.inf
    assert nearest(x, codes, same).tolist() == distance.argmin(1).tolist()
    assert nearest(x[:3], np.array([0, 1, 1]), same=True)[0] == -1


def test_a_decision_by_the_group_is_found_and_random_groups_are_not():
    rng = np.random.default_rng(1)
    x, group = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    with_group = np.column_stack([x, 0.1 * group])
    data = tm.GroupedData(with_group, rng.integers(0, 2, 2000), group)
    unfair = lab.measure(IndividualConsistency(), linear([0.0, 0.0, 1.0]), data, tm.Logistic())
    assert unfair["cross_group_change"].values == pytest.approx([1.0, 1.0])
    assert unfair["cross_group_change_null"].values == pytest.approx([0.0, 0.0])
    random = tm.GroupedData(x, data.y, group)
    fair = lab.measure(IndividualConsistency(), linear([1.0, 0.0]), random, tm.Logistic())
    excess = fair["cross_group_change"] - fair["cross_group_change_null"]
    assert (abs(excess.values) < 4 * 2**0.5 * fair["cross_group_change_se"].values).all()


def test_what_has_no_distance_or_decision_is_refused():
    tokens = tm.GroupedData(np.zeros((60, 3), dtype=int), [0, 1] * 30, ["a", "b"] * 30)
    with pytest.raises(ValueError, match="needs points of real numbers"):
        lab.measure(IndividualConsistency(), nn.Sequential(nn.Embedding(2, 2), nn.Flatten(), nn.Linear(6, 2)), tokens)
