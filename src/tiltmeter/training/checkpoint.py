"""Checkpoint: everything that is needed to resume a training exactly, in one file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from tiltmeter.recipe.rates import Scheduling

#: The file, in the run directory.
NAME = "checkpoint.pt"


def save_checkpoint(
    directory: Path,
    step: int,
    model: nn.Module,
    optimiser: Optimizer,
    scheduling: Scheduling,
    laws: Mapping[str, Any] | None = None,
) -> None:
    """Write to another file, then rename it: after a kill the old file or the new one is there, never half of one.

    `laws` is the state of the interventions.
    """
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    state = {
        "step": step,
        "model": model.state_dict(),
        "modes": [module.training for module in model.modules()],
        "optimizer": optimiser.state_dict(),
        "scheduling": scheduling.state_dict(),
        "torch": torch.get_rng_state(),
        "cuda": cuda,
        "laws": dict(laws or {}),
    }
    aside = directory / f"{NAME}.aside"
    torch.save(state, aside)
    os.replace(aside, directory / NAME)


def kept_by_laws(directory: Path | None) -> dict[str, Any]:
    """What interventions kept in the checkpoint of this directory; nothing where there is none."""
    if directory is None or not (directory / NAME).exists():
        return {}
    found = torch.load(directory / NAME, map_location="cpu", weights_only=True)
    return dict(found.get("laws", {}))


def load_checkpoint(directory: Path, model: nn.Module, optimiser: Optimizer, scheduling: Scheduling) -> int:
    """Restore model, optimiser and torch's random state; return the step, or 0 where there is no checkpoint."""
    path = directory / NAME
    if not path.exists():
        return 0
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimizer"])
        scheduling.load_state_dict(state.get("scheduling", {}))
    except (RuntimeError, KeyError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ValueError(f"{path} does not fit this model and optimiser: {first}") from None
    for module, mode in zip(model.modules(), state["modes"], strict=True):
        module.training = mode
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    return int(state["step"])
