"""The batch limit: the map written out, real SGD on both sides, heavy tails, and the warning before a training."""

import warnings

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.recipe.batch_limit import batch_limit, batch_limit_by_diagonal


def radius(x, lr, batch):
    """The spectral radius of the covariance map, as a matrix."""
    d = x.shape[1]
    second = x.T @ x / len(x)
    fourth = np.einsum("ia,ib,ic,id->abcd", x, x, x, x) / len(x)  # E[x_a x_b x_c x_d]
    eye = np.eye(d)
    whole = np.einsum("ac,bd->abcd", eye, eye)
    whole = whole - lr * (np.einsum("ac,bd->abcd", second, eye) + np.einsum("ac,bd->abcd", eye, second))
    noise = np.einsum("acdb->abcd", fourth) / batch
    noise = noise + (1 - 1 / batch) * np.einsum("ac,db->abcd", second, second)
    return np.abs(np.linalg.eigvals((whole + lr**2 * noise).reshape(d * d, d * d))).max()


@pytest.mark.parametrize("batch", [1, 4, 32])
def test_the_map_has_a_radius_of_one_at_the_limit(batch):
    rng = np.random.default_rng(0)
    x = rng.standard_t(5, size=(500, 3)) * [1.0, 0.5, 2.0]
    limit = batch_limit(x, batch)
    assert radius(x, 0.999 * limit, batch) < 1 < radius(x, 1.001 * limit, batch)


def test_one_column_by_hand():
    x = np.array([[1.0], [2.0], [3.0]])
    second, fourth = np.mean(x**2), np.mean(x**4)
    assert batch_limit(x, 1) == pytest.approx(2 * second / fourth)
    assert batch_limit(x, 2) == pytest.approx(2 * second / (fourth / 2 + second**2 / 2))


def test_columns_that_say_the_same_change_nothing():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    turned = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    wider = np.c_[x, np.zeros(400)] @ turned
    assert batch_limit(wider, 4) == pytest.approx(batch_limit(x, 4), rel=1e-4)
    assert batch_limit(np.zeros((5, 2)), 4) == np.inf


def test_heavy_tails_lower_the_limit_below_that_of_the_variances():
    rng = np.random.default_rng(0)
    x = np.exp(1.5 * rng.normal(size=(4000, 4)))
    x = (x - x.mean(0)) / x.std(0)
    by_variances = 2 * 8 / (8 + 5)
    by_diagonal = batch_limit_by_diagonal(1.0, (x**2).sum(1), np.full(4000, 1 / 4000), 8)
    assert batch_limit(x, 8) < by_diagonal < by_variances
    assert batch_limit(x, 8) < by_variances / 4


def test_a_training_that_will_diverge_is_warned_of_before_it_starts():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = np.exp(1.2 * rng.normal(size=(1500, 3)))
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    parts = tm.GroupedData(x, y, np.where(np.arange(1500) % 3 == 0, "b", "a")).split(0.3)
    recipe = tm.Recipe(lr=0.5, steps=300, batch=4, loss=tm.Square())
    with pytest.warns(UserWarning, match="from which the noise of batches of 4 makes this squared loss diverge"):
        run = tm.train(torch.nn.Linear(3, 1), *parts, recipe)
    assert run.diverged is not None or float(run["loss"].max()) > 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calm = tm.train(torch.nn.Linear(3, 1), *parts, tm.Recipe(lr=0.01, steps=300, batch=4, loss=tm.Square()))
        tm.train(torch.nn.Linear(3, 1), *parts, tm.Recipe(lr=0.5, steps=60, batch=4, loss=tm.Logistic()))
    assert float(calm["loss"].isel(time=-1).max()) < 1
