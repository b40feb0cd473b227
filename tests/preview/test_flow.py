"""The flow of a linear model: closed form equals descent on the full table, implicit steps follow the true flow."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit, softmax

from tiltmeter.preview.flow import TIMES, descent, flow, mean_loss


def rows(count=60, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    features = np.concatenate([rng.normal(size=(count, columns)), np.ones((count, 1))], axis=1)
    mass = rng.random(count) + 0.1
    return features, rng, mass / mass.sum()


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_the_mean_path_is_descent_on_the_full_table(weight_decay):
    features, rng, mass = rows()
    y = rng.normal(size=60)
    steps = np.array([0, 1, 7, 100, 1500])
    start = rng.normal(size=5)
    found = descent(features, y, mass, 0.05, steps, weight_decay, start)
    w, path = start, []
    for step in range(1501):
        if step in steps:
            path.append(w)
        w = w - 0.05 * (features.T @ (mass * (features @ w - y)) + weight_decay * w)
    assert np.abs(found - np.array(path)).max() < 1e-10


def test_descent_with_a_column_of_zeros_stays_at_zero_there():
    features, rng, mass = rows()
    features[:, 1] = 0.0
    found = descent(features, rng.normal(size=60), mass, 0.05, np.array([10, 1000]))
    assert np.abs(found[:, 1]).max() < 1e-12


def test_the_flow_of_the_squared_error_is_the_limit_of_descent():
    features, rng, mass = rows()
    y = rng.normal(size=60)
    path = flow(features, y, mass, "numbers", np.array([3.0]))
    small = descent(features, y, mass, 1e-4, np.array([30_000]))
    assert np.abs(path.weights[-1, :, 0] - small[0]).max() < 1e-4


def test_implicit_steps_follow_the_logistic_flow():
    features, rng, mass = rows(columns=2)
    y = (rng.random(60) < 0.4).astype(float)
    times = np.geomspace(0.01, 10.0, 400)
    path = flow(features, y, mass, "binary", times)

    def slope(_, w):
        return -features.T @ (mass * (expit(features @ w) - y))

    exact = solve_ivp(slope, (0, 10.0), np.zeros(3), rtol=1e-10, atol=1e-12).y[:, -1]
    assert np.abs(path.weights[-1, :, 0] - exact).max() < 0.02 * np.abs(exact).max()


def test_implicit_steps_reach_the_stationary_point():
    features, rng, mass = rows(count=400, columns=2)
    y = (rng.random(400) < expit(features[:, 0])).astype(float)
    path = flow(features, y, mass[:400], "binary")
    slope = features.T @ (mass / mass.sum() * (expit(features @ path.weights[-1, :, 0]) - y))
    assert np.abs(slope).max() < 1e-3


def test_two_classes_are_the_binary_flow_with_half_of_the_score_each():
    features, rng, mass = rows()
    y = (rng.random(60) < 0.5).astype(float)
    times = np.geomspace(0.01, 5.0, 60)
    binary = flow(features, y, mass, "binary", 2 * times).weights[-1, :, 0]
    classes = flow(features, np.stack([1 - y, y], axis=1), mass, "classes", times).weights[-1]
    assert np.abs((classes[:, 1] - classes[:, 0]) - binary).max() < 0.02 * np.abs(binary).max()


def test_several_classes_lower_the_loss_to_that_of_a_stationary_point():
    features, rng, mass = rows(count=300)
    places = rng.integers(0, 3, 300)
    labels = np.eye(3)[places]
    path = flow(features, labels, mass, "classes")
    assert (np.diff(path.loss) <= 1e-9).all()
    left = features.T @ (mass[:, None] / mass.sum() * (softmax(features @ path.weights[-1], axis=1) - labels))
    assert np.abs(left).max() < 2e-3


def test_soft_labels_are_the_mean_of_drawn_ones():
    features, rng, mass = rows()
    chance = rng.random(60)
    soft = flow(features, chance, mass, "binary").weights[-1]
    twice = np.concatenate([features, features])
    labels = np.concatenate([np.ones(60), np.zeros(60)])
    both = flow(twice, labels, np.concatenate([mass * chance, mass * (1 - chance)]), "binary").weights[-1]
    assert np.abs(soft - both).max() < 1e-8


def test_the_loss_of_a_path_is_that_of_its_weights():
    features, rng, mass = rows()
    y = (rng.random(60) < 0.5).astype(float)
    path = flow(features, y, mass, "binary")
    assert path.times.tolist() == [0.0, *TIMES]
    for weights, loss in zip(path.weights[1:], path.loss[1:], strict=True):
        assert abs(mean_loss(features @ weights, y, mass, "binary") - loss) < 1e-12


def test_a_judge_ends_the_flow_soon_after_the_least_loss():
    features, rng, mass = rows()
    y = (rng.random(60) < 0.5).astype(float)
    found = iter([5.0, 4.0, 3.0, 3.5, 3.6, 3.7, 3.8])
    path = flow(features, y, mass, "binary", judge=lambda _: next(found))
    assert len(path.times) == 7
