"""Clones share what they promise with their originals, and nothing else."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from tiltmeter.data import GroupedData
from tiltmeter_lab.data.clones import (
    ClassCovariance,
    GaussianTransport,
    IndependentMarginals,
    Isotropic,
    MaxEntropyCube,
    MeanShift,
    QuantileEdit,
    SharedCovariance,
    other_classes,
    tilt,
    transport_cost,
    transport_map,
)

CLONES = [Isotropic(), SharedCovariance(), ClassCovariance(), IndependentMarginals(), MaxEntropyCube()]
EDITS = [MeanShift(), GaussianTransport(), QuantileEdit()]


def sample(n=3000, shape=(4,), seed=0):
    """Two classes with different means and strongly dependent coordinates, inside the unit cube."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    d = int(np.prod(shape))
    common = rng.random((n, 1))
    x = 0.5 * common * np.where(y == 1, 1, 0.7)[:, None] + 0.2 * rng.random((n, d)) ** 2 + 0.2 * y[:, None]
    return GroupedData(x.reshape(n, *shape), y, np.where(rng.random(n) < 0.3, "b", "a"))


def covariance(rows):
    return np.cov(rows.T, bias=True)


@pytest.mark.parametrize("clone", CLONES, ids=lambda c: type(c).__name__)
def test_clones_are_paired_with_their_originals(clone):
    data = sample(300, (3, 2, 2))
    found = clone(data, seed=1)
    assert (found.y == data.y).all()
    assert (found.codes == data.codes).all()
    assert found.x.shape == data.x.shape
    assert (found.x != data.x).any()
    assert np.array_equal(found.x, clone(data, seed=1).x)
    assert not np.array_equal(found.x, clone(data, seed=2).x)


def test_gaussian_clones_have_the_moments_they_promise():
    data, many = sample(), sample(40_000, seed=1)
    wanted = {label: data.x[data.y == label] for label in (0, 1)}
    pooled = np.concatenate([rows - rows.mean(0) for rows in wanted.values()])
    for clone, moment in (
        (Isotropic(), lambda rows: np.eye(4) * covariance(rows).trace() / 4),
        (SharedCovariance(), lambda rows: covariance(pooled)),
        (ClassCovariance(), covariance),
    ):
        found = clone(many, seed=3, fit=data)
        for label, rows in wanted.items():
            own = found.x[many.y == label]
            expected = moment(rows)
            spread = np.sqrt(np.diag(expected) / len(own))
            assert (np.abs(own.mean(0) - rows.mean(0)) < 5 * spread).all()
            # Standard error of a covariance of Gaussians: sqrt((C_ii C_jj + C_ij^2) / n).
            error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(own))
            assert (np.abs(covariance(own) - expected) < 5 * error).all()


def test_the_covariance_between_channels_is_kept():
    """Public code clones each channel alone, and its clone of a grey image has independent colours."""
    rng = np.random.default_rng(0)
    grey = rng.normal(size=(4000, 1, 3, 3))
    data = GroupedData(np.repeat(grey, 3, axis=1), np.zeros(4000, dtype=int), np.zeros(4000))
    clone = ClassCovariance()(data).x
    red, green = clone[:, 0].ravel(), clone[:, 1].ravel()
    assert np.corrcoef(red, green)[0, 1] > 0.999
    assert abs(np.corrcoef(IndependentMarginals()(data).x[:, 0].ravel(), green)[0, 1]) < 0.05


def test_independent_marginals_are_exact_and_take_no_extreme_too_often():
    data = sample(1000)
    clone = IndependentMarginals()(data, seed=4)
    for label in (0, 1):
        own, new = data.x[data.y == label], clone.x[clone.y == label]
        assert np.array_equal(np.sort(own, axis=0), np.sort(new, axis=0))
        assert np.abs(np.corrcoef(own.T)[0, 1]) > 0.3
        assert np.abs(np.corrcoef(new.T)[0, 1]) < 5 / np.sqrt(len(new))
    # Drawn for other data, the largest value comes up as often as any other: 1 in n, not 1 in 256 or 2 in n.
    many = IndependentMarginals()(sample(50_000, seed=2), fit=data)
    for label in (0, 1):
        rows, new = data.x[data.y == label], many.x[many.y == label]
        expected = len(new) / len(rows)
        counts = (new == rows.max(0)).sum(0)
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_the_cube_keeps_means_and_faces():
    means = np.array([0.1, 0.5, 0.8])
    data = GroupedData(np.tile(means, (20_000, 1)), [0] * 20_000, [0] * 20_000)
    x = MaxEntropyCube()(data, seed=1).x
    assert np.allclose(x.mean(0), means, atol=4 * 0.29 / np.sqrt(20_000))  # a coordinate of [0, 1] has sd < 0.29
    assert x.min() >= 0
    assert x.max() <= 1
    wide = MaxEntropyCube(-1, 1)(data, seed=1).x
    assert np.allclose(wide.mean(0), means, atol=8 * 0.29 / np.sqrt(20_000))
    b = tilt(np.linspace(0.01, 0.99, 21))
    grid = np.linspace(0, 1, 20_001)
    weight = np.exp(-b[:, None] * grid + np.minimum(b, 0)[:, None])  # second route: the mean by quadrature
    quadrature = np.trapezoid(grid * weight, grid) / np.trapezoid(weight, grid)
    assert np.allclose(quadrature, np.linspace(0.01, 0.99, 21), atol=1e-5)


def test_transport_is_exact():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(8, 8)) for _ in range(2))
    source, target = a @ a.T, b @ b.T
    matrix = transport_map(source, target)
    assert np.abs(matrix @ source @ matrix - target).max() < 1e-11 * np.abs(target).max() * np.linalg.cond(source)
    assert np.linalg.eigvalsh(matrix).min() > -1e-10
    shift = rng.normal(size=8)
    # E |x - T x - shift|^2 for x of covariance `source`: second route to the closed form.
    moved = (np.eye(8) - matrix) @ source @ (np.eye(8) - matrix).T
    assert np.isclose(np.trace(moved) + shift @ shift, transport_cost(np.zeros(8), source, shift, target), rtol=1e-9)
    other = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    values, vectors = np.linalg.eigh(target)
    root = (vectors * np.sqrt(values)) @ vectors.T
    detour = root @ other @ np.linalg.inv(np.linalg.cholesky(source))  # reaches the same covariance, at a higher cost
    away = (np.eye(8) - detour) @ source @ (np.eye(8) - detour).T
    assert np.trace(away) > np.trace(moved)


def test_the_transport_edit_has_the_moments_of_its_target():
    data = sample(2000)
    edit = GaussianTransport()(data, seed=0)
    assert (edit.y != data.y).all()
    for source, target in ((0, 1), (1, 0)):
        moved, wanted = edit.x[data.y == source], data.x[data.y == target]
        assert np.abs(moved.mean(0) - wanted.mean(0)).max() < 1e-13
        assert np.abs(covariance(moved) - covariance(wanted)).max() < 1e-13
        own = data.x[data.y == source]
        cost = ((moved - own) ** 2).sum(1).mean()
        closed = transport_cost(own.mean(0), covariance(own), wanted.mean(0), covariance(wanted))
        assert np.isclose(cost, closed, rtol=1e-10)


def test_the_quantile_edit_has_the_marginals_of_its_target_and_not_its_covariance():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 4000)
    common = rng.normal(size=(8000, 1))
    x = np.where(y[:, None] == 0, rng.normal(size=(8000, 3)), np.exp(0.5 * common) * [1.0, -1.0, 2.0])
    data = GroupedData(x, y, y)
    edit = QuantileEdit()(data)
    moved, wanted = edit.x[data.y == 0], data.x[data.y == 1]
    for column in range(3):
        assert ks_2samp(moved[:, column], wanted[:, column]).statistic < 0.002
    off = ~np.eye(3, dtype=bool)
    assert np.abs(covariance(moved)[off] / covariance(wanted)[off]).max() < 0.1
    assert np.abs(covariance(GaussianTransport()(data).x[data.y == 0]) - covariance(wanted)).max() < 1e-12


def test_the_quantile_edit_takes_no_extreme_too_often_and_spreads_ties():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], [5000, 50])
    x = np.where(y == 0, rng.normal(size=5050), rng.random(5050))[:, None]
    moved = QuantileEdit()(GroupedData(x, y, y)).x[y == 0]
    counts = np.array([(moved == value).sum() for value in x[y == 1]])
    assert (np.abs(counts - 100) < 5 * np.sqrt(100)).all()  # 5000 points on 50 values, the extremes like the others
    tied = np.where(y == 0, 0.0, np.arange(5050))[:, None]  # a constant source class
    spread = QuantileEdit()(GroupedData(tied, y, y)).x[y == 0]
    assert len(np.unique(spread)) == 50


def test_targets_follow_class_shares_whatever_their_sum():
    """Public code hands unnormalised counts to a sampler of proportions."""
    y = np.repeat([0, 1, 2], 20_000)
    for scale in (1.0, 1e4):
        target = other_classes(y, {0: 0.6 * scale, 1: 0.3 * scale, 2: 0.1 * scale}, seed=0)
        assert (target != y).all()
        for own, share in ((0, 0.75), (1, 6 / 7), (2, 2 / 3)):
            found = (target[y == own] == (1 if own == 0 else 0)).mean()
            assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / 20_000)


def test_mean_shift_moves_means_alone():
    data = sample()
    edit = MeanShift()(data)
    for source, target in ((0, 1), (1, 0)):
        moved = edit.x[data.y == source]
        assert np.allclose(moved.mean(0), data.x[data.y == target].mean(0))
        assert np.allclose(covariance(moved), covariance(data.x[data.y == source]))


@pytest.mark.parametrize("clone", CLONES + EDITS, ids=lambda c: type(c).__name__)
def test_degenerate_points_stay_finite(clone):
    constant = GroupedData(np.full((60, 3), 0.4), [0, 1] * 30, [0, 1] * 30)
    assert np.isfinite(clone(constant).x).all()
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random((59, 3)), [[0.1, 0.2, 0.3]]])
    with pytest.warns(UserWarning, match="fewer than 30"):
        single = GroupedData(x, [0] * 59 + [1], [0] * 59 + [1])
    assert np.isfinite(clone(single).x).all()


def test_bad_input_gets_a_sentence():
    tokens = GroupedData(np.ones((60, 3), dtype=int), [0, 1] * 30, [0, 1] * 30)
    with pytest.raises(TypeError, match="Clones need points made of real numbers, not of tokens or counts"):
        Isotropic()(tokens)
    with pytest.raises(ValueError, match="Clones need classes"):
        Isotropic()(GroupedData(np.ones((60, 3)), np.linspace(0, 1, 60), [0] * 60))
    one = GroupedData(np.ones((60, 3)), [0] * 60, [0] * 60)
    with pytest.raises(ValueError, match=r"Moving points to another class needs at least two classes. Found 1."):
        MeanShift()(one)
    with pytest.raises(ValueError, match=r"`ridge` should not be negative. Found ridge = -1"):
        ClassCovariance(-1)(one)
    with pytest.raises(ValueError, match=r"Points should lie between `low` and `high`. Found 1 to 1 for low = 0"):
        MaxEntropyCube(0, 0.5)(one)
    with pytest.raises(ValueError, match=r"`fit` should have points of every label of the data. Found none with y = 1"):
        Isotropic()(sample(300, (3,)), fit=one)
    with pytest.raises(ValueError, match=r"`fit` should have points of the data's shape, \(4,\). Found \(3,\)"):
        Isotropic()(sample(300), fit=one)
