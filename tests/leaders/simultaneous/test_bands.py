"""Bands over all evaluations: symmetries, negative controls, a second route, false alarms, and every refusal."""

import numpy as np
import pytest
from scipy import stats

from tiltmeter.leaders.bands import balanced, bands, bootstrap_weights
from tiltmeter.leaders.contrasts import contrasts
from tiltmeter.leaders.points import PointCurve, pairs

SMALL = {"draws": 499, "permutations": 399}


def scores(rng, count, evaluations=12):
    """Labels and scores of a model that learns: looks at the same points are strongly dependent."""
    y = rng.random(count) < 0.4
    time = np.linspace(0, 1, evaluations)[:, None]
    own, start = rng.normal(size=count), rng.normal(size=count)
    return y, (2 * y - 1) * 1.5 * time + own * time + start * (1 - time)


def five(y, score):
    sign = np.where(y, 1.0, -1.0)
    decided = score > 0
    return [
        PointCurve("loss", np.log1p(np.exp(-sign * score)).astype(np.float32)),
        PointCurve("error", decided != y),
        PointCurve("positive_rate", decided),
        PointCurve("tpr", decided, y),
        PointCurve("fpr", decided, ~y),
    ]


def test_swapping_the_groups_mirrors_every_sign():
    rng = np.random.default_rng(0)
    y, score = scores(rng, 400)
    codes = np.repeat([0, 1], 200)
    score[:, codes == 0] -= 1.0
    one, other = (bands(five(y, score), c, pairs(2), **SMALL) for c in (codes, 1 - codes))
    assert any(one[name].shown.any() for name in one)
    for name in one:
        np.testing.assert_allclose(one[name].gap, -other[name].gap, atol=1e-12)
        np.testing.assert_array_equal(one[name].shown, -other[name].shown)


def test_constant_values_show_nothing():
    codes = np.repeat([0, 1], 50)
    curves = [PointCurve("loss", np.full((3, 100), 0.7, np.float32)), PointCurve("error", np.ones((3, 100), bool))]
    assert not any(band.shown.any() for band in bands(curves, codes, pairs(2), **SMALL).values())


def test_rounding_of_an_untrained_head_shows_nothing():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 50)
    same = np.float32(np.log(2.0)) + np.where(codes, np.float32(6e-8), 0) * rng.integers(0, 2, (3, 100))
    assert not bands([PointCurve("loss", same.astype(np.float32))], codes, pairs(2), **SMALL)["loss"].shown.any()


def test_none_of_twenty_against_none_of_a_thousand_shows_nothing():
    codes = np.repeat([0, 1], [20, 1000])
    found = bands([PointCurve("tpr", np.zeros((2, 1020), bool))], codes, pairs(2), **SMALL)["tpr"]
    assert not found.shown.any()
    assert (found.upper > 0.1).all()
    assert (found.lower < 0).all()


def test_looks_repeated_ten_times_change_no_limit():
    rng = np.random.default_rng(1)
    y, score = scores(rng, 300)
    codes = rng.permutation(np.repeat([0, 1], 150))
    once = bands(five(y, score), codes, pairs(2), **SMALL)
    often = bands(five(y, np.repeat(score, 10, 0)), codes, pairs(2), **SMALL)
    for name in once:
        np.testing.assert_allclose(often[name].lower[::10], once[name].lower, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(often[name].upper[::10], once[name].upper, rtol=1e-5, atol=1e-7)


def test_the_same_answer_twice_and_no_global_stream_is_touched():
    rng = np.random.default_rng(2)
    y, score = scores(rng, 200)
    codes = rng.permutation(np.repeat([0, 1], 100))
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, two = (bands(five(y, score), codes, pairs(2), **SMALL) for _ in range(2))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    for name in one:
        np.testing.assert_array_equal(one[name].lower, two[name].lower)


def test_one_look_of_a_normal_loss_is_welchs_interval():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(0, 1, 400), rng.normal(0.5, 2, 900)])
    codes = np.repeat([0, 1], [400, 900])
    found = bands([PointCurve("loss", values[None].astype(np.float32))], codes, pairs(2))["loss"]
    welch = stats.ttest_ind(values[:400], values[400:], equal_var=False).confidence_interval(0.95)
    width = welch.high - welch.low
    assert found.lower[0, 0] == pytest.approx(welch.low, abs=0.05 * width)
    assert found.upper[0, 0] == pytest.approx(welch.high, abs=0.05 * width)


def test_many_looks_cost_less_than_bonferroni_and_more_than_one():
    rng = np.random.default_rng(4)
    y, score = scores(rng, 1000, evaluations=40)
    codes = rng.permutation(np.repeat([0, 1], 500))
    found = bands(five(y, score)[:1], codes, pairs(2))["loss"]
    own = [np.sqrt(sum(five(y, score)[0].values[:, codes == g].var(1, ddof=1) / 500 for g in (0, 1)))]
    factor = (found.upper - found.lower)[:, 0] / 2 / own[0]
    assert 2.1 < factor.mean() < stats.norm.isf(0.025 / 40) - 0.2


def test_random_groups_are_named_as_rarely_as_stated():
    """80 deals at 5 %: more than 10 have probability 0.003."""
    named = 0
    for deal in range(80):
        rng = np.random.default_rng([5, deal])
        y, score = scores(rng, 240)
        codes = rng.permutation(np.repeat([0, 1], [60, 180]))
        named += any(band.shown.any() for band in bands(five(y, score), codes, pairs(2), **SMALL).values())
    assert named <= 10


def test_a_real_difference_is_shown_where_it_is_and_not_elsewhere():
    rng = np.random.default_rng(6)
    y, score = scores(rng, 1000)
    codes = rng.permutation(np.repeat([0, 1], 500))
    score[6:, codes == 0] -= 2.0 * np.where(y, 1, -1)[codes == 0]
    found = bands(five(y, score), codes, pairs(2), **SMALL)
    assert (found["loss"].shown[6:] == 1).all()
    assert (found["tpr"].shown[6:] == -1).all()
    assert not found["loss"].shown[:6].any()


def test_equal_means_with_unequal_spread_are_not_named_by_the_gate_alone():
    """The band carries what permutation cannot: 60 draws, a rate near 5 to 12 %."""
    named = 0
    for draw in range(60):
        rng = np.random.default_rng([7, draw])
        values = np.concatenate([rng.normal(0, 3, (4, 60)), rng.normal(0, 1, (4, 240))], 1).astype(np.float32)
        named += bands([PointCurve("loss", values)], np.repeat([0, 1], [60, 240]), pairs(2), **SMALL)[
            "loss"
        ].shown.any()
    assert named <= 10


def test_a_group_against_all_others_of_ten():
    rng = np.random.default_rng(8)
    codes = np.arange(3000) % 10
    values = rng.normal(size=(5, 3000)).astype(np.float32)
    values[:, codes == 3] += 0.6
    weights = np.array([one.weights for one in contrasts(range(10), np.bincount(codes))])
    shown = bands([PointCurve("loss", values)], codes, weights, **SMALL)["loss"].shown
    assert (shown[:, 3] == 1).all()
    assert not (np.delete(shown, 3, 1) > 0).any()


def test_groups_too_small_are_not_judged_and_do_not_hide_the_others():
    rng = np.random.default_rng(9)
    codes = np.repeat([0, 1, 2], [200, 200, 10])
    values = rng.normal(size=(2, 410)).astype(np.float32)
    found = bands([PointCurve("loss", values)], codes, pairs(3), **SMALL)["loss"]
    assert np.isfinite(found.lower[:, 0]).all()
    assert np.isnan(found.lower[:, 1:]).all()


def test_a_rate_of_a_group_without_such_points_is_not_judged():
    codes = np.repeat([0, 1], 30)
    found = bands([PointCurve("tpr", np.ones((2, 60), bool), codes == 0)], codes, pairs(2), **SMALL)["tpr"]
    assert np.isnan(found.lower).all()
    assert not found.shown.any()


def test_weights_are_shared_by_looks_and_have_the_moments_of_drawing_with_replacement():
    blocks = list(bootstrap_weights([50], 4000, np.random.default_rng(0)))
    weights = np.concatenate([block[0] for block in blocks])
    assert weights.shape == (4000, 50)
    assert weights.var() == pytest.approx(1 - 1 / 50, abs=0.02)
    assert np.corrcoef(weights[:, 0], weights[:, 1])[0, 1] == pytest.approx(-1 / 49, abs=4 / 4000**0.5)


@pytest.mark.parametrize(
    ("curves", "codes", "words"),
    [
        ([], np.zeros(3, int), "at least one curve"),
        ([PointCurve("loss", np.zeros((2, 3)))], np.zeros(4, int), "Found 4 groups for 3 points of 'loss'"),
        ([PointCurve("loss", np.zeros((2, 3)))], np.array([0, 1, 2]), "from 0 to 1. Found 0 to 2"),
        ([PointCurve("a", np.zeros((2, 3)))] * 2, np.array([0, 1, 1]), "different names. Found a, a"),
    ],
)
def test_bad_input(curves, codes, words):
    with pytest.raises(ValueError, match=words):
        bands(curves, codes, pairs(2))


def test_bad_points_are_refused_where_they_enter():
    with pytest.raises(ValueError, match=r"shape \(evaluations, points\)"):
        PointCurve("loss", np.zeros(3))
    with pytest.raises(ValueError, match="should be finite"):
        PointCurve("loss", np.full((1, 3), np.nan))
    with pytest.raises(ValueError, match="each of 3 points"):
        PointCurve("tpr", np.zeros((1, 3), bool), np.ones(2, bool))
    with pytest.raises(ValueError, match=r"two groups to compare\. Found 1"):
        pairs(1)
    with pytest.raises(ValueError, match=r"level = 1\.2"):
        bands([PointCurve("loss", np.zeros((1, 60)))], np.repeat([0, 1], 30), pairs(2), level=1.2)


@pytest.mark.parametrize("seed", range(5))
def test_joint_limits_are_never_wider_than_bonferronis(seed):
    """On the same draws: each limit is at most the quantile that Bonferroni's correction would take."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(4000, 1))
    columns = np.abs(rng.uniform(0, 1, 12) * shared + rng.standard_t(4, size=(4000, 12)) * rng.uniform(0.1, 10, 12))
    own = np.quantile(columns, 1 - 0.05 / 12, axis=0, method="higher")
    assert (balanced(columns, 0.05) <= own).all()
