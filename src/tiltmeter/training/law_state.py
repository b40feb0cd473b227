"""LawState: what the laws of a training need beside weights and optimiser to go on after a break."""

from __future__ import annotations

from typing import Any

from tiltmeter.training.steering import Steering


class LawState:
    """The weights of scouts, the state of the steering, and that of a law's own optimiser."""

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
