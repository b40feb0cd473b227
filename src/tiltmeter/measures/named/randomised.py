"""Randomised: what a model still gets right when some features come from other points (Shah et al., 2020)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.measures.shared.exchanged_features import Kept, Subspace, auc, kept, permutation
from tiltmeter.measures.snapshot import Snapshot

#: Without names, the coordinates are cut into at most so many consecutive blocks.
BLOCKS = 16
#: What is exchanged: nothing, the features of the set, or all others.
PARTS = np.array(["none", "set", "rest"])


@dataclass(frozen=True)
class Randomised:
    """Accuracy, and AUC for two labels, after features of a set come from other points: `randomised_accuracy`, `_auc`.

    `features` names sets of coordinates of the flattened points, or subspaces by rows that span them (k, d); without
    it, blocks of consecutive coordinates. With a `basis` (orthonormal rows) coordinates are those along its rows. All
    coordinates of a set are exchanged by *one* order of the points, so that their joint law stays and only their tie
    to the label and to the rest is cut; `draws` orders are averaged. `part` says what was exchanged: "none", the
    "set", or the "rest", everything but the set.

    Chance after exchanging the set says that the model uses it and nothing else that suffices; no loss after exchanging
    the rest says that it needs nothing else. It does *not* say that the other features carry no information, nor that
    the model is wrong to use these. Exchanged points may be unlike any in the data: a fall can come from that alone.
    Use the AUC where there is one: an exchange may shift scores past the threshold and cost accuracy, not order.
    """

    title: ClassVar[str] = "accuracy and AUC when chosen features come from other points"
    takes: ClassVar[str] = "any model that decides; tokens too, if sets are coordinates; AUC needs two labels"
    exact: ClassVar[str] = "a model of one coordinate: 0.5 with it exchanged, unchanged with the rest exchanged"
    absent: ClassVar[str] = "features that are equally simple share the work: no set alone brings chance"
    weighs: ClassVar[bool] = True

    features: Mapping[str, Any] | None = None
    basis: np.ndarray | None = None
    draws: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < 1 or self.draws != int(self.draws):
            raise ValueError(f"`draws` should be a whole number of at least 1. Found draws = {self.draws}.")
        if self.features is not None and not isinstance(self.features, Mapping):
            raise TypeError(f"`features` should map names to sets. Found {type(self.features).__name__}.")
        rows = None if self.basis is None else np.asarray(self.basis, dtype=float)
        # Single precision rounds a product of rows to 1e-7 of their length.
        if rows is not None and (rows.ndim != 2 or not np.allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-4)):
            raise ValueError("`basis` should have orthonormal rows, as `random_basis` gives. Found others.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        sets = self.subspaces(snapshot)
        x = snapshot.model.x
        plain = kept(snapshot, x)
        accuracy, null, area = (np.zeros((len(sets), 3)) for _ in range(3))
        for row, space in enumerate(sets.values()):
            for draw in range(self.draws):
                other = x[permutation(len(x), self.seed + draw)]
                cases = (plain, kept(snapshot, space.exchanged(x, other)), kept(snapshot, space.exchanged(other, x)))
                for column, case in enumerate(cases):
                    accuracy[row, column] += case.accuracy / self.draws
                    null[row, column] += case.chance / self.draws
                    area[row, column] += _area(snapshot, case) / self.draws
        coords = {"feature": np.array(list(sets)), "part": PARTS}
        found = {
            "randomised_accuracy": (accuracy, "accuracy with a part of the features from other points", "higher"),
            "randomised_accuracy_null": (null, "accuracy of decisions that know nothing of the label", "neither"),
        }
        if plain.ranking is not None:
            found["randomised_auc"] = (area, "AUC with a part of the features from other points", "higher")
            found["randomised_auc_null"] = (np.full_like(area, 0.5), "AUC of scores without information", "neither")
        return {
            name: snapshot.reading(name, values, coords, long_name=meaning, better=better)
            for name, (values, meaning, better) in found.items()
        }

    def passes(self, snapshot: Snapshot) -> float:
        """One pass over the points, and two for each set and order."""
        return 1.0 + 2.0 * self.draws * len(self.subspaces(snapshot))

    def subspaces(self, snapshot: Snapshot) -> dict[str, Subspace]:
        """The sets by name, ready for exchange."""
        d = math.prod(snapshot.model.x.shape[1:])
        if self.basis is not None and np.shape(self.basis) != (d, d):
            raise ValueError(f"`basis` should be {d} rows of {d}. Found shape {np.shape(self.basis)}.")
        given = self.features
        if given is None:
            cuts = np.array_split(np.arange(d), min(d, BLOCKS))
            given = {f"{cut[0]}" if len(cut) == 1 else f"{cut[0]}-{cut[-1]}": cut for cut in cuts}
        if not given:
            raise ValueError("`features` should name at least one set. Found none.")
        return {str(name): self._subspace(str(name), chosen, d) for name, chosen in given.items()}

    def _subspace(self, name: str, chosen: Any, d: int) -> Subspace:
        array = np.atleast_1d(np.asarray(chosen))
        if array.ndim == 2:
            if array.shape[1] != d or not len(array):
                raise ValueError(f"The directions of set {name!r} should have {d} numbers. Found shape {array.shape}.")
            return span(array.astype(float))
        if array.dtype.kind not in "iu" or not len(array) or array.min() < 0 or array.max() >= d:
            raise ValueError(f"Set {name!r} should list coordinates from 0 to {d - 1}. Found {array.tolist()}.")
        if self.basis is not None:
            return span(np.asarray(self.basis, dtype=float)[np.unique(array)])
        mask = torch.zeros(d, dtype=torch.bool)
        mask[torch.as_tensor(array)] = True
        return Subspace(mask=mask)


def span(rows: np.ndarray) -> Subspace:
    """The subspace that some rows span, which need not be orthonormal."""
    _, values, right = np.linalg.svd(rows, full_matrices=False)
    keep = values > values[0] * 1e-10 if len(values) and values[0] > 0 else np.zeros(len(values), dtype=bool)
    if not keep.any():
        raise ValueError("Directions should not all be zero.")
    return Subspace(rows=torch.as_tensor(right[keep]))


def _area(snapshot: Snapshot, case: Kept) -> float:
    if case.ranking is None:
        return 0.0
    data = snapshot.data
    mass = np.ones(len(data)) if data.weights is None else data.weights
    return auc(case.ranking, data.y == snapshot.task.positive, mass)
