"""confidence and calibration_gap: how sure the model is of its decisions, and by how much too sure."""

from __future__ import annotations

import xarray as xr

from tiltmeter.measures.snapshot import Snapshot


def confidence(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Mean probability that the model gives to its own decisions, and that minus the share of right ones.

    A calibration gap of 0 does not mean that the model is calibrated: errors of either sign may cancel.
    """
    if snapshot.confidence is None or snapshot.decision is None:
        return {}
    right = snapshot.decision == snapshot.data.y
    return {
        **snapshot.mean("confidence", snapshot.confidence),
        **snapshot.mean("calibration_gap", snapshot.confidence - right),
    }
