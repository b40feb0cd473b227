"""Generators with a known shortcut: symmetric clusters, dominoes, moons, latents, Boolean
functions."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm

from tiltmeter_lab.data.boolean import Majority, Parity, RandomFunction, Sparse, boolean_data, cube, places
from tiltmeter_lab.data.clusters import symmetric_clusters
from tiltmeter_lab.data.dominoes import dominoes, joined, one_hot_block
from tiltmeter_lab.data.latents import Latents
from tiltmeter_lab.data.moons import moons


@pytest.mark.parametrize("d", [2, 10])
def test_clusters_are_exactly_symmetric_and_labelled_as_documented(d):
    data = symmetric_clusters(d, points=16)
    assert len(data) == 16 * (8 if d == 2 else 16)
    centre = np.eye(d)[np.where(data.y > 0, 0, 1)]
    assert (np.linalg.norm(np.abs(data.x[:, :2]) - np.abs(centre[:, :2]), axis=1) < 0.01).all()

    def rows(x, y):
        return sorted(map(tuple, np.column_stack([x, y]).round(12)))

    for axes in ([0], [1], list(range(2, d))):
        mirror = data.x.copy()
        mirror[:, axes] *= -1
        assert rows(mirror + 0.0, data.y) == rows(data.x + 0.0, data.y)
    swapped = data.x.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    assert rows(swapped, -data.y) == rows(data.x, data.y)


def test_cloud_is_a_gaussian_cut_off():
    data = symmetric_clusters(2, points=4000, spread=0.005, radius=0.01, seed=1)
    lengths = np.linalg.norm(data.x[:4000] - [1.0, 0.0], axis=1)
    assert lengths.max() <= 0.01
    # The intervention of the length given that it is below 2 sigma: 1 - exp(-r^2 / 2) over 1 - exp(-2).
    share = (1 - np.exp(-0.5)) / (1 - np.exp(-2.0))
    assert np.mean(lengths < 0.005) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 4000))


def test_dominoes_agree_as_often_as_asked():
    rng = np.random.default_rng(0)
    labels = np.arange(2000) % 10
    easy, hard = np.zeros((2000, 6, 4)) + labels[:, None, None], rng.random((2000, 3, 8, 8))
    whole = dominoes(easy, labels, hard, labels)
    assert whole.x.shape == (2000, 3, 14, 8)
    assert whole.sizes == {"agree": 2000}
    np.testing.assert_array_equal(whole.x[:, 0, 3, 4], labels)
    assert (whole.x[:, :, :6, :2] == 0).all()
    random = dominoes(easy, labels, hard, labels, agreement=0.0, seed=1)
    # 1 in 10 agrees by chance: 200 +- 13.4; four of these.
    assert abs(random.sizes["agree"] - 200) < 54
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cells = dominoes(easy, labels, hard, labels, agreement=0.0, cells=True)
    assert len(cells.groups) == 100
    shown = np.array([group[0] for group in cells.groups])[cells.codes]
    np.testing.assert_array_equal(cells.x[:, 1, 3, 4], shown)
    np.testing.assert_array_equal(np.array([group[1] for group in cells.groups])[cells.codes], cells.y)


def test_one_hot_block_beside_flat_points():
    x = joined(one_hot_block([1, 0, 2], 3.0, classes=4), np.ones((3, 5)))
    assert x.shape == (3, 9)
    assert x[0, :4].tolist() == [0, 3, 0, 0]
    assert (one_hot_block([1, 0], 0.0) == 0).all()


def test_moons_touch_as_told():
    for margin in (-0.1, 0.1):
        data = moons(margin, 300)
        upper = data.y == 1
        assert data.x[upper, 1].min() - data.x[~upper, 1].max() == pytest.approx(margin)
    assert np.abs(moons(0.1, 300, noise=0.1).x - moons(0.1, 300).x).std() > 0.01


def test_latents_predict_as_told_whatever_their_availability():
    latents = Latents((0.7, 0.9), (10.0, 0.1), d=20)
    data = latents.sample(20_000, seed=4)
    z = (data.x @ latents.frame.T) / np.asarray(latents.availability)
    for i, share in enumerate((0.7, 0.9)):
        assert np.mean(np.sign(z[:, i]) == data.y) == pytest.approx(share, abs=4 * np.sqrt(0.21 / 20_000))
    best = norm.cdf(np.linalg.norm(latents.means))
    assert np.mean(np.sign(z @ latents.means) == data.y) == pytest.approx(best, abs=4 * np.sqrt(0.21 / 20_000))
    np.testing.assert_allclose(latents.embed([[1.0, 0.0]]), 10.0 * latents.frame[:1])


def test_boolean_functions():
    x = cube(5)
    np.testing.assert_array_equal(places(x), np.arange(32))
    np.testing.assert_array_equal(Parity((0, 4))(x), x[:, 0] * x[:, 4])
    np.testing.assert_array_equal(Majority((0, 1, 2))(x), np.sign(x[:, :3].sum(1)))
    np.testing.assert_array_equal(Sparse((1, 3), 2)(x), Sparse((1, 3), 2)(x * np.array([-1, 1, -1, 1, -1])))
    assert len(np.unique(RandomFunction(0)(x))) == 2
    noisy = boolean_data(Parity((0,)), 10, noise=0.2)
    assert noisy.sizes == {"clean": 819, "flipped": 205}
    flipped = np.array(noisy.groups)[noisy.codes] == "flipped"
    np.testing.assert_array_equal(noisy.y != Parity((0,))(noisy.x), flipped)
    assert boolean_data(Parity((2, 30)), 40, points=100).x.shape == (100, 40)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: symmetric_clusters(1), "`d` should be at least 2"),
        (lambda: symmetric_clusters(spread=0.0), "Found points = 16, spread = 0.0"),
        (lambda: dominoes(np.ones((4, 2)), [0, 1, 0, 1], np.ones((4, 2)), [0, 1, 0, 1], 2.0), "`agreement` should be"),
        (
            lambda: dominoes(np.ones((4, 2)), [0, 1, 0], np.ones((4, 2)), [0, 1, 0, 1]),
            "Every image should have a label",
        ),
        (lambda: dominoes(np.ones((4, 2)), [0, 1, 0, 1], np.ones((4, 2)), [0, 1, 0, 2]), "Found no easy image of 2"),
        (lambda: joined(np.ones((4, 2)), np.ones((4, 2, 2))), "Both parts should be images"),
        (lambda: moons(points=2), "`points` should be at least 4"),
        (lambda: Latents((0.4, 0.9)), "`predictivity` should lie"),
        (lambda: Latents(availability=(0.0, 1.0)), "`availability` should be positive"),
        (lambda: Latents(d=1), "`d` should be at least 2"),
        (lambda: boolean_data(Parity((0,)), 4, points=17), r"at most 2\^n = 16"),
        (lambda: boolean_data(Parity((0,)), 40), "`points` should say how many"),
        (lambda: boolean_data(Parity((0,)), 4, noise=1.0), "`noise` should be a share"),
        (lambda: Majority()(cube(4)), "odd number of bits. Found 4"),
        (lambda: cube(25), "`n` should be from 1 to 20"),
    ],
)
def test_bad_input(made, said):
    with pytest.raises(ValueError, match=said):
        made()
