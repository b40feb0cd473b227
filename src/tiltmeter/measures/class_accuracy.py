"""class_accuracy: the share decided right of every class in every group, where there are more than two."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot, shares
from tiltmeter.record.labelled import labels_array

#: With more classes than this a table of classes and groups is no longer read by anyone.
MOST = 100


def class_accuracy(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Share of each class decided right (NaN: the group has none). With two labels, `tpr` and `fpr` say the same."""
    labels = snapshot.task.labels
    if snapshot.decision is None or not 2 < len(labels) <= MOST:
        return {}
    data, shape = snapshot.data, (len(snapshot.data.groups), len(labels))
    mass = np.ones(len(data)) if data.weights is None else data.weights
    cells = data.codes * len(labels) + data.y.astype(np.int64)  # labels of several outputs are 0, 1, 2, ...
    share, error = shares(snapshot.decision == data.y, mass, cells, shape[0] * shape[1])
    coords = {"group": labels_array(data.groups), "class": np.asarray(labels)}
    return {
        "class_accuracy": snapshot.reading("class_accuracy", share.reshape(shape), coords),
        "class_accuracy_se": snapshot.reading("class_accuracy_se", error.reshape(shape), coords),
    }
