"""Rehearsals: the run itself where its batches are known, the same by any means, and nothing of the user's touched."""

import copy
import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast import rehearsal
from tiltmeter.forecast.methods import method_from_json
from tiltmeter.modules.networks import mlp

Rehearsal = tm.methods.Rehearsal
RECIPE = tm.Recipe(partial(torch.optim.AdamW, lr=1e-2), steps=30, batch=16, loss=tm.Logistic())


def data(points=240, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(points, 6)).astype(np.float32)
    group = np.where(np.arange(points) % 3 == 0, "rare", "common")
    y = (np.where(group == "rare", x[:, 1], x[:, 0]) > 0).astype(int)
    return tm.GroupedData(x, y, group).split(0.4)


def network(dropout=False):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 24), nn.ReLU(), *([nn.Dropout(0.3)] if dropout else []), nn.Linear(24, 1))


def same(one, other):
    assert set(one) == set(other)
    for name in one:
        np.testing.assert_array_equal(one[name].values, other[name].values)


@pytest.mark.parametrize("dropout", [False, True])
def test_with_the_run_s_own_order_it_is_the_run_to_the_bit(dropout):
    recipe = tm.Recipe(partial(torch.optim.AdamW, lr=1e-2), steps=30, batch=16, order=3)
    ahead = tm.forecast(network(dropout), *data(), recipe, method=Rehearsal(copies=4), progress=False)
    run = tm.train(network(dropout), *data(), recipe)
    for name in run:
        np.testing.assert_array_equal(ahead[name].values, run[name].values)
    promise = ahead.origin.settings["promise"]
    assert (promise["from"], promise["copies"], promise["reliable_until"]) == (0.0, 1, 30.0)
    np.testing.assert_array_equal(ahead["loss_gap_low"], ahead["loss_gap_high"])


def test_the_method_in_the_origin_repeats_the_forecast_to_the_bit():
    ahead = tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=3), progress=False)
    again = method_from_json(ahead.origin.settings["method"])
    same(ahead, tm.forecast(network(), *data(), RECIPE, method=again, progress=False))


def test_processes_give_the_same_to_the_bit():
    alone = tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=3), progress=False)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        beside = tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=3), executor=executor, progress=False)
    same(alone, beside)


@pytest.mark.slow
def test_dask_workers_give_the_same_to_the_bit():
    distributed = pytest.importorskip("distributed")
    alone = tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=3), progress=False)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        beside = tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=3), executor=client, progress=False)
    same(alone, beside)


class Deadly(nn.Module):
    """A network in whose training the process is killed, once: the file is there until then."""

    def __init__(self, danger):
        super().__init__()
        self.network, self.danger, self.steps = network(), str(danger), 0

    def forward(self, x):
        self.steps += self.training
        if self.steps == 20:
            try:
                os.remove(self.danger)
            except FileNotFoundError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.network(x)


@pytest.mark.slow
def test_a_killed_dask_worker_changes_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    alone = tm.forecast(Deadly(tmp_path / "none"), *data(), RECIPE, method=Rehearsal(copies=4), progress=False)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        danger = tmp_path / "danger"
        danger.touch()
        model = Deadly(danger)
        beside = tm.forecast(model, *data(), RECIPE, method=Rehearsal(copies=4), executor=client, progress=False)
    assert not danger.exists()  # somebody was killed
    same(alone, beside)


def test_what_cannot_be_an_executor():
    with ThreadPoolExecutor(1) as threads, pytest.raises(TypeError, match="threads share torch's random stream"):
        tm.forecast(network(), *data(), RECIPE, method=Rehearsal(), executor=threads)
    with pytest.raises(TypeError, match=r"`executor` should be None, a distributed.Client or an executor"):
        tm.forecast(network(), *data(), RECIPE, method=Rehearsal(), executor=3)


def test_finished_copies_are_taken_up_after_a_kill(tmp_path, monkeypatch):
    whole = tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=3), progress=False)
    trained, original = [], rehearsal.train_model

    def dies(*given, **more):
        if len(trained) == 2:
            raise MemoryError
        trained.append(original(*given, **more))
        return trained[-1]

    monkeypatch.setattr(rehearsal, "train_model", dies)
    with pytest.raises(MemoryError):
        tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=3), to=tmp_path / "ahead", progress=False)
    counted = []
    monkeypatch.setattr(rehearsal, "train_model", lambda *a, **k: counted.append(1) or original(*a, **k))
    ahead = tm.forecast(
        *(network(), *data(), RECIPE), method=Rehearsal(copies=3), to=tmp_path / "ahead", keep="weights", progress=False
    )
    assert len(counted) == 1  # the two that were finished are read
    for name in whole:
        np.testing.assert_array_equal(ahead[name].values, whole[name].values)
    assert tm.load(tmp_path / "ahead") == ahead
    with pytest.raises(FileExistsError):
        tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=3), to=tmp_path / "ahead", progress=False)


def test_trained_copies_are_kept_for_whoever_paid_for_them(tmp_path):
    recipe = tm.Recipe(lr=0.1, steps=20, batch=16, order=0)
    tm.forecast(network(), *data(), recipe, method=Rehearsal(1), to=tmp_path / "a", keep="weights", progress=False)
    own = network()
    tm.train(own, *data(), recipe)
    kept = rehearsal.rehearsed_model(tmp_path / "a", 0, network())
    assert all(torch.equal(one, other) for one, other in zip(kept.parameters(), own.parameters(), strict=True))
    tm.forecast(network(), *data(), recipe, method=Rehearsal(1), to=tmp_path / "b", progress=False)
    with pytest.raises(FileNotFoundError, match="keeps the weights"):
        rehearsal.rehearsed_model(tmp_path / "b", 0, network())


def test_an_interrupt_returns_what_is_finished(monkeypatch, capsys):
    original, calls = rehearsal.train_model, []

    def stops(*given, **more):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(*given, **more)

    monkeypatch.setattr(rehearsal, "train_model", stops)
    ahead = tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=5), progress=False)
    assert ahead.origin.settings["promise"]["copies"] == 3
    assert ahead.origin.settings["calculation"]["interrupted"] == "3 of 5 rehearsals were finished"
    assert "Interrupted: 3 of 5 rehearsals are finished." in capsys.readouterr().err
    calls[:] = [1, 1, 1]
    with pytest.raises(KeyboardInterrupt):
        tm.forecast(network(), *data(), RECIPE, method=Rehearsal(copies=5), progress=False)


def test_other_initial_weights_need_a_function():
    with pytest.raises(ValueError, match="need a function that makes the network"):
        tm.forecast(network(), *data(), RECIPE, method=Rehearsal(vary="weights"))
    ahead = tm.forecast(lambda: mlp(6, (24,)), *data(), RECIPE, method=Rehearsal(3, vary="weights"), progress=False)
    assert ahead.origin.settings["calculation"]["weights"] == "any initial weights"
    runs = [tm.train(mlp(6, (24,)), *data(), RECIPE)["loss"].isel(time=0).values for _ in range(2)]
    assert not np.array_equal(*runs)  # a function that makes another network each time


def state_of(model):
    return (
        {name: value.clone() for name, value in model.state_dict().items()},
        [module.training for module in model.modules()],
        [len(module._forward_hooks) for module in model.modules()],
        [parameter.requires_grad for parameter in model.parameters()],
        torch.get_rng_state(),
        np.random.get_state()[1].copy(),  # noqa: NPY002
    )


def modules(number):
    """Networks of many kinds, drawn by number."""
    rng = np.random.default_rng(number)
    torch.manual_seed(number)
    width = int(rng.choice([8, 16, 24]))
    kind = number % 6
    norm = {0: [], 1: [nn.BatchNorm1d(width)], 2: [nn.LayerNorm(width)], 3: [nn.Dropout(0.2)]}.get(kind, [])
    if kind == 4:
        return nn.utils.parametrizations.weight_norm(nn.Linear(6, 1))
    if kind == 5:
        return nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 8, 3), nn.Flatten(), nn.ReLU(), nn.Linear(32, 1))
    return nn.Sequential(nn.Linear(6, width), *norm, nn.ReLU(), nn.Linear(width, 1))


@pytest.mark.filterwarnings("ignore:The model's outputs are probabilities")
@pytest.mark.parametrize("numbers", [range(12), pytest.param(range(12, 200), marks=pytest.mark.slow)])
def test_the_user_s_network_is_untouched(numbers):
    parts, recipe = data(points=90), tm.Recipe(lr=0.05, steps=3, batch=8)
    for number in numbers:
        model, heard = modules(number), []
        model.train(number % 2 == 0)
        model.register_forward_hook(lambda *given, heard=heard: heard.append(given))
        before = state_of(model)
        tm.forecast(model, *parts, recipe, budget=5.0, progress=False)
        heard_before = len(heard)
        after = state_of(model)
        assert heard_before == 0  # the copies have no hooks
        assert all(torch.equal(value, after[0][name]) for name, value in before[0].items())
        assert before[1:4] == after[1:4]
        assert torch.equal(before[4], after[4])
        assert np.array_equal(before[5], after[5])


def test_points_in_parts():
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(20, 8), nn.Linear(8, 1)

        def forward(self, tokens, mask):
            return self.head((self.table(tokens) * mask[..., None]).sum(1))

    rng = np.random.default_rng(0)
    tokens, mask = rng.integers(0, 20, (200, 5)), rng.integers(0, 2, (200, 5)).astype(np.float32)
    points = tm.GroupedData({"tokens": tokens, "mask": mask}, tokens[:, 0] % 2, np.where(tokens[:, 1] > 9, "a", "b"))
    parts = points.split(0.4)
    torch.manual_seed(0)
    model, recipe = Bag(), tm.Recipe(lr=0.1, steps=10, batch=16, order=0)
    ahead = tm.forecast(model, *parts, recipe, progress=False)
    run = tm.train(copy.deepcopy(model), *parts, recipe)
    np.testing.assert_array_equal(ahead["loss"], run["loss"])
    advice = tm.advise(model, *parts, recipe, {"balanced": tm.interventions.Balanced()}, progress=False)
    assert {row.name for row in advice.ranked} == {"plain", "balanced"}
    advice = tm.advise(model, *parts, recipe, progress=False)
    assert advice.unranked["SelecMix"].startswith("SelecMix makes batches of points that are one tensor.")


def test_an_intervention_that_cannot_take_tokens_is_named_and_the_others_are_tried():
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 20, (200, 5))
    parts = tm.GroupedData(tokens, tokens[:, 0] % 2, np.where(tokens[:, 1] > 9, "a", "b")).split(0.4)
    model = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(40, 1))
    arms = {"mixed": tm.interventions.SelecMix(), "balanced": tm.interventions.Balanced()}
    advice = tm.advise(model, *parts, tm.Recipe(lr=0.1, steps=10, batch=16), arms, progress=False)
    assert advice.unranked["mixed"].startswith("SelecMix mixes points, which should be numbers with a fraction.")
    assert set(advice.runs) == {"plain", "balanced"}


@pytest.mark.parametrize("method", [tm.methods.Twin(share=0.5), tm.methods.Kernel(), "nowcast", "why"], ids=str)
def test_points_in_parts_are_forecast_and_explained_like_points_of_one_array(method):
    """Tokens and mask beside one array that holds both."""

    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.inner, self.head = nn.Embedding(20, 32), nn.Linear(32, 32), nn.Linear(32, 1)

        def forward(self, tokens, mask=None):
            if mask is None:
                tokens, mask = tokens[:, :5].long(), tokens[:, 5:]
            return self.head(torch.relu(self.inner((self.table(tokens) * mask[..., None]).sum(1))))

    rng = np.random.default_rng(0)
    tokens, mask = rng.integers(0, 20, (200, 5)), rng.integers(0, 2, (200, 5)).astype(np.float32)
    group = np.where(tokens[:, 1] > 9, "a", "b")
    both = np.concatenate([tokens, mask], 1).astype(np.float32)
    told = []
    for x in ({"tokens": tokens, "mask": mask}, both):
        points = tm.GroupedData(x, tokens[:, 0] % 2, group).split(0.4)
        torch.manual_seed(0)
        model, recipe = Bag(), tm.Recipe(lr=0.1, steps=10, batch=16, order=0)
        if method == "why":
            told.append(list(tm.tangent(model, *points).why(recipe, step=10).without.values()))
        elif method == "nowcast":
            optimiser = recipe.make_optimiser(model.parameters())
            twin = tm.methods.Twin(share=0.5)
            told.append(tm.nowcast(4, model, *points, recipe, optimiser=optimiser, method=twin)["loss"].values)
        else:
            told.append(tm.forecast(model, *points, recipe, method=method, progress=False)["loss"].values)
    np.testing.assert_allclose(told[0], told[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"copies": 0}, "`copies` should be an integer from 1. Found copies = 0."),
        ({"vary": "seed"}, '`vary` should be "order" or "weights". Found vary = \'seed\'.'),
    ],
)
def test_bad_values(given, said):
    with pytest.raises(ValueError, match=said):
        Rehearsal(**given)


def test_bad_calls():
    with pytest.raises(ValueError, match=r'`keep` should be "weights" or None'):
        tm.forecast(network(), *data(), RECIPE, keep="all")
    with pytest.raises(ValueError, match="`keep` writes weights to the folder"):
        tm.forecast(network(), *data(), RECIPE, keep="weights")
    with pytest.raises(TypeError, match="Found the class Rehearsal: call it"):
        tm.forecast(network(), *data(), RECIPE, method=Rehearsal)


def test_two_held_out_points_name_no_leader():
    """The same limit as for a run: a group of fewer than 20 held-out points is not judged."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 3)).astype("float32")
    y = (x[:, 0] > 0).astype(int)
    group = np.where((np.arange(800) >= 700) | np.isin(np.arange(800), (398, 399)), "b", "a")
    y = np.where(group == "b", 1 - y, y)
    with pytest.warns(UserWarning, match="2"):
        held_out = tm.GroupedData(x[:400], y[:400], group[:400])
    recipe = tm.Recipe(lr=0.1, steps=40, batch=16, order=0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    method = tm.methods.Rehearsal(copies=3)
    ahead = tm.forecast(
        model, tm.GroupedData(x[400:], y[400:], group[400:]), held_out, recipe, method=method, progress=False
    )
    assert tm.leaders(ahead).headline.pair is None
