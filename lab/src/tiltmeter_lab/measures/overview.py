"""overview: one row for every measure, from its own description."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from tiltmeter.modules.untouched import untouched
from tiltmeter_lab.measures.catalogue import MEASURES, find, forward_passes
from tiltmeter_lab.measures.measure import example_of, snapshot_of


@dataclass(frozen=True)
class Row:
    """One measure; `passes` is the cost of one observation on its own example."""

    name: str
    title: str
    takes: str
    passes: float
    exact: str
    absent: str

    @property
    def cost(self) -> str:
        return f"{self.passes:.3g}"


def rows() -> list[Row]:
    """One row for every measure of the catalogue, in the order of the catalogue.

    >>> [row.cost for row in rows() if row.name == "gradient-pull"]
    ['6']
    """
    found = []
    for name in MEASURES:
        kind = find(name)
        measure, model, data = example_of(kind)
        with warnings.catch_warnings(), untouched(model):
            warnings.simplefilter("ignore")
            passes = forward_passes(measure, snapshot_of(model, data))
        found.append(Row(name, kind.title, kind.takes, passes, kind.exact, kind.absent))
    return found
