"""Reweighed: weights on pairs of group and label that make the label independent of the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import DataIntervention


@dataclass(frozen=True)
class Reweighed(DataIntervention):
    """The loss of a point of group g and label y counts p(g) p(y) / p(g, y) times: Kamiran and Calders (2012).

    >>> import tiltmeter as tm
    >>> group, y = ["a"] * 60 + ["b"] * 40, [1] * 45 + [0] * 15 + [1] * 10 + [0] * 30
    >>> weights = Reweighed().data(tm.GroupedData(np.zeros((100, 1)), y, group), None).weights
    >>> weights[[0, 45, 60, 70]].round(2).tolist()
    [0.73, 1.8, 2.2, 0.6]

    Groups keep their weight, and all get the base rate of all points together. The model does not need the group when
    it is used. A network that fits all its training points undoes it, and base rates of the world stay as they are.
    """

    cannot = "make rates equal: it does not look at decisions"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scout:
            raise ValueError(f"`scout` of Reweighed should be 0: it asks no model. Found scout = {self.scout}.")

    def data(self, data: Any, snapshot: Any) -> Any:  # noqa: ARG002
        labels, places = np.unique(data.y, return_inverse=True)
        if len(labels) > len(data) / 10:
            raise ValueError(
                f"Reweighed needs labels that are classes. Found {len(labels)} values of {len(data)} points."
            )
        given = np.ones(len(data)) if data.weights is None else data.weights
        cells = np.zeros((len(data.groups), len(labels)))
        np.add.at(cells, (data.codes, places), given)
        independent = cells.sum(1, keepdims=True) * cells.sum(0, keepdims=True) / cells.sum()
        factors = np.divide(independent, cells, out=np.ones_like(cells), where=cells > 0)
        return data.with_weights(given * factors[data.codes, places])
