"""subgroup-auc: how well scores rank points within a group and across groups, and how far a group's scores are
shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import xarray as xr
from scipy.stats import rankdata
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.measure import two_labels
from tiltmeter_lab.measures.shared.risk import positive_score, positives


@dataclass(frozen=True)
class SubgroupAUC:
    """Areas under the ROC curve of each group against all others, its background (Borkan et al., 2019).

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> x = [[-2.0], [1.0]] * 30 + [[1.5], [3.0]] * 30  # the negatives of "b" score above the positives of "a"
    >>> data = tm.GroupedData(x, [0, 1] * 60, ["a"] * 60 + ["b"] * 60)
    >>> found = lab.measure(SubgroupAUC(), torch.nn.Identity(), data, tm.Logistic())
    >>> found["subgroup_auc"].values, found["bpsn_auc"].values
    (array([1., 1.]), array([1., 0.]))

    - `subgroup_auc`: positives of the group against its own negatives;
    - `bpsn_auc`: positives of the background against negatives of the group; low if the group scores too high;
    - `bnsp_auc`: negatives of the background against positives of the group; low if the group scores too low;
    - `positive_aeg`, `negative_aeg` (average equality gap): P(score in the group > in the background) - 1/2 among
      positives and among negatives, ties count one half; above 0 if the group scores higher.

    All have standard errors (DeLong et al., 1988). The null value of an area is that of all points, which a random
    group has; that of a gap is 0. NaN if a group, or all others together, have no points of a label.

    What it does not mean: areas do not depend on a threshold, so a group may have a perfect area and still get only
    wrong decisions. Gaps may come from different shares of easy points as well as from the model.
    """

    title: ClassVar[str] = "Areas under the ROC curve within and across groups, and average equality gaps"
    takes: ClassVar[str] = "two labels and a score"
    exact: ClassVar[str] = "always, for the held-out points (ranks; ties count one half)"
    absent: ClassVar[str] = "scores with one distribution per label in all groups: areas as for all points, gaps 0"

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        positive, score, codes = positives(snapshot), positive_score(snapshot), snapshot.data.codes
        groups = {"group": snapshot.data.group_labels}
        rows: dict[str, list[tuple[float, float]]] = {}
        for code in range(len(snapshot.data.groups)):
            own = codes == code
            p, n, far_p, far_n = (score[a & b] for a in (own, ~own) for b in (positive, ~positive))
            pairs = {
                "subgroup_auc": (p, n),
                "bpsn_auc": (far_p, n),
                "bnsp_auc": (p, far_n),
                "positive_aeg": (p, far_p),
                "negative_aeg": (n, far_n),
            }
            for name, two in pairs.items():
                value, error = auc(*two)
                rows.setdefault(name, []).append((value - 0.5 if name.endswith("aeg") else value, error))
        overall = np.full(len(snapshot.data.groups), auc(score[positive], score[~positive])[0])
        found: dict[str, xr.DataArray] = {}
        for name, meaning in _MEANINGS.items():
            values = np.array(rows[name])
            gap = name.endswith("aeg")
            attrs = {"better": "neither", "null": "0: the same scores as the others"} if gap else {"better": "higher"}
            found[name] = snapshot.reading(name, values[:, 0], groups, long_name=meaning, **attrs)
            key = f"{name}_se"
            found[key] = snapshot.reading(key, values[:, 1], groups, long_name=f"standard error: {meaning}")
            if not gap:
                key, text = f"{name}_null", "area under the ROC curve of all points"
                found[key] = snapshot.reading(key, overall, groups, long_name=text, better="higher")
        return found

    @classmethod
    def example(cls, seed: int = 0) -> tuple[Self, nn.Module, GroupedData]:
        """Digits with two labels."""
        return cls(), *two_labels(seed)


_MEANINGS = {
    "subgroup_auc": "positives above negatives, both of the group",
    "bpsn_auc": "positives of others above negatives of the group",
    "bnsp_auc": "positives of the group above negatives of others",
    "positive_aeg": "positives of the group above positives of others, minus 1/2",
    "negative_aeg": "negatives of the group above negatives of others, minus 1/2",
}


def auc(high: np.ndarray, low: np.ndarray) -> tuple[float, float]:
    """P(a score of `high` > one of `low`), ties count one half, and its standard error (DeLong et al., 1988).

    >>> auc(np.array([3.0, 2.0]), np.array([1.0, 2.0]))[0]
    0.875
    """
    m, n = len(high), len(low)
    if not m or not n:
        return np.nan, np.nan
    ranks = rankdata(np.concatenate([high, low]))
    above = (ranks[:m] - rankdata(high)) / n
    below = 1.0 - (ranks[m:] - rankdata(low)) / m
    value = float(above.mean())
    if m < 2 or n < 2:
        return value, np.nan
    return value, float(np.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))
