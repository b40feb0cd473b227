"""Shares of variance against closed forms."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter_lab as lab

LEVELS = {"a": 4, "b": 3, "c": 3}


def truth(interacting):
    """Cell means of a known response, and its shares with noise of variance 1."""
    a = np.array([-1.5, -0.5, 0.5, 1.5])[:, None, None]
    b = np.array([-1.0, 0.0, 1.0])[None, :, None]
    means = a + b + np.zeros((4, 3, 3))
    variances = {"a": 1.25, "b": 2 / 3, "c": 0.0, "a x b": 0.0, "a x c": 0.0, "b x c": 0.0, "rest": 0.0, "seed": 1.0}
    if interacting:
        means = means + 0.8 * a * b
        variances["a x b"] = 0.64 * 1.25 * 2 / 3
    whole = sum(variances.values())
    return means, {term: value / whole for term, value in variances.items()}


def draw(means, seeds, generator, missing=0.0):
    values = means[..., None] + generator.normal(size=(*means.shape, seeds))
    values[generator.random(means.shape) < missing] = np.nan
    return xr.DataArray(values, dims=("a", "b", "c", "seed"), name="gap")


def coverage(interacting, missing, draws, seeds=5):
    means, known = truth(interacting)
    generator = np.random.default_rng([5, interacting, int(100 * missing)])
    inside, counted = dict.fromkeys(known, 0), 0
    while counted < draws:
        found = lab.shares(draw(means, seeds, generator, missing), ranks=False, draws=300, permutations=0)
        if any("do not tell" in note for note in found.notes):
            continue  # a pair that no cell tells cannot be compared with its known share
        counted += 1
        for term, share in known.items():
            inside[term] += found[term].low - 1e-9 <= share <= found[term].high + 1e-9
    return inside


@pytest.mark.slow
@pytest.mark.parametrize("interacting", [False, True], ids=["additive", "interacting"])
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_known_shares_lie_inside_their_intervals(interacting, missing):
    """The bar: at least 84 of 100 draws for intervals of 90 %."""
    inside = coverage(interacting, missing, 100)
    print(inside)
    assert min(inside.values()) >= 84, inside


def test_known_shares_lie_inside_their_intervals_in_a_few_draws():
    inside = coverage(True, 0.0, 12)
    assert min(inside.values()) >= 7, inside


def test_without_noise_of_sampling_the_shares_are_exact():
    """Two seeds of opposite sign: their mean is exact and their variance known."""
    means, _ = truth(True)
    values = np.stack([means + 1, means - 1], -1)
    found = lab.shares(xr.DataArray(values, dims=("a", "b", "c", "seed")), ranks=False, draws=20, permutations=0)
    noise, cells = 2.0, 36
    # By hand: the variance of means over the grid is that of the effects, less the noise of the fitted columns.
    effects = {"a": 1.25 - 3 * noise / 2 / cells, "b": 2 / 3 - 2 * noise / 2 / cells}
    pair = 0.64 * 1.25 * 2 / 3 - 6 * noise / 2 / cells
    others = -(2 + 6 + 4) * noise / 2 / cells - 12 * noise / 2 / cells
    whole = sum(effects.values()) + pair + others + noise
    for term, value in {**effects, "a x b": pair, "seed": noise}.items():
        assert found[term].share == pytest.approx(value / whole, rel=1e-9)
    assert found["a"].total == pytest.approx((1.25 + 0.64 * 1.25 * 2 / 3 - noise * 3 / 4 / 2) / whole, rel=1e-9)
    assert found["a"].even == pytest.approx((effects["a"] + pair / 2 - 3 * noise / 2 / cells) / whole, rel=1e-9)


def null_rate(draws, level):
    """How often a factor without effect is called significant, beside others that have one."""
    generator = np.random.default_rng(8)
    means, _ = truth(True)
    hits = 0
    for number in range(draws):
        found = lab.shares(draw(means, 3, generator), draws=2, permutations=39, seed=number)
        hits += found["c"].p <= level
    return hits


@pytest.mark.slow
def test_the_permutation_null_keeps_its_level():
    """400 draws at 10 %: 40 expected, standard deviation 6."""
    hits = null_rate(400, 0.1)
    print(hits)
    assert 40 - 3 * 6 <= hits <= 40 + 3 * 6


def test_a_factor_with_an_effect_beats_the_null_and_one_without_does_not():
    means, _ = truth(False)
    found = lab.shares(draw(means, 5, np.random.default_rng(1)), permutations=99)
    assert found["a"].p == 0.01
    assert found["a"].share > found["a"].null
    assert found["c"].p > 0.05
    assert str(found).startswith("Of the variance of the ranks of gap: ")


def test_one_wild_run_decides_nothing_when_ranks_are_used():
    means, _ = truth(False)
    wild = draw(means, 5, np.random.default_rng(2))
    wild[0, 0, 0, 0] = 1e6
    assert lab.shares(wild, draws=50, permutations=0)["a"].share > 0.3
    assert lab.shares(wild, draws=50, permutations=0, ranks=False)["a"].share < 0.1


def test_pairs_that_no_cell_tells_are_named():
    means, _ = truth(False)
    values = draw(means, 4, np.random.default_rng(3))
    values[0, 0] = np.nan
    found = lab.shares(values, draws=50, permutations=19)
    assert any("do not tell a x b" in note for note in found.notes)
    assert any("8 % of the runs are missing, most for a = 0 (33 %)." in note for note in found.notes)
    assert (found.seen, found.cells) == (33, 36)


def test_seeds_that_all_cells_share_are_resampled_whole():
    """A chance that moves all cells together moves no share of a factor: its interval is narrow only if that is
    said."""
    generator = np.random.default_rng(4)
    means, _ = truth(False)
    common = generator.normal(size=8) * 3
    values = means[..., None] + common + 0.1 * generator.normal(size=(*means.shape, 8))
    array = xr.DataArray(values, dims=("a", "b", "c", "seed"))
    both = [lab.shares(array, ranks=False, shared_seeds=shared, draws=200, permutations=19) for shared in (False, True)]
    widths = [found["seed"].high - found["seed"].low for found in both]
    assert widths[1] > 2 * widths[0]
    assert both[1]["c"].p > 0.05


def test_groups_of_factors_add_up():
    means, _ = truth(True)
    found = lab.shares(draw(means, 5, np.random.default_rng(6)), ranks=False, draws=100, permutations=0)
    data, training, rest, seed = found.grouped({"data": ["a"], "training": ["b", "c"]})
    assert data.share + training.share + rest.share + seed.share == pytest.approx(1.0, abs=0.05)
    assert data.share == pytest.approx(found["a"].even, abs=1e-9)
    assert data.low < data.share < data.high


SENTENCES = [
    (lambda: lab.shares(3), "`table` should be an xarray.DataArray"),
    (lambda: lab.shares(xr.Dataset({"x": 1.0, "y": 2.0})), "choose it, as in table[name]. There are: x, y."),
    (lambda: lab.shares(xr.DataArray([[1.0], [2.0]], dims=("a", "seed"))), "needs at least two seeds"),
    (lambda: lab.shares(xr.DataArray([[1.0, 2.0, 3.0]], dims=("a", "seed"))), "a factor with at least two levels"),
    (lambda: lab.shares(xr.DataArray(np.ones((2, 3)), dims=("a", "seed"))), "does not vary over the table"),
    (lambda: lab.shares(xr.DataArray(np.eye(3), dims=("a", "seed")), ["b"]), "`factors` should name dimensions"),
    (
        lambda: lab.shares(xr.DataArray([[1.0, 2.0], [np.nan, np.nan], [1.0, 3.0]], dims=("a", "seed"))),
        "Found none for a level of 'a'",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES)
def test_bad_input_is_refused_in_one_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError, KeyError)) as error:
        call()
    assert sentence in str(error.value)
