"""Randomised: how well a model still does when some features come from other points (Shah et al., 2020)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.shared.exchanged_features import Kept, Subspace, auc, kept, permutation

#: By default, the coordinates are split into at most this many consecutive blocks.
BLOCKS = 16
#: What is exchanged: nothing, the features of the set, or all others.
PARTS = np.array(["none", "set", "rest"])


@dataclass(frozen=True)
class Randomised:
    """Accuracy, and AUC for two labels, when the features of a set come from other points.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(2, 1)
    >>> model.weight.data, model.bias.data = torch.tensor([[1.0, 0.0]]), torch.zeros(1)  # uses the first feature only
    >>> data = tm.GroupedData([[-1.0, -1.0], [1.0, 1.0]] * 60, [0, 1] * 60, ["all"] * 120)  # both tell the label
    >>> found = lab.measure(Randomised({"first": [0], "second": [1]}), model, data)["randomised_auc"]
    >>> found.sel(part="set").values.round(1).tolist()
    [0.5, 1.0]

    `features` maps names to sets of coordinates of the flattened points, or to subspaces given by rows that span them
    (k, d); the default is blocks of consecutive coordinates. With a `basis` (orthonormal rows), coordinates are those
    along its rows. All coordinates of a set are permuted over the points by *one* permutation. So their joint
    distribution stays the same, but they no longer depend on the label or on the rest. The result is averaged over
    `draws` permutations. `part` says what was permuted: nothing ("none"), the "set", or the "rest", which is everything
    except the set.

    If permuting the set brings the model down to chance, the model uses the set, and nothing else is sufficient. If
    permuting the rest costs nothing, the model needs nothing else.

    What it does not mean: it does *not* say that the other features carry no information, or that the model is wrong to
    use these. Permuted points may be unlike any point in the data, and a fall may come from that alone. Prefer the AUC
    where there is one: permuting may move scores across the threshold and lower the accuracy while the ranking stays
    the same.

    Args:
        features: Sets of coordinates by name, or rows that span a subspace; None: blocks of consecutive coordinates.
        basis: Orthonormal rows along which coordinates are counted; None: the axes.
        draws: Permutations that are averaged.
        seed: Seed of the random draws, the same at every evaluation.
    """

    title: ClassVar[str] = "accuracy and AUC when chosen features come from other points"
    takes: ClassVar[str] = "any model that decides; also tokens, if sets are coordinates; AUC needs two labels"
    exact: ClassVar[str] = "a model of one coordinate: 0.5 with it exchanged, unchanged with the rest exchanged"
    absent: ClassVar[str] = "features that are equally simple: no single set brings the model down to chance"
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
            raise ValueError("`basis` should have orthonormal rows, like those of `random_basis`. Found other rows.")

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
            "randomised_accuracy_null": (null, "accuracy of random decisions with the same frequencies", "neither"),
        }
        if plain.ranking is not None:
            found["randomised_auc"] = (area, "AUC with a part of the features from other points", "higher")
            found["randomised_auc_null"] = (np.full_like(area, 0.5), "AUC of scores without information", "neither")
        return {
            name: snapshot.reading(name, values, coords, long_name=meaning, better=better)
            for name, (values, meaning, better) in found.items()
        }

    def passes(self, snapshot: Snapshot) -> float:
        """One pass over the points, and two for each set and permutation."""
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
    """The subspace spanned by some rows, which need not be orthonormal."""
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
