"""positive_rate, tpr, fpr: who is decided positive, where there are two labels."""

from __future__ import annotations

import xarray as xr

from tiltmeter.measures.snapshot import Snapshot


def rates(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Share decided positive of all, of the positives and of the negatives of each group (NaN: there are none)."""
    if snapshot.decision is None or not snapshot.task.binary:
        return {}
    decided = snapshot.decision == snapshot.task.positive
    positive = snapshot.data.y == snapshot.task.positive
    return {
        **snapshot.share("positive_rate", decided),
        **snapshot.share("tpr", decided, positive),
        **snapshot.share("fpr", decided, ~positive),
    }
