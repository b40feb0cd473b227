"""Clipping by group, and weightings of torchjd."""

import numpy as np
import pytest
import torch

import tiltmeter as tm
from tiltmeter.interventions.group_intervention import Seen

I = tm.interventions


def seen(gram, shares=(0.5, 0.5)):
    return Seen(0.0, ("a", "b"), np.array(shares), np.zeros(2), gram=np.asarray(gram, dtype=float))


def problem(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 4)).astype("float32")
    x[60:] *= 3.0
    return tm.GroupedData(x, np.sign(rng.normal(size=80)), ["a"] * 60 + ["b"] * 20)


def trained(law, steps=6):
    torch.manual_seed(0)
    model, data = torch.nn.Linear(4, 1), problem()
    recipe = tm.Recipe(lr=0.05, steps=steps, batch=None, loss=tm.Square(), interventions=() if law is None else (law,))
    run = tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.every(1)))
    return model, run


def test_no_gradient_counts_with_more_than_the_limit():
    law = I.GroupClipping(0.5)
    grams = np.random.default_rng(0).normal(size=(50, 2, 6))
    for rows in grams:
        pull = law.pull(np.zeros(2), seen(rows @ rows.T))
        lengths = np.linalg.norm(rows, axis=1)
        assert (pull / 0.5 * lengths <= 0.5 + 1e-12).all()
        assert (pull <= 0.5).all()


def test_a_limit_that_is_never_reached_changes_nothing():
    limited, _ = trained(I.GroupClipping(1e6))
    plain, _ = trained(None)
    # Sums in another order: equal up to rounding.
    torch.testing.assert_close(limited.weight, plain.weight)


def test_a_tight_limit_holds_back_the_group_with_long_gradients():
    _, run = trained(I.GroupClipping(0.3))
    pull = run["pull"].isel(time=-1)
    assert float(pull.sel(group="b")) < 0.25
    assert float(pull.sel(group="a")) <= 0.75


def test_the_shortest_combination_of_two_gradients_by_torchjd():
    pytest.importorskip("torchjd", reason="torchjd is not installed: pip install torchjd")
    rows = np.array([[1.0, 0.0], [-0.5, 1.0]])
    found = I.JacobianDescent("MGDA").pull(np.zeros(2), seen(rows @ rows.T))
    # The point nearest to the origin on the segment between both gradients.
    a, b = rows
    share = np.clip((b - a) @ b / ((b - a) @ (b - a)), 0.0, 1.0)
    np.testing.assert_allclose(found, [share, 1.0 - share], atol=2e-2)  # MGDA iterates


def test_a_name_that_torchjd_does_not_know():
    pytest.importorskip("torchjd", reason="torchjd is not installed: pip install torchjd")
    with pytest.raises(ValueError, match="torchjd has no weighting 'Nothing'"):
        I.JacobianDescent("Nothing").pull(np.zeros(2), seen(np.eye(2)))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: I.GroupClipping(0.0), "`limit`"),
        (lambda: I.JacobianDescent("__import__('os')"), "a name of torchjd"),
        (lambda: I.GroupClipping(by="draws"), '`by` is "weights"'),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
