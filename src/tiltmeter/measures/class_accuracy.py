"""class_accuracy: the share decided right of every class in every group, where there are more than two."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot, group_share
from tiltmeter.names import described
from tiltmeter.record.labelled import labels_array

#: With more classes than this a table of classes and groups is no longer read by anyone.
MOST = 100


def class_accuracy(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Share of each class decided right (NaN: the group has none). With two labels, `tpr` and `fpr` say the same."""
    labels = snapshot.task.labels
    if snapshot.decision is None or not 2 < len(labels) <= MOST:
        return {}
    right = snapshot.decision == snapshot.data.y
    found = [group_share(right, snapshot.data, snapshot.data.y == label) for label in labels]
    coords = {"group": labels_array(snapshot.data.groups), "class": np.asarray(labels)}
    return {
        name: described(name, xr.DataArray(np.stack(values, 1), dims=("group", "class"), coords=coords))
        for name, values in zip(("class_accuracy", "class_accuracy_se"), zip(*found, strict=True), strict=True)
    }
