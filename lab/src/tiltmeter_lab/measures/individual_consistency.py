"""individual-consistency: how often the decision differs between a point and its nearest point of another group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr
from torch import Tensor

from tiltmeter.measures.snapshot import Snapshot, group_share


@dataclass(frozen=True)
class IndividualConsistency:
    """`cross_group_change` (group): the share of points whose nearest point of another group is decided differently.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> x = [[float(i), g] for i in range(60) for g in (0.0, 0.1)]  # pairs that differ in the last column alone
    >>> data = tm.GroupedData(x, [0, 1] * 60, ["a", "b"] * 60)
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> model.weight.data = torch.tensor([[0.0, 1.0]])  # decides by the group
    >>> lab.measure(IndividualConsistency(), model, data, tm.Logistic())["cross_group_change"].values
    array([1., 1.])

    Distances are Euclidean in the inputs of the model, each column divided by its standard deviation (Dwork et al.,
    2012: similar individuals should be treated similarly). The null value is the same share for the nearest point of
    the *own* group: what closeness alone explains.

    What it does not mean: near in the inputs is not alike in what matters, and points of different groups may lie
    further apart than points of one group. A difference from the null value is a question, not a proof.
    """

    title: ClassVar[str] = "How often the nearest point of another group is decided differently"
    takes: ClassVar[str] = "points of real numbers, labels, and at least two groups"
    exact: ClassVar[str] = "always, for the held-out points (nearest neighbours by search)"
    absent: ClassVar[str] = "groups from one distribution: as often as for neighbours of the own group"
    weighs: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        data, seen = snapshot.data, snapshot.model
        if not isinstance(seen.x, Tensor) or not seen.x.is_floating_point():
            raise ValueError("IndividualConsistency needs points of real numbers, which have distances.")
        if snapshot.decision is None:
            raise ValueError("IndividualConsistency needs decisions. Found a model that decides nothing.")
        x = seen.x.reshape(len(data), -1).double().cpu().numpy()
        spread = x.std(0)
        x = x[:, spread > 0] / spread[spread > 0]
        name, found = "cross_group_change", {}
        for key, same, meaning in (
            (name, False, "nearest of another group decided differently"),
            (f"{name}_null", True, "nearest of the own group decided differently"),
        ):
            near = nearest(x, data.codes, same)
            known = near >= 0
            share, error = group_share(snapshot.decision[near] != snapshot.decision, data, known)
            share = np.where(np.bincount(data.codes[known], minlength=len(share)) > 0, share, np.nan)
            found[key] = snapshot.by_group(key, share, long_name=meaning, better="lower")
            if not same:
                found[f"{key}_se"] = snapshot.by_group(f"{key}_se", error, long_name="its standard error")
        return found


def nearest(x: np.ndarray, codes: np.ndarray, same: bool) -> np.ndarray:
    """For every point the nearest other one of its own group, or of any other group; -1 if there is none.

    >>> nearest(np.array([[0.0], [1.0], [1.2], [5.0]]), np.array([0, 0, 1, 1]), same=False)
    array([2, 2, 1, 1])
    """
    from sklearn.neighbors import NearestNeighbors

    found = np.full(len(x), -1)
    for code in np.unique(codes):
        own = np.flatnonzero(codes == code)
        pool = own if same else np.flatnonzero(codes != code)
        if len(pool) < 1 + same:
            continue
        if not x.shape[1]:
            found[own] = pool[0]
            continue
        near = NearestNeighbors(n_neighbors=1 + same).fit(x[pool]).kneighbors(x[own], return_distance=False)
        places = pool[near]
        # Of two equal points, the search may name the point itself second.
        found[own] = np.where(places[:, 0] == own, places[:, -1], places[:, 0]) if same else places[:, 0]
    return found
