"""One thread for small work: inside our loops only, restored afterwards, and never against the user's own choice."""

import os

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter import threads


@pytest.fixture
def several(monkeypatch):
    """A machine of three cores whose user has chosen nothing."""
    for name in threads.CHOSEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield monkeypatch
    torch.set_num_threads(before)


def test_inside_one_and_afterwards_as_before(several):
    with threads.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
    with pytest.raises(KeyError), threads.one_thread():
        raise KeyError
    assert torch.get_num_threads() == 3
    with threads.one_thread(small=False):
        assert torch.get_num_threads() == 3


def test_the_user_s_choice_wins(several):
    several.setenv("OMP_NUM_THREADS", "3")
    with threads.one_thread():
        assert torch.get_num_threads() == 3
    several.delenv("OMP_NUM_THREADS")
    several.setattr(os, "cpu_count", lambda: 64)  # three of 64: somebody has chosen that
    several.setattr(threads, "_cores", lambda: 64)
    with threads.one_thread():
        assert torch.get_num_threads() == 3


def test_what_is_small():
    assert threads.small_steps(nn.Linear(100, 100), 64)
    assert not threads.small_steps(nn.Linear(1000, 1000), 64)
    assert not threads.small_steps(nn.Conv2d(32, 64, 3), 64)


def test_small_trainings_are_the_same_on_any_number_of_cores(several):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 20)).astype("float32")
    data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), rng.choice(["a", "b"], 400)).split(0.5)

    def weights(cores):
        several.setattr(os, "cpu_count", lambda: cores)
        torch.set_num_threads(cores)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
        tm.train(model, *data, tm.Recipe(lr=0.1, steps=30, batch=64))
        return torch.cat([one.flatten() for one in model.parameters()])

    assert torch.equal(weights(1), weights(3))
