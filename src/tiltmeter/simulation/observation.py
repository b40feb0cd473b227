"""Observation: what all seeds show at one time, and all looks of a run as curves."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np


@dataclass(frozen=True)
class Observation:
    """Overlaps of S seeds, G groups and K units: M, R (S, G, K), Q (S, K, K), second layer (S, K), bias (S).

    `training_loss` and `training_error` (S, G) on a finite data set; None with fresh samples. `pull` (S, G) of every
    group under a law; None without one.
    """

    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    second: np.ndarray
    bias: np.ndarray
    training_loss: np.ndarray | None = None
    training_error: np.ndarray | None = None
    pull: np.ndarray | None = None

    def with_pull(self, pull: np.ndarray) -> Observation:
        """The same look, with the pulls of a law."""
        return replace(self, pull=pull.copy())

    def blanked(self, where: np.ndarray) -> Observation:
        """NaN for the seeds `where`: they have diverged."""
        if not where.any():
            return self
        parts = (getattr(self, field.name) for field in fields(self))
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

    return Observation(*(over(field.name) for field in fields(Observation)))  # type: ignore[arg-type]
