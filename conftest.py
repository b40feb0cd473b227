"""What all tests share: chance is drawn the same way every time, and torch keeps to one thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def pytest_addoption(parser):
    parser.addoption("--torch-seed", type=int, default=0, help="where torch's global generator starts in every test")


@pytest.fixture(autouse=True)
def same_initial_weights(request):
    """Texts and tests that make a network without a seed of their own get the same one in any order, on any worker."""
    torch.manual_seed(request.config.getoption("--torch-seed"))


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Operations this small are slower on several threads, much slower on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture
def run_async():
    """Run a coroutine on a thread of its own: the browser of an earlier test may keep a loop running on this one."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda coroutine: thread.submit(asyncio.run, coroutine).result()
