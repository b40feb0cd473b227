"""squared_error: the squared difference of score and label, for regression."""

from __future__ import annotations

import xarray as xr

from tiltmeter.measures.snapshot import Snapshot


def squared_error(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Mean of (score - y)^2, twice the loss `Square`; nothing where the model decides between labels."""
    if snapshot.task.decides or snapshot.score is None:
        return {}
    return snapshot.mean("squared_error", (snapshot.score - snapshot.data.y) ** 2)
