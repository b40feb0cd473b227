"""What an intervention remembers along a training: the same wherever it is interrupted, copied, moved or looked at."""

import copy

import numpy as np
import pytest
import torch

import tiltmeter as tm

GROUPS = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 10)
DATA = tm.GroupedData(np.zeros((100, 1)), np.zeros(100), GROUPS)


def batches(count=11, size=16, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (torch.tensor(rng.random(size), dtype=torch.float32), torch.tensor(rng.integers(0, 3, size)))
        for _ in range(count)
    ]


def steering(every=4):
    return tm.Steering(tm.interventions.GroupDRO(0.5, every=every), DATA)


def fed(steer, some):
    return [float(steer(losses, group)) for losses, group in some]


def same_state(one, two):
    kept, other = one.state_dict(), two.state_dict()
    return all(torch.equal(kept[name].nan_to_num(-1.0), other[name].nan_to_num(-1.0)) for name in kept)


@pytest.mark.parametrize("stop", [1, 3, 4, 6])
def test_a_state_saved_within_a_block_goes_on_bit_by_bit(stop):
    whole, first, second = steering(), steering(), steering()
    values = fed(whole, batches())
    begun = fed(first, batches()[:stop])
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert begun + fed(second, batches()[stop:]) == values
    assert same_state(whole, second)


def test_looking_at_the_state_changes_nothing():
    evaluated, left = steering(), steering()
    for one in batches():
        fed(evaluated, [one])
        evaluated.state_dict()
    fed(left, batches())
    assert same_state(evaluated, left)


def test_a_copy_goes_its_own_way():
    one = steering()
    fed(one, batches()[:6])
    other = copy.deepcopy(one)
    fed(other, batches(seed=1))
    again = steering()
    fed(again, batches()[:6])
    assert same_state(one, again)
    assert not same_state(one, other)


def test_a_buffer_that_is_replaced_or_written_counts():
    one, two = steering(1), steering(1)
    for steer in (one, two):
        fed(steer, batches()[:3])
    one.pull = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    with torch.no_grad():
        two.pull.copy_(torch.tensor([0.0, 0.0, 1.0]))
    losses, group = torch.ones(4), torch.tensor([0, 0, 1, 2])
    assert float(one(losses, group)) == float(two(losses, group)) == pytest.approx(10.0 / 4.0)


def test_a_module_that_is_moved_keeps_its_state():
    one, two = steering(), steering()
    fed(one, batches()[:6])
    fed(two, batches()[:6])
    one.to(torch.device("cpu")).share_memory()
    assert fed(one, batches()[6:]) == fed(two, batches()[6:])


def test_losses_in_half_precision():
    steer = steering(1)
    losses, group = torch.tensor([0.5, 1.0, 2.0], dtype=torch.bfloat16), torch.tensor([0, 1, 2])
    assert steer(losses, group).dtype == torch.bfloat16
    np.testing.assert_array_equal(steer.remembered, [0.5, 1.0, 2.0])


def test_the_codes_of_a_batch_may_be_overwritten_afterwards():
    kept, reused = steering(), steering()
    fed(kept, batches())
    codes = torch.empty(16, dtype=torch.int64)
    for losses, group in batches():
        reused(losses, codes.copy_(group))
    assert same_state(kept, reused)
