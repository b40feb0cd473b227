"""Settings that the tests of measures share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Operations this small are slower on several threads, much slower on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
