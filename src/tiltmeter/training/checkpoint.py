"""Checkpoint: everything that is needed to resume a training exactly, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from tiltmeter.recipe.rates import Scheduling
from tiltmeter.record import When
from tiltmeter.record.directory.archives import read_checkpoint
from tiltmeter.record.directory.atomic_files import explained, write_all, written_aside
from tiltmeter.record.directory.small_files import CHECKPOINT
from tiltmeter.record.when import missing_evaluations
from tiltmeter.shown_text import shortened
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_loop import StackedObservations
from tiltmeter.training.steering import Steering


class InterventionState:
    """The weights of scouts, the state of the steering, and that of an intervention's own optimiser."""

    def __init__(self, scouts: tuple[dict[str, Any], ...], steering: Steering | None, stepper: Any) -> None:
        self._scouts, self._steering, self._stepper = scouts, steering, stepper

    def to_save(self) -> dict[str, Any]:
        """What goes into the checkpoint."""
        found: dict[str, Any] = {}
        if self._scouts:
            found["scouts"] = list(self._scouts)
        if self._steering is not None:
            found["steering"] = self._steering.state_dict()
        if hasattr(self._stepper, "state_dict"):
            found["stepper"] = self._stepper.state_dict()
        return found

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what was saved."""
        if self._steering is not None:
            self._steering.load_state_dict(kept["steering"])
        if hasattr(self._stepper, "load_state_dict"):
            self._stepper.load_state_dict(kept["stepper"])


#: The file, in the run directory.
NAME = CHECKPOINT


class _Part:
    """A file that remembers why it could not be written: torch's own sentence does not say it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            write_all(self._descriptor, data)
        except OSError as error:
            self.error = error
            raise
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""


def _write(directory: Path, state: dict[str, Any]) -> None:
    """Write to another file, sync and rename it: after a kill or a power cut the old file or the new one is there."""
    path = directory / NAME
    try:
        with written_aside(path) as descriptor:
            part = _Part(descriptor)
            try:
                torch.save(state, part)  # type: ignore[arg-type]
            except RuntimeError:
                if part.error is None:
                    raise
                raise part.error from None
    except OSError as error:
        raise explained(error, f"The checkpoint could not be written to {path}: ", " The one before is kept.") from None


def _read(path: Path) -> dict[str, Any]:
    """What a checkpoint holds; a ValueError says that it is damaged."""
    try:
        return read_checkpoint(path)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Delete it to train from the first step again.") from None


#: What may go wrong while parts of a checkpoint are put where they belong.
_MISFITS = (RuntimeError, KeyError, ValueError, TypeError, AttributeError, IndexError)


def _misfit(path: Path, what: str, error: Exception) -> ValueError:
    first = shortened((str(error).strip() or type(error).__name__).splitlines()[0])
    return ValueError(f"{path} does not fit {what}: {first}")


def save_checkpoint(
    directory: Path,
    step: int,
    model: nn.Module,
    optimiser: Optimizer,
    scheduling: Scheduling,
    laws: Mapping[str, Any] | None = None,
) -> None:
    """Everything that a training needs to go on from here. `laws` is the state of the interventions."""
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
    _write(directory, state)


def kept_by_interventions(directory: Path | None) -> dict[str, Any]:
    """What interventions kept in the checkpoint of this directory; nothing where there is none."""
    if directory is None or not (directory / NAME).exists():
        return {}
    return dict(_read(directory / NAME).get("laws", {}))


def load_checkpoint(directory: Path, model: nn.Module, optimiser: Optimizer, scheduling: Scheduling) -> int:
    """Restore model, optimiser and torch's random state; return the step, or 0 where there is no checkpoint."""
    path = directory / NAME
    if not path.exists():
        return 0
    state = _read(path)
    try:
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimizer"])
        scheduling.load_state_dict(state.get("scheduling", {}))
        for module, mode in zip(model.modules(), state["modes"], strict=True):
            module.training = mode
        torch.set_rng_state(state["torch"])
        if state["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])
    except _MISFITS as error:
        raise _misfit(path, "this model and optimiser", error) from None
    return int(state["step"])


def refuse_missing(when: When, first: int, step: int, directory: Path) -> None:
    """Raise a ValueError if the checkpoint is ahead of the evaluations, with the choice that there is."""
    missing = missing_evaluations([one for one in when.steps(step - 1) if one >= first] if step > first else [])
    if missing:
        raise ValueError(
            f"The checkpoint in {directory} stands at step {step:,}, and {missing}. Delete {directory / NAME} to train "
            f"from the first step again, to the same weights, or accept what is missing with "
            f"`tm.record.accept_missing({str(directory)!r}, until={step})`."
        )


@dataclass
class StackedCheckpoint:
    """The file of an ensemble, written at the steps that `when` chooses; without a place nothing is written.

    `memory` is what the update remembers from step to step (velocities, moments), `steering` what interventions do.
    """

    place: Path | None
    when: When
    stacked: Stacked
    evaluations: StackedObservations
    memory: dict[str, Any] = field(default_factory=dict)
    steering: nn.Module | None = None

    def __call__(self, step: int) -> None:
        """Write the file, if this is one of its steps."""
        if self.place is None or not self.when(step):
            return
        self.evaluations.sync()
        state = {
            "step": step,
            "parameters": {name: value.detach() for name, value in self.stacked.parameters.items()},
            "buffers": self.stacked.buffers,
            "memory": self.memory,
            "evaluations": self.evaluations.state(),
            "laws": {} if self.steering is None else self.steering.state_dict(),
            "torch": torch.get_rng_state(),
        }
        _write(self.place, state)

    def load(self) -> int:
        """Bring everything to where the file was; its step, or 0 where there is none."""
        path = None if self.place is None else self.place / NAME
        if path is None or not path.exists():
            return 0
        state = _read(path)
        try:
            with torch.no_grad():
                for name, value in {**self.stacked.parameters, **self.stacked.buffers}.items():
                    value.copy_({**state["parameters"], **state["buffers"]}[name])
            self.memory.update(state["memory"])
            self.evaluations.load_state(state["evaluations"])
            if self.steering is not None:
                self.steering.load_state_dict(state["laws"])
            torch.set_rng_state(state["torch"])
        except _MISFITS as error:
            raise _misfit(path, "these models", error) from None
        return int(state["step"])
