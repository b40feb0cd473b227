"""Pursuit: it finds what brute force finds, explains one thing at a time, and keeps its memory."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest

from tiltmeter.discover.pursuit import FACTOR, LARGEST, PRICE, REMOVED, Search, standardised


def brute_force(holds, target, least):
    """The best of all singles and pairs by the definition, one group at a time."""
    n, best = len(holds), (-np.inf, ())
    counts = holds.sum(0)
    for size in (1, 2):
        for places in combinations(range(holds.shape[1]), size):
            members = holds[:, list(places)].all(1)
            count = members.sum()
            if not least * n <= count <= LARGEST * n:
                continue
            if size == 2 and count > (1 - REMOVED) * counts[list(places)].min():
                continue
            score = target[members].sum() / np.sqrt(count * (1 - count / n))
            best = max(best, (FACTOR ** (size - 1) * score - PRICE * (size - 1), places))
    return best


@pytest.mark.parametrize("seed", range(5))
def test_the_best_single_or_pair_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    holds = rng.random((300, 12)) < rng.uniform(0.05, 0.9, 12)
    target = standardised(rng.normal(size=(300, 1)) + 2.0 * (holds[:, 3] & holds[:, 7])[:, None])
    (pick,) = Search(holds, 2, 0.02).pursue(target, 1, 0.0)
    score, places = brute_force(holds, target[:, 0], 0.02)
    assert pick.places == places
    assert pick.score == pytest.approx(score, rel=1e-4)


def test_a_triple_is_found():
    rng = np.random.default_rng(0)
    holds = rng.random((4000, 15)) < 0.5
    inside = holds[:, [2, 5, 11]].all(1)
    target = standardised((rng.normal(size=4000) + 3.0 * inside)[:, None])
    assert Search(holds, 3, 0.02).pursue(target, 1, 3.5)[0].places == (2, 5, 11)
    assert len(Search(holds, 2, 0.02).pursue(target, 1, 3.5)[0].places) == 2


def test_each_group_explains_what_those_before_do_not():
    rng = np.random.default_rng(1)
    holds = rng.random((3000, 8)) < 0.2
    holds[:, 1] = holds[:, 0] & (rng.random(3000) < 0.9)  # nearly the same as the first
    target = standardised((rng.normal(size=3000) + 2.0 * holds[:, 0] + 1.0 * holds[:, 4])[:, None])
    picks = Search(holds, 1, 0.02).pursue(target, 3, 3.5)
    assert [pick.places for pick in picks] == [(0,), (4,)]


def test_only_worse_counts():
    rng = np.random.default_rng(2)
    holds = rng.random((2000, 5)) < 0.2
    target = standardised((rng.normal(size=2000) - 3.0 * holds[:, 2])[:, None])
    assert all(2 not in pick.places for pick in Search(holds, 1, 0.02).pursue(target, 3, 3.5))


def test_labels_are_centred_and_extremes_drawn_in():
    labels = np.array([0, 1] * 100)
    values = labels * 5.0 + np.random.default_rng(0).normal(size=200)
    centred = standardised(values[:, None], labels)
    assert abs(centred[labels == 0].mean()) < 0.02
    assert np.abs(standardised(np.append(np.zeros(999), 1e9)[:, None])).max() < 50
    assert not standardised(np.ones((5, 1))).any()


def test_memory_is_below_three_copies_of_the_conditions():
    rng = np.random.default_rng(0)
    holds = rng.random((20_000, 100)) < 0.3
    target = standardised(rng.normal(size=(20_000, 3)))
    search = Search(holds, 3, 0.02)
    tracemalloc.start()
    search.pursue(target, 2, 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * holds.size * 4


def test_many_conditions_are_not_all_paired():
    rng = np.random.default_rng(0)
    holds = rng.random((500, 3000)) < 0.3
    target = standardised((rng.normal(size=500) + 2.0 * (holds[:, 7] & holds[:, 2900]))[:, None])
    assert Search(holds, 3, 0.02).pursue(target, 1, 0.0)[0].places == (7, 2900)
