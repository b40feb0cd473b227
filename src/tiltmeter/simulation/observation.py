"""Observation: what all seeds show at one time, and all looks of a run as curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Observation:
    """Overlaps of S seeds, G groups and K units: M, R (S, G, K), Q (S, K, K), second layer (S, K), bias (S).

    `training_loss` and `training_error` (S, G) on a finite data set; None with fresh samples.
    """

    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    second: np.ndarray
    bias: np.ndarray
    training_loss: np.ndarray | None = None
    training_error: np.ndarray | None = None

    def blanked(self, where: np.ndarray) -> Observation:
        """NaN for the seeds `where`: they have diverged."""
        if not where.any():
            return self
        parts = (self.M, self.R, self.Q, self.second, self.bias, self.training_loss, self.training_error)
        return Observation(*(None if part is None else _blank(part, where) for part in parts))  # type: ignore[arg-type]


def _blank(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy[where] = np.nan
    return copy


def stack_observations(looks: list[Observation]) -> Observation:
    """All looks with a time axis after the seeds: M (S, T, G, K) and so on."""

    def over(name: str) -> np.ndarray | None:
        parts = [getattr(look, name) for look in looks]
        return None if parts[0] is None else np.stack(parts, axis=1)

    names = ("M", "R", "Q", "second", "bias", "training_loss", "training_error")
    return Observation(*(over(name) for name in names))  # type: ignore[arg-type]
