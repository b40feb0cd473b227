"""loss: the loss averaged over the points of each group."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot, group_mean


def loss(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Mean loss per group, and its standard error where the loss is known point by point."""
    attrs = {"long_name": snapshot.definition, "better": "lower", "definition": snapshot.definition}
    if snapshot.loss is None:
        assert snapshot.group_loss is not None
        return {"loss": snapshot.by_group("loss", np.asarray(snapshot.group_loss, dtype=float), **attrs)}
    mean, error = group_mean(snapshot.loss, snapshot.data)
    return {"loss": snapshot.by_group("loss", mean, **attrs), "loss_se": snapshot.by_group("loss_se", error)}
