"""StackedCheckpoint: everything that an ensemble needs to go on as if nothing had happened, in one file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tiltmeter.record import When
from tiltmeter.training.checkpoint import NAME
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_observations import StackedObservations


@dataclass
class StackedCheckpoint:
    """The file of an ensemble, written at the steps that `when` chooses; without a place nothing is written.

    `memory` is what the update remembers from step to step (velocities, moments), `steering` what interventions do.
    """

    place: Path | None
    when: When
    stacked: Stacked
    looks: StackedObservations
    memory: dict[str, Any] = field(default_factory=dict)
    steering: nn.Module | None = None

    def __call__(self, step: int) -> None:
        """Write aside, then rename: a kill leaves the old file or the new one, never half of one."""
        if self.place is None or not self.when(step):
            return
        state = {
            "step": step,
            "parameters": {name: value.detach() for name, value in self.stacked.parameters.items()},
            "buffers": self.stacked.buffers,
            "memory": self.memory,
            "looks": self.looks.state(),
            "laws": {} if self.steering is None else self.steering.state_dict(),
            "torch": torch.get_rng_state(),
        }
        aside = self.place / f"{NAME}.aside"
        torch.save(state, aside)
        os.replace(aside, self.place / NAME)

    def load(self) -> int:
        """Bring everything to where the file was; its step, or 0 where there is none."""
        path = None if self.place is None else self.place / NAME
        if path is None or not path.exists():
            return 0
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            with torch.no_grad():
                for name, value in {**self.stacked.parameters, **self.stacked.buffers}.items():
                    value.copy_({**state["parameters"], **state["buffers"]}[name])
        except (RuntimeError, KeyError, ValueError) as error:
            first = str(error).strip().splitlines()[0]
            raise ValueError(f"{path} does not fit these models: {first}") from None
        self.memory.update(state["memory"])
        self.looks.load_state(state["looks"])
        if self.steering is not None:
            self.steering.load_state_dict(state["laws"])
        torch.set_rng_state(state["torch"])
        return int(state["step"])
