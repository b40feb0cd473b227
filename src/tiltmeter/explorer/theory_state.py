"""Theory state: the numbers of the theory page, as they stand in its address."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tiltmeter.theory.problem import cases
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.full_batch import Flow
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.teacher_mixture import teacher_mixture

_CASES = (
    cases.centred_crossing,
    cases.three_phases,
    cases.spurious_correlation,
    cases.no_crossing,
    cases.no_bias,
)


def presets() -> list[dict[str, Any]]:
    """Name, first sentence and numbers of every named case, as the page's theory takes them.

    >>> [one["name"] for one in presets()][:2]
    ['centred crossing', 'three phases']
    """
    found = []
    for make in _CASES:
        problem, sgd, times = make()
        gram = problem.gram.values
        shift = float(gram[0, 0])
        alignment = [float(gram[0, 2 + g]) / shift**0.5 if shift > 0 else 0.0 for g in (0, 1)]
        found.append(
            {
                "name": make.__name__.replace("_", " "),
                "about": " ".join((make.__doc__ or "").split("\n\n")[0].split()),
                "state": {
                    "rho": float(problem.weight.values[0]),
                    "shift": shift,
                    "variance": problem.variance.values.tolist(),
                    "overlap": float(gram[2, 3]),
                    "alignment": alignment,
                    "label_bias": problem.label_bias.values.tolist(),
                    "lr": float(sgd.lr),  # type: ignore[arg-type]
                    "weights": [1.0, 1.0],
                    "until": float(times[-1]),
                },
            }
        )
    return found


Pair = tuple[float, float]
Triple = tuple[float, float, float]
THIRD = "third"
FIRST, EVALUATIONS = 0.01, 160


@dataclass(frozen=True)
class TheoryState:
    """One setting of the sliders.

    >>> state = TheoryState.from_query({"rho": "0.7", "shift": "4", "alignment": "0.5,-0.1"})
    >>> state.shift_overlap
    (1.0, -0.2)

    `alignment` is the cosine between the shift and each teacher. With `samples` the student is trained on a fixed set
    of so many examples per dimension, by gradient flow; a share `flips` of each group has the wrong label. `third` adds
    a third group, with its mean at the origin: its share, its variance, and the overlap of its teacher with the others.
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
    third: Triple | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> TheoryState:
        """The state that an address asks for; what it does not name is as in the first preset."""
        known = {field.name: field.default for field in fields(cls)}
        state = cls()
        for name, text in query.items():
            if name in known:
                count = 3 if name == "third" else 2 if isinstance(known[name], tuple) else 1
                state = replace(state, **{name: _numbers(name, text, count)})  # type: ignore[arg-type]
        if not FIRST < state.until <= 1e6:
            raise ValueError(f"`until` should lie between {FIRST} and a million. Found until = {state.until:g}.")
        if state.third is not None and state.samples is not None:
            raise ValueError("A third group is shown for fresh examples only: leave out `samples`.")
        return state

    @property
    def shift_overlap(self) -> Pair:
        root = self.shift**0.5 if self.shift > 0 else 0.0
        return self.alignment[0] * root, self.alignment[1] * root

    @property
    def problem(self) -> Mixture:
        two = teacher_mixture(
            self.rho, self.shift, self.variance, self.overlap, self.shift_overlap, self.label_bias
        )  # fmt: skip
        return two if self.third is None else _with_third(two, *self.third)

    @property
    def training(self) -> SGD | Flow:
        weights: dict[Hashable, Any] | None = (
            None if self.weights == (1.0, 1.0) else dict(zip("+-", self.weights, strict=True))
        )
        if weights is not None and self.third is not None:
            weights[THIRD] = 1.0
        return SGD(lr=self.lr, weights=weights) if self.samples is None else Flow(lr=self.lr, weights=weights)

    @property
    def data(self) -> Fixed | None:
        if self.samples is None:
            return None
        return Fixed(self.samples, dict(zip("+-", self.flips, strict=True)) if any(self.flips) else None)

    @property
    def times(self) -> np.ndarray:
        return np.geomspace(FIRST, self.until, EVALUATIONS)


def _with_third(two: Mixture, share: float, variance: float, overlap: float) -> Mixture:
    if not 0 < share < 1:
        raise ValueError(f"`third` should begin with a share strictly between 0 and 1. Found {share:g}.")
    gram = np.zeros((6, 6))  # the means of three groups, then their teachers
    kept = [0, 1, 3, 4]
    gram[np.ix_(kept, kept)] = two.gram.values
    gram[5, 3:5] = gram[3:5, 5] = overlap
    gram[5, 5] = 1.0
    shares: dict[Hashable, Any] = {group: (1 - share) * two.weight.sel(group=group).item() for group in two.groups}
    spread: dict[Hashable, Any] = {group: two.variance.sel(group=group).item() for group in two.groups}
    bias: dict[Hashable, Any] = {group: two.label_bias.sel(group=group).item() for group in two.groups}
    return Mixture({**shares, THIRD: share}, {**spread, THIRD: variance}, gram, {**bias, THIRD: 0.0})


def _numbers(name: str, text: str, count: int) -> float | Pair | Triple:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != count or not np.isfinite(values).all():
        wanted = {1: "a number", 2: "two numbers, as 1,2", 3: "three numbers, as 0.2,1,0.5"}[count]
        raise ValueError(f"`{name}` should be {wanted}. Found {name} = {text[:40]!r}.")
    return values if count > 1 else values[0]  # type: ignore[return-value]
