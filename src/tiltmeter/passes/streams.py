"""Random streams: save and restore the state of all global random generators."""

from __future__ import annotations

import random
from typing import Any

import torch

from tiltmeter.passes.numpy_stream import numpy_state, put_numpy_back


def streams() -> dict[str, Any]:
    """The state of the global generators of Python, NumPy and torch, on every device in use."""
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": numpy_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_initialized() and torch.cuda.is_available():  # type: ignore[no-untyped-call]
        state["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        state["mps"] = torch.mps.get_rng_state()
    return state


def put_back(state: dict[str, Any]) -> None:
    """Restore this state, so that every stream continues from there."""
    random.setstate(state["python"])
    put_numpy_back(state["numpy"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "mps" in state:
        torch.mps.set_rng_state(state["mps"])
