"""CorrectedControl: group losses of all training data as a function of pulls, from a sample and its halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.forecast.kernel.kernel_control import KernelControl
from tiltmeter.forecast.kernel.question import Question
from tiltmeter.forecast.kernel.sample_correction import unseen
from tiltmeter.forecast.kernel.tangent import Tangent


@dataclass(frozen=True, eq=False)
class CorrectedControl:
    """`whole + left_out (whole - mean of the halves)`, losses and gradients alike; without halves, the sample's."""

    whole: KernelControl
    halves: tuple[KernelControl, ...]
    left_out: np.ndarray

    @classmethod
    def of(cls, tangent: Tangent, halves: Sequence[Tangent], question: Question, looks: np.ndarray) -> CorrectedControl:
        """Of constant pulls over the whole training."""
        starts = np.zeros(1, dtype=int)
        whole, *parts = (KernelControl.of(one, question, looks, starts) for one in (tangent, *halves))
        left = unseen(tangent)
        return cls(whole, tuple(parts), np.asarray([left.get(group, 0.0) for group in tangent.look.groups]))

    @property
    def shares(self) -> np.ndarray:
        return self.whole.shares

    @property
    def pieces(self) -> int:
        return self.whole.pieces

    def losses(self, P: np.ndarray) -> tuple[np.ndarray, Any]:
        """Group losses (looks, G), and the states of the sample and its halves."""
        (found, own), *others = (one.losses(P) for one in (self.whole, *self.halves))
        if others:
            found = found + self.left_out * (found - np.mean([losses for losses, _ in others], axis=0))
        return np.maximum(0.0, found), (own, [states for _, states in others])

    def gradient(self, P: np.ndarray, states: Any, slopes: np.ndarray) -> np.ndarray:
        """What a function with gradient `slopes` (looks, G) in the losses changes with P."""
        own, others = states
        if not others:
            return self.whole.gradient(P, own, slopes)
        found = self.whole.gradient(P, own, (1.0 + self.left_out) * slopes)
        for half, one in zip(self.halves, others, strict=True):
            found = found - half.gradient(P, one, self.left_out * slopes / len(others))
        return found
