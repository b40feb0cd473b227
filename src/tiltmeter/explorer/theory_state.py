"""Theory state: the numbers of the theory page, as they stand in its address."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tiltmeter.problem.fixed import Fixed
from tiltmeter.problem.full_batch import Flow
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.teacher_mixture import teacher_mixture

Pair = tuple[float, float]
FIRST, LOOKS = 0.01, 160


@dataclass(frozen=True)
class TheoryState:
    """One setting of the sliders.

    >>> state = TheoryState.from_query({"rho": "0.7", "shift": "4", "alignment": "0.5,-0.1"})
    >>> state.shift_overlap
    (1.0, -0.2)

    `alignment` is the cosine between the shift and each teacher. With `samples` the student is trained on a fixed set
    of so many examples per dimension, by gradient flow; a share `flips` of each group has the wrong label.
    """

    rho: float = 0.8
    shift: float = 0.0
    variance: Pair = (0.5, 1.5)
    overlap: float = 0.5
    alignment: Pair = (0.0, 0.0)
    label_bias: Pair = (0.0, 0.0)
    lr: float = 0.1
    weights: Pair = (1.0, 1.0)
    until: float = 200.0
    samples: float | None = None
    flips: Pair = (0.0, 0.0)

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> TheoryState:
        """The state that an address asks for; what it does not name is as in the first preset."""
        known = {field.name: field.default for field in fields(cls)}
        state = cls()
        for name, text in query.items():
            if name in known:
                state = replace(state, **{name: _number(name, text, isinstance(known[name], tuple))})  # type: ignore[arg-type]
        if not FIRST < state.until <= 1e6:
            raise ValueError(f"`until` should lie between {FIRST} and a million. Found until = {state.until:g}.")
        return state

    @property
    def shift_overlap(self) -> Pair:
        root = self.shift**0.5 if self.shift > 0 else 0.0
        return self.alignment[0] * root, self.alignment[1] * root

    @property
    def problem(self) -> Mixture:
        return teacher_mixture(
            self.rho, self.shift, self.variance, self.overlap, self.shift_overlap, self.label_bias
        )  # fmt: skip

    @property
    def training(self) -> SGD | Flow:
        weights: dict[Hashable, Any] | None = (
            None if self.weights == (1.0, 1.0) else dict(zip("+-", self.weights, strict=True))
        )
        return SGD(lr=self.lr, weights=weights) if self.samples is None else Flow(lr=self.lr, weights=weights)

    @property
    def data(self) -> Fixed | None:
        if self.samples is None:
            return None
        return Fixed(self.samples, dict(zip("+-", self.flips, strict=True)) if any(self.flips) else None)

    @property
    def times(self) -> np.ndarray:
        return np.geomspace(FIRST, self.until, LOOKS)


def _number(name: str, text: str, pair: bool) -> float | Pair:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != (2 if pair else 1) or not np.isfinite(values).all():
        raise ValueError(
            f"`{name}` should be {'two numbers, as 1,2' if pair else 'a number'}. Found {name} = {text[:40]!r}."
        )
    return (values[0], values[1]) if pair else values[0]
