"""M, R, Q and alignment of trained networks: the identity of the squared loss, in every form of two labels."""

import numpy as np
import pytest

import tiltmeter as tm

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402


def run_of(labels, loss):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    y = labels(x)
    data = tm.GroupedData(x, y, np.where(np.arange(600) % 3 == 0, "b", "a"))
    train, held_out = data.split(0.5)
    torch.manual_seed(0)
    recipe = tm.Recipe(lr=0.1, steps=40, batch=16, loss=loss)
    return tm.train(nn.Linear(3, 1), train, held_out, recipe), held_out


@pytest.mark.parametrize(
    ("labels", "half"),
    [
        (lambda x: np.where(x[:, 0] > 0, 1.0, -1.0), 1.0),
        (lambda x: (x[:, 0] > 0).astype(int), 0.5),
        (lambda x: np.where(x[:, 0] > 0, 7, 3), 2.0),
    ],
)
def test_two_labels_with_the_squared_loss(labels, half):
    run, _ = run_of(labels, tm.Square())
    by_parameters = half**2 * (run["Q"] - 2 * run["R"] + 1.0) / 2
    np.testing.assert_allclose(by_parameters, run["loss"], rtol=1e-5)


def test_a_regression():
    run, held_out = run_of(lambda x: x[:, 0] + 0.5 * x[:, 1], tm.Square())
    squares = np.array([np.mean(held_out.y[held_out.of_group(group)] ** 2) for group in ("a", "b")])
    np.testing.assert_allclose((run["Q"] - 2 * run["R"] + squares) / 2, run["loss"], rtol=1e-4, atol=1e-7)
    assert run["label_alignment"].values[-1].min() > 0.99


def test_the_mean_margin_is_r_and_alignment_a_cosine():
    run, _ = run_of(lambda x: (x[:, 0] > 0).astype(int), tm.Logistic())
    np.testing.assert_allclose(run["R"], run["margin"], rtol=1e-6)
    np.testing.assert_allclose(run["label_alignment"], run["R"] / np.sqrt(run["Q"]), rtol=1e-6)
    assert float(abs(run["label_alignment"]).max()) <= 1.0


def test_they_can_be_drawn():
    run, _ = run_of(lambda x: (x[:, 0] > 0).astype(int), tm.Logistic())
    assert len(tm.plot.order_parameters(run).to_dict()["vconcat"]) == 4


def test_several_scores_have_none():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    data = tm.GroupedData(x, x.argmax(1), np.where(np.arange(300) % 3 == 0, "b", "a"))
    run = tm.train(nn.Linear(3, 3), *data.split(0.4), tm.Recipe(lr=0.1, steps=5))
    assert "Q" not in run
