"""unfused: transformer layers evaluated operation by operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def unfused(network: nn.Module) -> Iterator[None]:
    """Inside this context, torch does not replace an encoder layer on the CPU by its fused one.

    >>> with unfused(nn.Linear(1, 1)):
    ...     torch.backends.mha.get_fastpath_enabled()
    False

    For layers of 16 to 64 features the fused one takes a third longer. Scores differ in the last digits.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    on_cpu = next((parameter.device.type for parameter in network.parameters()), "cpu") == "cpu"
    torch.backends.mha.set_fastpath_enabled(before and not on_cpu)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
