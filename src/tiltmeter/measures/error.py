"""error: the share of wrong decisions in each group."""

from __future__ import annotations

import xarray as xr

from tiltmeter.measures.snapshot import Snapshot


def error(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Share of wrong decisions; nothing for regression."""
    if snapshot.decision is None:
        return {}
    return snapshot.share("error", snapshot.decision != snapshot.data.y)
