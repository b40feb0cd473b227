"""random_streams: what draws random numbers here, and leaves those of the caller as they were."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def kept_streams() -> Iterator[None]:
    """Afterwards the global generators of Python, NumPy and torch are where they were before.

    >>> before = torch.get_rng_state()
    >>> with kept_streams():
    ...     _ = torch.manual_seed(3), torch.rand(2)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002
