"""Ladder: the directions of a table in the order in which gradient descent learns them, and what each does to the gap.

Of the half squared error with labels -1 and +1 (or the numbers), the theory of the columns is solved by the
eigendirections of the pooled second moment: a direction with eigenvalue e is learned in a time 1 / e. Taken one after
the other, what each adds to the gap adds up to the gap of the solution.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.preview.features import columns
from tiltmeter.preview.inputs import Inputs
from tiltmeter.shown_text import NotebookText, group_name

if TYPE_CHECKING:
    import pandas as pd

#: Columns that are named for a direction, and directions that are printed.
NAMED, SHOWN = 3, 8


@dataclass(frozen=True)
class Mode:
    """One direction: when it is learned, what it adds to the loss gap, which group pulls it, its largest columns."""

    time: float
    adds: float
    gap: float
    pulled_by: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Ladder(NotebookText):
    """The directions of a table in the order in which they are learned.

    >>> mode = Mode(time=0.5, adds=-0.2, gap=-0.2, pulled_by="a", columns=("age", "hours"))
    >>> print(Ladder("a", "b", 0.0, (mode,)))
    Learned in this order; the loss gap of a minus b begins at +0.000.
          time     adds      gap   direction
           0.5   -0.200   -0.200   age, hours (pulled by a)

    `gap` of a mode is the gap of the half squared error, `group` minus `others`, when this direction and those before
    it are learned; `start` is the gap before training.

    Args:
        group: Group whose loss comes first in the gap.
        others: What it is compared with.
        start: Gap before training.
        modes: The directions, the first learned first.
    """

    group: Hashable
    others: str
    start: float
    modes: tuple[Mode, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row for each direction."""
        import pandas as pd

        return pd.DataFrame([{**vars(mode), "columns": ", ".join(mode.columns)} for mode in self.modes])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        modes = [{**vars(mode), "columns": list(mode.columns)} for mode in self.modes]
        return {"group": str(self.group), "others": self.others, "start": self.start, "modes": modes}

    @classmethod
    def from_json(cls, value: dict[str, Any], group: Hashable) -> Ladder:
        modes = tuple(Mode(**{**mode, "columns": tuple(mode["columns"])}) for mode in value["modes"])
        return cls(group, value["others"], value["start"], modes)

    def __str__(self) -> str:
        lines = [
            f"Learned in this order; the loss gap of {group_name(self.group)} minus {self.others} begins at "
            f"{self.start:+.3f}.",
            "  " + "time".rjust(8) + "adds".rjust(9) + "gap".rjust(9) + "   direction",
        ]
        for mode in self.modes[:SHOWN]:
            named = ", ".join(mode.columns)
            pulled = f" (pulled by {mode.pulled_by})" if mode.pulled_by else ""
            lines.append(f"  {mode.time:8.3g}{mode.adds:+9.3f}{mode.gap:+9.3f}   {named}{pulled}")
        rest = len(self.modes) - SHOWN
        if rest > 0:
            adds = sum(mode.adds for mode in self.modes[SHOWN:])
            lines.append(f"  {'':8}{adds:+9.3f}{self.modes[-1].gap:+9.3f}   {rest} more")
        return "\n".join(lines)


def ladder_of(inputs: Inputs, group: int, other: int | None) -> Ladder:
    """The ladder of one table; several classes have none."""
    if inputs.kind == "classes":
        raise ValueError("A ladder is of one score: two labels or numbers. Found several classes.")
    seen = columns(inputs.train.x)
    train, held = seen.of(inputs.train.x), seen.of(inputs.held_out.x)
    names = (*_names(inputs, train.shape[1] - 1), "the constant (base rate)")
    y, held_y = _signed(inputs, inputs.train.labels), _signed(inputs, inputs.held_out.labels)
    mass = inputs.train.mass
    values, vectors = np.linalg.eigh(train.T @ (mass[:, None] * train))
    order = np.argsort(values)[::-1]
    order = order[values[order] > 1e-9 * values.max()]
    learned, judged = train @ vectors[:, order], held @ vectors[:, order]
    pulls = learned * (mass * y)[:, None]
    size = pulls.sum(axis=0) / values[order]
    by_group = np.stack([pulls[inputs.train.codes == code].sum(axis=0) for code in range(len(inputs.groups))])
    own = inputs.held_out.codes == group
    rest = ~own if other is None else inputs.held_out.codes == other

    def gap(score: np.ndarray) -> float:
        each = 0.5 * (score - held_y) ** 2
        weights = inputs.held_out.mass
        return float(np.average(each[own], weights=weights[own]) - np.average(each[rest], weights=weights[rest]))

    score = np.zeros(len(held))
    before = start = gap(score)
    modes = []
    for place, index in enumerate(order):
        score = score + judged[:, place] * size[place]
        after = gap(score)
        largest = np.argsort(np.abs(vectors[:, index]))[::-1][:NAMED]
        many = [column for column in largest if abs(vectors[column, index]) > 0.2 * abs(vectors[largest[0], index])]
        strongest = int(np.argmax(np.sign(size[place]) * by_group[:, place]))
        modes.append(
            Mode(
                1.0 / float(values[index]),
                after - before,
                after,
                group_name(inputs.groups[strongest]),
                tuple(names[column] for column in many),
            )
        )
        before = after
    others = "all others" if other is None else group_name(inputs.groups[other])
    return Ladder(inputs.groups[group], others, start, tuple(modes))


def _names(inputs: Inputs, count: int) -> tuple[str, ...]:
    if len(inputs.names) == count:
        return inputs.names
    return tuple(f"component {place + 1}" for place in range(count))


def _signed(inputs: Inputs, labels: np.ndarray) -> np.ndarray:
    if inputs.kind == "binary":
        return 2.0 * labels - 1.0
    if inputs.classes:
        low, high = inputs.classes
        return np.asarray((labels - (low + high) / 2) / ((high - low) / 2))
    return labels
