"""Points and seeds together: the recipe is covered where either alone is not."""

import numpy as np
import pytest

from tiltmeter.leaders.points import PointCurve, pairs
from tiltmeter.leaders.seed_bands import two_way

SMALL = {"draws": 299, "permutations": 199}


def runs(rng, seeds, evaluations=8, sizes=(60, 140)):
    """Truth 0: luck of the points shared by seeds, luck of the seeds per group shared by points, and noise."""
    codes = np.repeat([0, 1], sizes)
    time = np.linspace(0.2, 1, evaluations)[None, :, None]
    points = rng.normal(size=len(codes))
    seed = 0.1 * rng.normal(size=(seeds, 1, 2))[:, :, codes]
    return time * (points + seed) + 0.1 * rng.normal(size=(seeds, evaluations, len(codes))), codes


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_the_recipe_is_covered_where_points_alone_and_seeds_alone_are_not(seeds):
    missed, by_seeds, count = 0, 0, 80
    for draw in range(count):
        values, codes = runs(np.random.default_rng([draw, seeds]), seeds)
        band = two_way([PointCurve("loss", values.astype(np.float32))], codes, pairs(2), **SMALL)["loss"]
        missed += band.shown.any()
        gaps = values[:, :, codes == 0].mean(2) - values[:, :, codes == 1].mean(2)
        by_seeds += (np.abs(gaps.mean(0)) > 2 * gaps.std(0, ddof=1) / seeds**0.5).any()
    assert missed <= 10  # at 5 %: more has probability 0.003
    assert by_seeds > 40  # the negative control: the scatter over seeds alone


def test_a_difference_that_all_seeds_and_points_share_is_shown():
    values, codes = runs(np.random.default_rng(0), 5)
    values[:, :, codes == 0] += 1.5
    assert (two_way([PointCurve("loss", values)], codes, pairs(2), **SMALL)["loss"].shown == 1).all()


def test_one_lucky_seed_does_not_show_a_difference():
    values, codes = runs(np.random.default_rng(0), 5)
    values[0, :, codes == 0] += 5.0
    assert not two_way([PointCurve("loss", values)], codes, pairs(2), **SMALL)["loss"].shown.any()


def test_rates_never_seen_in_any_seed_show_nothing():
    codes = np.repeat([0, 1], [20, 1000])
    none = PointCurve("tpr", np.zeros((5, 2, 1020), bool))
    found = two_way([none], codes, pairs(2), **SMALL)["tpr"]
    assert not found.shown.any()
    assert (found.upper > 0.1).all()


def test_too_few_seeds_are_refused():
    with pytest.raises(ValueError, match=r"At least 3 seeds.*Found 2 of 'loss'"):
        two_way([PointCurve("loss", np.zeros((2, 2, 60)))], np.repeat([0, 1], 30), pairs(2))
    with pytest.raises(ValueError, match="Found 1 of 'loss'"):
        two_way([PointCurve("loss", np.zeros((2, 60)))], np.repeat([0, 1], 30), pairs(2))
