"""margin: how far a score lies on the right side of the decision."""

from __future__ import annotations

import xarray as xr

from tiltmeter.measures.snapshot import Snapshot


def margin(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """One output: distance from the threshold, negative when wrong. Several: the label's score minus the best other."""
    return {} if snapshot.margin is None else snapshot.mean("margin", snapshot.margin)
