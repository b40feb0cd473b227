"""What must not change the answers: the order and names of groups, the unit of time, rotations, and splitting a
group."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies import mixtures
from tiltmeter import SGD, predict
from tiltmeter.theory import Mixture
from tiltmeter.theory.dynamics.stability import stability_limit

TIMES = np.geomspace(0.05, 50.0, 12)
RATES = ("error", "positive_rate", "tpr", "fpr", "ppv")
calm = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def trained(vectors, share=0.5, **settings):
    problem = Mixture.from_vectors(**vectors)
    limit = stability_limit(problem, SGD(lr=0.1, **settings)).item()
    return problem, SGD(lr=share * limit, **settings)


@calm
@given(mixtures(), st.floats(0.01, 0.95), st.booleans())
def test_probabilities_stay_in_the_unit_interval_and_losses_positive(vectors, share, train_bias):
    theory = predict(*trained(vectors, share, train_bias=train_bias), TIMES)
    for name in RATES:
        known = theory[name].values[np.isfinite(theory[name].values)]
        assert ((known >= 0) & (known <= 1)).all(), name
    assert (theory["loss"] >= 0).all()
    assert (theory["Q"] >= 0).all()
    assert (theory["R"] ** 2 <= theory["Q"] * (1 + 1e-9)).all()
    impact = theory["disparate_impact"].values
    assert ((impact[np.isfinite(impact)] >= 0) & (impact[np.isfinite(impact)] <= 1)).all()


@calm
@given(mixtures(), st.permutations("abc"))
def test_relabelling_groups_changes_nothing_but_their_order(vectors, order):
    shuffled = {name: {g: values[g] for g in order} for name, values in vectors.items()}
    one, two = predict(*trained(vectors), TIMES), predict(*trained(shuffled), TIMES)
    for name in ("loss", "error", "R", "M", "tpr"):
        np.testing.assert_allclose(one[name].sel(group=list("abc")), two[name].sel(group=list("abc")), atol=1e-9)
    np.testing.assert_allclose(one["Q"], two["Q"], atol=1e-10)


@calm
@given(mixtures(), st.integers(0, 1000))
def test_rotating_all_vectors_changes_nothing(vectors, seed):
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))
    turned = dict(vectors)
    for name in ("means", "teachers"):
        turned[name] = {g: rotation @ v for g, v in vectors[name].items()}
    one, two = predict(*trained(vectors), TIMES), predict(*trained(turned), TIMES)
    for name in ("loss", "error", "Q"):
        np.testing.assert_allclose(one[name], two[name], atol=1e-9)


@calm
@given(mixtures(), st.floats(0.1, 0.9), st.booleans())
def test_splitting_a_group_into_two_identical_ones_changes_nothing(vectors, share, train_bias):
    split = {name: dict(values) for name, values in vectors.items()}
    for name, values in split.items():
        values["d"] = values["c"]
        if name == "weight":
            values["d"], values["c"] = (1 - share) * values["c"], share * values["c"]
    one = predict(*trained(vectors, train_bias=train_bias), TIMES)
    two = predict(*trained(split, train_bias=train_bias), TIMES)
    for name in ("loss", "error", "R"):
        np.testing.assert_allclose(one[name].sel(group="c"), two[name].sel(group="d"), atol=1e-9)
        np.testing.assert_allclose(one[name].sel(group="a"), two[name].sel(group="a"), atol=1e-9)


@calm
@given(mixtures())
def test_small_learning_rates_only_set_the_unit_of_time(vectors):
    # The correction is of order lr over the squared signal, which is small where teachers cancel: lr must be far
    # smaller.
    problem = Mixture.from_vectors(**vectors)
    one = predict(problem, SGD(lr=1e-10), TIMES / 1e-10)
    two = predict(problem, SGD(lr=5e-11), TIMES / 5e-11)
    for name in ("loss", "error", "M"):
        np.testing.assert_allclose(one[name].values, two[name].values, atol=1e-5)


@calm
@given(mixtures(groups=("a", "b")), st.floats(0.3, 3.0))
def test_the_learning_rate_and_the_loss_weights_trade_off(vectors, factor):
    """Weights that are the same for all groups are a learning rate."""
    problem, sgd = trained(vectors, 0.2)
    weighted = SGD(lr=sgd.lr / factor, weights={"a": factor, "b": factor})
    one, two = predict(problem, sgd, TIMES), predict(problem, weighted, TIMES)
    np.testing.assert_allclose(one["loss"], two["loss"], atol=1e-10)


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_negative_control_identical_groups_are_treated_alike(shift):
    """Two groups that differ in nothing have no gap in anything at any time."""
    vectors = {
        "weight": {"a": 0.9, "b": 0.1}, "variance": {"a": 0.7, "b": 0.7}, "means": {"a": [shift, 0], "b": [shift, 0]},
        "teachers": {"a": [0.6, 0.8], "b": [0.6, 0.8]}, "label_bias": {"a": 0.3, "b": 0.3},
    }  # fmt: skip
    theory = predict(*trained(vectors), TIMES)
    for name in theory:
        if name.endswith("_gap"):
            assert abs(theory[name]).max() < 1e-13
