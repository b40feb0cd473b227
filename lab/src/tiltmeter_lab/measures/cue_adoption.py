"""cue-adoption: which of several cues the decisions follow where the cues disagree (Scimeca et al., ICLR 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.dominoes import dominoes, one_hot_block


@dataclass(frozen=True, eq=False)
class CueAdoption:
    """The share of decisions that follow each cue, among points where all cues disagree.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> easy, hard = np.arange(160) // 80, np.arange(160) % 2
    >>> cells = tm.GroupedData(np.eye(2)[easy], hard, np.stack([easy, hard], axis=1))
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> model.weight.data = 2 * torch.eye(2)
    >>> lab.measure(CueAdoption(("easy", "hard")), model, cells)["cue_adoption"].values.round(6).tolist()
    [1.0, 0.0]

    The groups of `points` (default: the held-out points) are cells: tuples with the label that each cue gives. Make
    them with `dominoes(..., agreement=0, cells=True)` or `GroupedData(frame, "y", ["colour", "shape"])`. All cells have
    equal weight, so the shares add up to at most 1. The null value is one over the number of labels.

    What it does not mean: a high share says which cue the decisions follow, not that the features contain no
    information about the others: see `LastLayerProbe`. It says nothing about points where the cues agree.

    Args:
        names: Names of the cues; empty: numbers.
        points: Points whose groups are tuples of the labels that the cues give; None: the held-out points.
    """

    names: tuple[str, ...] = ()
    points: GroupedData | None = None
    title: ClassVar[str] = "Which cue the decisions follow where cues disagree"
    takes: ClassVar[str] = "Points in groups that are tuples, with the label that each cue gives; a model that decides"
    exact: ClassVar[str] = "On the given cells; up to the sampling error of their points"
    absent: ClassVar[str] = "Cues that are equally easy: none is adopted"

    @classmethod
    def example(cls, seed: int) -> tuple[Self, torch.nn.Module, GroupedData]:
        """Two one-hot blocks of three classes that disagree, and an untrained network."""
        y = np.arange(360) % 3
        block = one_hot_block(y)
        return cls(("first", "second")), mlp(6, (8,), 3), dominoes(block, y, block, y, 0.0, cells=True, seed=seed)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        data = snapshot.data if self.points is None else self.points
        cells = self._cells(data)
        apart = np.array([len(set(cell)) == len(cell) for cell in cells])
        places = np.flatnonzero(apart[data.codes])
        if not len(places):
            raise ValueError("Some points should have cues that all differ. Found none.")
        part = data.take(places)
        seen = snapshot.model
        if self.points is None and snapshot.decision is not None:
            chosen = snapshot.decision[places]
        else:
            chosen = seen.decide(seen.scores(part.tensors()[0]))
        said = np.array([[float(label) for label in cell] for cell in cells])[part.codes]
        weight = 1.0 / np.bincount(part.codes, minlength=len(cells))[part.codes]
        weight /= weight.sum()
        follows = chosen[:, None] == said
        share = weight @ follows
        error = np.sqrt((weight[:, None] ** 2 * (follows - share) ** 2).sum(0))
        cue = {"cue": np.asarray(self.names or [f"cue {i + 1}" for i in range(said.shape[1])])}
        null = np.full(said.shape[1], 1.0 / len(np.unique(said)))
        return {
            name: snapshot.reading(name, values, cue, long_name=meaning, better="neither")
            for name, values, meaning in (
                ("cue_adoption", share, "share of decisions that follow this cue where cues differ"),
                ("cue_adoption_se", error, "its standard error"),
                ("cue_adoption_null", null, "one over the number of labels"),
            )
        }

    def _cells(self, data: GroupedData) -> list[tuple[Any, ...]]:
        cells = list(data.groups)
        if not all(isinstance(cell, tuple) and len(cell) == len(self.names or cell) >= 2 for cell in cells):
            wanted = len(self.names) or "several"
            raise ValueError(
                f"Groups should be tuples, with the label that each of {wanted} cues gives. Found {cells[0]!r}."
            )
        return cells  # type: ignore[return-value]

    def passes(self, snapshot: Snapshot) -> float:
        return 0.0 if self.points is None else len(self.points) / len(snapshot.data)
