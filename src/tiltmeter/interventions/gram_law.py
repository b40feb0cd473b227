"""Gram laws: pulls computed from the inner products of the groups' mean gradients in the current batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_law import GroupLaw, Seen


@dataclass(frozen=True)
class GramLaw(GroupLaw):
    """A group law that sees the Gram matrix of group gradients and weighs the mean loss of each group in the batch.

    It costs one gradient per group and one more for the sum. Groups without a point in the batch are left out of the
    matrix, because a row of zeros would take a share of the pull.
    """

    sees_gram = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by != "weights":
            raise ValueError(f'{type(self).__name__} weighs gradients of a batch that is drawn: `by` is "weights".')

    @property
    def routes(self) -> tuple[str, ...]:
        return "simulate", "forecast", "train"

    def cost(self, groups: int) -> float:
        return 1.0 + groups / self.every


def gram_of(seen: Seen) -> np.ndarray:
    """The Gram matrix that a law needs."""
    if seen.gram is None:
        raise ValueError("A law of gradients needs their Gram matrix. Found gram = None.")
    return seen.gram
