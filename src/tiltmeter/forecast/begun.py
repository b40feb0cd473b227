"""Begun: a training on its way, from which a forecast goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Begun:
    """The updates made, the optimiser with its memory, and the state of the schedule."""

    step: int
    optimiser: Any
    schedule: Mapping[str, Any]

    def take_up_groups(self, optimiser: Any) -> None:
        """Give the groups of another optimiser the rates and settings that those of this one have by now."""
        for group, source in zip(optimiser.param_groups, self.optimiser.param_groups, strict=True):
            group |= {key: value for key, value in source.items() if key != "params"}
