"""The correction for the size of the sample: right where it can be known, absent where there is nothing to correct."""

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.kernel.question import Question
from tiltmeter.forecast.kernel.sample_correction import corrected, group_losses, half_samples, unseen
from tiltmeter.recipe.plain_sgd import PlainSGD
from tiltmeter.record import Origin, Trajectory

STEPS = 400


@pytest.fixture(scope="module")
def noisy():
    """Labels that ten of the twenty coordinates explain in part: few points are fitted too well."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(5000, 20))
    group = np.where(np.arange(5000) % 3 == 0, "b", "a")
    score = x[:, :10].sum(1) + (group == "b") * x[:, 1] + 3.0 * rng.normal(size=5000)
    return tm.GroupedData(x, np.where(score > 0, 1, -1), group).split(0.3)


def network(inputs=20, outputs=1):
    torch.manual_seed(0)
    return nn.Linear(inputs, outputs)


def final(kernels, **settings):
    told = kernels.forecast(tm.Recipe(lr=0.05, steps=STEPS, batch=None, loss=tm.Square(), **settings))
    return np.concatenate([told[name].sel(time=STEPS).values for name in ("loss", "error")])


def test_it_removes_most_of_what_a_small_sample_adds(noisy):
    """Against the forecast from all training data, over 20 samples of 400."""
    exact = final(tm.tangent(network(), *noisy, sample=10_000))
    plain, better = [], []
    for seed in range(20):
        kernels = tm.tangent(network(), *noisy, sample=400, seed=seed)
        better.append(final(kernels) - exact)
        plain.append(_losses(kernels, kernels.course(*_as_asked())) - exact[:2])
    (before, spread), (after, noise) = (
        (values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))) for values in map(np.asarray, (plain, better))
    )
    assert (before > 5 * spread).all()
    # What is left is of the next order, directions over points: 20 over 400 at the most, times a few.
    assert (np.abs(after[:2]) < 3 * noise[:2] + 0.3 * before).all()
    assert (np.abs(after[2:]) < 3 * noise[2:] + 0.005).all()
    # Single samples are nearer as well, not only their mean.
    assert np.sqrt((np.asarray(better)[:, :2] ** 2).mean()) < 0.7 * np.sqrt((np.asarray(plain) ** 2).mean())


def _as_asked():
    return Question(PlainSGD(0.05, STEPS), tm.Square(), None, None, None), np.array([STEPS])


def _losses(kernels, course):
    wrong = 0.5 * (course.outputs[0, :, 0] - kernels.held_out.y) ** 2
    return np.asarray([wrong[kernels.held_out.codes == code].mean() for code in range(2)])


def test_nothing_is_corrected_where_the_sample_is_all_there_is(noisy):
    kernels = tm.tangent(network(), *noisy, sample=10_000)
    assert half_samples(kernels) == ()
    assert set(unseen(kernels).values()) == {0.0}
    told = kernels.forecast(tm.Recipe(lr=0.05, steps=STEPS, batch=None, loss=tm.Square()))["loss"].sel(time=STEPS)
    np.testing.assert_allclose(told, _losses(kernels, kernels.course(*_as_asked())), rtol=1e-12)


def test_a_group_that_is_wholly_in_the_sample_is_left_as_it_is(noisy):
    rare = noisy[0].take(
        np.concatenate([np.flatnonzero(noisy[0].codes == 0), np.flatnonzero(noisy[0].codes == 1)[:40]])
    )
    kernels = tm.tangent(network(), rare, noisy[1], sample=200)
    assert unseen(kernels)["b"] == 0.0 < unseen(kernels)["a"]
    told = (
        kernels.forecast(tm.Recipe(lr=0.05, steps=STEPS, batch=None, loss=tm.Square()))["loss"].sel(time=STEPS).values
    )
    alone = _losses(kernels, kernels.course(*_as_asked()))
    assert told[1] == pytest.approx(alone[1], rel=1e-12)
    assert told[0] < alone[0] - 0.01


@pytest.mark.parametrize("sizes", [(7, 4), (50, 1), (2, 2)])
def test_halves_part_every_group(sizes):
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], [40 * n for n in sizes])
    data = tm.GroupedData(rng.normal(size=(len(group), 3)), rng.choice([-1, 1], len(group)), group)
    chosen = np.concatenate([np.arange(sizes[0]), 40 * sizes[0] + np.arange(sizes[1])])
    kernels = tm.tangent(network(3), data.take(chosen), data)
    # As if the sample were a fortieth of the data.
    object.__setattr__(kernels, "sizes", kernels.sizes * 40)
    first, second = half_samples(kernels)
    for one in (first, second):
        assert set(np.unique(one.sample.codes)) == {0, 1}
        assert one.kernel.shape == (len(one.sample),) * 2
        mass = np.bincount(one.sample.codes, one.stands_for) / one.stands_for.sum()
        np.testing.assert_allclose(mass, kernels.shares, rtol=1e-12)
    if 1 not in sizes:
        both = np.concatenate([first.sample.x, second.sample.x])
        np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(kernels.sample.x, axis=0))


def run_of(values, name="error"):
    values = np.asarray(values, dtype=float)
    coords = {"time": np.arange(len(values)), "group": ["a", "b"]}
    return Trajectory({name: xr.DataArray(values, dims=("time", "group"), coords=coords)}, "step", Origin("forecast"))


def test_corrected_shares_stay_shares_and_a_half_that_diverges_is_ignored():
    whole = run_of([[0.5, 0.5], [0.05, 0.95], [0.2, 0.2]])
    parts = [run_of([[0.5, 0.5], [0.2, 0.85]]), run_of([[0.5, 0.5], [0.2, 0.85]])]
    found = corrected(whole, parts, {"a": 1.0, "b": 1.0})["error"]
    np.testing.assert_allclose(found, [[0.5, 0.5], [0.0, 1.0], [0.2, 0.2]])
    half = corrected(whole, parts, {"a": 0.2})["error"]
    np.testing.assert_allclose(half[1], [0.02, 0.95])


@pytest.mark.slow
def test_a_loss_of_several_classes_is_corrected_as_well(noisy):
    train, held_out = (
        tm.GroupedData(part.x[:, :6], np.digitize(part.x[:, 0] + part.x[:, 10], [-1, 1]), part.codes)
        for part in (one.take(np.arange(1500)) for one in noisy)
    )
    question = Question(PlainSGD(0.5, 30), tm.losses.CrossEntropy(), None, None, None)
    model, asked = network(6, 3), (question, np.array([0, 30]))
    goal = np.eye(3)[held_out.y.astype(int)]
    exact = group_losses(
        *_outputs(tm.tangent(model, train, held_out), asked), goal, held_out, tm.losses.CrossEntropy()
    )[0]
    plain, better = [], []
    for seed in range(20):
        kernels = tm.tangent(model, train, held_out, sample=120, seed=seed)
        told = kernels.forecast(tm.Recipe(lr=0.5, steps=30, batch=None, loss=tm.losses.CrossEntropy()))["loss"].sel(
            time=[0, 30]
        )
        np.testing.assert_allclose(told[0], exact[0], rtol=1e-6)  # nothing to correct before training
        better.append(told.values[1] - exact[1])
        alone = group_losses(*_outputs(kernels, asked), goal, held_out, tm.losses.CrossEntropy())[0]
        plain.append(alone[1] - exact[1])
    assert (np.abs(np.mean(better, axis=0)) < 0.5 * np.abs(np.mean(plain, axis=0))).all()


def _outputs(kernels, asked):
    return (kernels.by_point(kernels.course(*asked).outputs),)
