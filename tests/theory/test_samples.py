"""Samples of a mixture: the moments and labels of the data model, and sentences for bad input."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory.samples import samples

N, D = 40000, 12


@pytest.fixture(scope="module")
def problem():
    return tm.teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))


@pytest.fixture(scope="module")
def data(problem):
    return samples(problem, D, N, seed=3)


def test_groups_have_their_shares_and_moments(problem, data):
    assert data.groups == ("+", "-")
    assert data.sizes == {"+": 28000, "-": 12000}
    means = {}
    for group in data.groups:
        x = data.x[data.of_group(group)].astype(float)
        variance = float(problem.variance.sel(group=group))
        # Mean and variance of n normal numbers are known to sqrt(v / n) and v sqrt(2 / n); 5 of these for 2 D numbers.
        assert abs(x.var(0) / variance - 1.0).max() < 5 * np.sqrt(2.0 / len(x))
        means[group] = x.mean(0)
    gram = problem.gram
    for a in "+-":
        for b in "+-":
            error = 5 * np.sqrt(1.5 * 1.2 / 12000) + D * 1.2 / 12000
            assert abs(means[a] @ means[b] - float(gram.sel(vector=f"mean {a}", other=f"mean {b}"))) < 2 * error


def test_mean_labels_are_those_of_the_theory(problem, data):
    always = tm.predict(problem, tm.SGD(lr=0.1), [0.1], curves=("positive_rate",))
    assert always["positive_rate"].sizes["group"] == 2
    from scipy.special import ndtr

    for c, group in ((1, "+"), (-1, "-")):
        overlap = float(problem.gram.sel(vector="mean +", other=f"teacher {group}"))
        variance = float(problem.variance.sel(group=group))
        a = (c * overlap + float(problem.label_bias.sel(group=group))) / np.sqrt(variance)
        y = data.y[data.of_group(group)]
        assert set(np.unique(y)) == {-1.0, 1.0}
        assert abs((y > 0).mean() - ndtr(a)) < 5 * 0.5 / np.sqrt(len(y))


def test_worlds_and_seeds(problem):
    one, again = (samples(problem, D, 200, seed=1) for _ in range(2))
    assert (one.x == again.x).all()
    assert not (one.x == samples(problem, D, 200, seed=2).x).any()
    far = [samples(problem, 200, 4000, world=world).x[:2000].mean(0) for world in (0, 1, 0)]
    same, other = far[0] @ far[2], far[0] @ far[1]
    assert same > 5 * abs(other)


def test_pairs_share_their_noise_and_their_difference_is_more_exact(problem):
    equal = {"+": 1, "-": 1}
    data = samples(problem, D, 2000, proportions=equal, paired=True)
    plus, minus = (data.x[data.of_group(group)].astype(float) for group in "+-")
    spread = np.sqrt(problem.variance.values)
    noise = (plus - plus.mean(0)) / spread[0] - (minus - minus.mean(0)) / spread[1]
    assert abs(noise).max() < 1e-5
    with pytest.raises(ValueError, match=r"equal size\. Found 1400, 600 points"):
        samples(problem, D, 2000, paired=True)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"d": 2}, "`d` should be an integer of at least 3"),
        ({"d": 3.5}, "`d` should be an integer"),
        ({"points": 1}, "`points` should be an integer of at least one per group"),
        ({"proportions": {"+": -1.0, "-": 1.0}}, "`proportions` should be shares"),
    ],
)
def test_bad_input_is_one_sentence(problem, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        samples(problem, **{"d": D, "points": 100, **change})


def test_unknown_groups_and_grids(problem):
    with pytest.raises(KeyError, match="no group 'x'"):
        samples(problem, D, 100, proportions={"x": 1.0})
    with pytest.raises(ValueError, match="Found a grid over rho"):
        samples(tm.teacher_mixture(("rho", [0.2, 0.8])), D, 100)
