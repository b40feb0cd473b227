"""Weights, proportions and initialisations without training."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.kernel.best_weights import BestWeights
from tiltmeter.forecast.kernel.sample_correction import masses, sampled

by_kernel = partial(tm.forecast, method=tm.methods.Kernel(), progress=False)


def network(width=40):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 1))


@pytest.fixture
def kernels(two_labels):
    return tm.tangent(network(), *two_labels)


def test_weights_of_one_and_shares_of_the_data_change_nothing(kernels, two_labels):
    plain = kernels.forecast(tm.Recipe(lr=0.05, steps=100, batch=None, loss=tm.Square()))
    ones = kernels.forecast(tm.Recipe(lr=0.05, steps=100, batch=None, weights={"a": 1.0, "b": 1.0}, loss=tm.Square()))
    same = kernels.forecast(
        tm.Recipe(lr=0.05, steps=100, batch=None, proportions=two_labels[0].sizes, loss=tm.Square())
    )
    np.testing.assert_allclose(ones["loss"], plain["loss"], rtol=1e-12)
    np.testing.assert_allclose(same["loss"], plain["loss"], rtol=1e-10)


def test_proportions_are_weights_of_the_same_mean(kernels):
    shares = dict(zip(kernels.sample.groups, kernels.shares.tolist(), strict=True))
    wanted = {"a": 0.3, "b": 0.7}
    drawn = kernels.forecast(tm.Recipe(lr=0.05, steps=100, batch=None, proportions=wanted, loss=tm.Square()))
    weighed = kernels.forecast(
        tm.Recipe(lr=0.05, steps=100, batch=None, weights={g: wanted[g] / shares[g] for g in wanted}, loss=tm.Square())
    )
    np.testing.assert_allclose(drawn["loss"], weighed["loss"], rtol=1e-9)
    plain = kernels.forecast(tm.Recipe(lr=0.05, steps=100, batch=None, loss=tm.Square()))
    assert drawn["loss"].sel(time=100, group="b") < plain["loss"].sel(time=100, group="b")


def test_a_sample_stands_for_the_data():
    data = tm.GroupedData(np.zeros((3000, 1)), np.zeros(3000), np.where(np.arange(3000) < 2940, "a", "b"))
    places, stands_for = sampled(data, 400, 0)
    part = data.take(places)
    assert len(set(places)) == len(places) <= 400
    assert part.sizes == {"a": 340, "b": 60}  # all of the rare group, which has less than an equal share
    mass = np.bincount(part.codes, masses(part, stands_for, np.array([0.98, 0.02]), None, None)) / len(places)
    np.testing.assert_allclose(mass, [0.98, 0.02], rtol=1e-12)
    mass = np.bincount(part.codes, masses(part, stands_for, np.array([0.98, 0.02]), None, {"a": 1, "b": 3}))
    np.testing.assert_allclose(mass / len(places), [0.25, 0.75], rtol=1e-12)


@pytest.mark.parametrize(
    "criterion",
    [
        tm.fairness.criteria.WorstGroupLoss(),
        tm.fairness.criteria.WorstGroupLoss(50),
        tm.fairness.criteria.WorstGroupArea(),
        tm.fairness.criteria.GapArea(),
    ],
)
def test_best_weights_beat_a_grid(kernels, criterion):
    found = tm.fairness.best_weights(
        kernels, tm.Recipe(lr=0.05, steps=200, batch=None, loss=tm.Square()), criterion=criterion
    )
    shares = kernels.shares
    assert np.dot(shares, [found.weights["a"], found.weights["b"]]) == pytest.approx(1.0)
    assert found.after <= found.before
    for ratio in (0.1, 0.5, 1.0, 2.0, 4.0, 10.0):
        weights = {"a": 1 / (shares[0] + shares[1] * ratio), "b": ratio / (shares[0] + shares[1] * ratio)}
        ahead = kernels.forecast(tm.Recipe(lr=0.05, steps=200, batch=None, weights=weights, loss=tm.Square()))["loss"]
        # The search stops within 1 % of the logarithm of a weight.
        assert found.after <= float(criterion.of({"loss": ahead})) * (1 + 1e-3)


def test_best_weights_of_a_convex_loss_and_three_groups():
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=(300, 3)), np.arange(300) % 3
    data = tm.GroupedData(x, np.where(x[np.arange(300), group] > 0, 1, -1), group)
    torch.manual_seed(0)
    kernels = tm.tangent(nn.Linear(3, 1), *data.split(0.5))
    two = tm.fairness.best_weights(
        kernels,
        tm.Recipe(lr=0.5, steps=20, batch=None, loss=tm.Logistic()),
        criterion=tm.fairness.criteria.WorstGroupLoss(),
    )
    one = tm.fairness.best_weights(kernels, tm.Recipe(lr=0.5, steps=20, batch=None, loss=tm.Square()))
    for found in (one, two):
        assert found.after <= found.before
        assert list(found.weights) == [0, 1, 2]


def test_levelling_down_is_said():
    weights = {"a": 0.5, "b": 1.5}
    down = BestWeights(weights, tm.fairness.criteria.FinalGap(), 0.2, 0.1, {"a": (0.1, 0.2), "b": (0.3, 0.3)}, False)
    assert "This is levelling down" in str(down)
    up = BestWeights(weights, tm.fairness.criteria.FinalGap(), 0.2, 0.1, {"a": (0.1, 0.15), "b": (0.3, 0.2)}, False)
    assert "levelling down" not in str(up)
    assert "by harm" in str(up)
    none = BestWeights(
        weights, tm.fairness.criteria.WorstGroupLoss(), 0.2, 0.2, {"a": (0.1, 0.1), "b": (0.2, 0.2)}, False
    )
    assert str(none).startswith("No weights")


def test_seeds_are_those_of_ensemble(two_labels):
    ahead = by_kernel(
        lambda: nn.Linear(6, 1), *two_labels, tm.Recipe(lr=0.05, steps=40, batch=None, loss=tm.Square()), seeds=[2, 5]
    )
    assert ahead["loss"].dims == ("time", "group")
    assert ahead.origin.seeds == (2, 5)
    each = []
    for seed in (2, 5):
        torch.manual_seed(seed)
        recipe = tm.Recipe(lr=0.05, steps=40, batch=None, loss=tm.Square())
        each.append(by_kernel(nn.Linear(6, 1), *two_labels, recipe)["loss"].values)
    np.testing.assert_allclose(ahead["loss"], np.mean(each, axis=0), rtol=1e-12)


def test_learned_share_rises_to_one_and_names_the_faster_group(kernels):
    found = kernels.learned_share(tm.Recipe(lr=0.05, steps=10**6, batch=None, loss=tm.Square()))["learned_share"]
    assert (found.sel(time=0) == 0).all()
    assert (found.diff("time") > -1e-9).all()
    why = kernels.why(tm.Recipe(lr=0.05, steps=20, batch=None, loss=tm.Square()), step=20)
    assert why.fastest == max("ab", key=lambda g: found.sel(time=20, group=g).item())
    assert f"of {why.fastest}'s task, against" in str(replace(why, gap_error=0.0))  # as if the gap were clear
    # The same from all eigenvectors: shares of the task times what is learned along each.
    values, directions = np.linalg.eigh(kernels.kernel)
    learned = 1 - (1 - 0.05 * np.maximum(values, 0.0) / len(kernels.kernel)) ** 20
    task = kernels.sample.y - kernels.start_sample[:, 0]
    for code, group in enumerate(kernels.sample.groups):
        own = np.where(kernels.sample.codes == code, task, 0.0)
        expected = ((own @ directions) ** 2 / (own @ own) * learned).sum()
        np.testing.assert_allclose(found.sel(time=20, group=group), expected, atol=1e-6)


def test_decisions_are_those_of_the_probe(two_labels):
    train, held_out = two_labels
    strict = lambda score: score > 0.5  # noqa: E731
    torch.manual_seed(0)
    model = nn.Linear(6, 1).double()
    ahead = by_kernel(
        model,
        train,
        held_out,
        tm.Recipe(lr=0.1, steps=60, batch=None, loss=tm.losses.Hinge()),
        watch=tm.Watch(decide=strict),
    )
    with tm.Probe(model, held_out, watch=tm.Watch(decide=strict), loss=tm.losses.Hinge(), budget=None) as probe:
        probe(0)
    start = probe.trajectory()["error"].sel(time=0)
    np.testing.assert_array_equal(ahead["error"].sel(time=0), start)
    plain = by_kernel(
        model,
        train,
        held_out,
        tm.Recipe(lr=0.1, steps=60, batch=None, loss=tm.losses.Hinge()),
        watch=tm.Watch(decide=lambda score: score > 0),
    )
    assert not np.array_equal(ahead["error"], plain["error"])
    np.testing.assert_array_equal(ahead["loss"], plain["loss"])
